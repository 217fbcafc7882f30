package fsview

import "testing"

func TestProcessOf(t *testing.T) {
	for path, want := range map[string]int{"12": 12, "12/status": 12, "12/task/13/stat": 12, "12 (deleted)": 12, "12 (deleted)/x": 12,
		"self": -1, "": -1, "sys/kernel/pid_max": -1, "12x": -1, "-1": -1, "+1": -1, "99999999999999999999": -1} {
		number, ok := ProcessOf(path)
		if ok != (want >= 0) || ok && number != want {
			t.Errorf("%q: %d, %v", path, number, ok)
		}
	}
}

// TestGuard_Process: only a plan that shows other processes has them judged, and then every opening is.
func TestGuard_Process(t *testing.T) {
	var none *Guard
	if none.Process(false) || none.Processes() || NewGuard(&Plan{}) != nil {
		t.Error("a plan without rules judges processes")
	}
	g := NewGuard(&Plan{ForeignProcesses: true})
	if !g.Process(false) || g.Process(true) || !g.Processes() || !g.Reads() || !g.Names() {
		t.Error("a plan that shows other processes does not have them judged")
	}
	for _, at := range []string{"/etc/passwd", "/proc/1/status", "/home/x/.env"} {
		if why, denied := g.Open(at); denied {
			t.Errorf("%s is denied: %s", at, why)
		}
	}
	if g.Suspect(".env") || g.Moves() {
		t.Error("names are judged that no rule is about")
	}
	if NewGuard(&Plan{Absent: []Absent{{Path: "/a", Dir: "/", Name: "a", Read: true}}}).Process(false) {
		t.Error("a plan with a fresh /proc has processes judged")
	}
}
