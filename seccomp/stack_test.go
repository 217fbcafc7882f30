package seccomp

import (
	"runtime"
	"testing"

	"github.com/srt-sandbox/srt/seccomp/internal/sim"
)

// TestStack compares the joint program with the programs one by one: the first that does not allow decides.
func TestStack(t *testing.T) {
	if Supported() != nil {
		t.Skipf("no filters for %s", runtime.GOARCH)
	}
	for _, set := range [][]Filter{
		{Base(), Namespaces(), Unix()}, {Base(), Unix()}, {Base(), Namespaces()}, {Base(), Namespaces(), UnixDatagram()},
	} {
		joined := Stack(set...)
		if len(joined) != 1 {
			t.Fatalf("%d programs", len(joined))
		}
		t.Run(joined[0].Name, func(t *testing.T) {
			whole := mustParse(t, joined[0])
			var parts []sim.Program
			for _, f := range set {
				parts = append(parts, mustParse(t, f))
			}
			refused := 0
			walk(runtime.GOARCH, func(d sim.Data) {
				want := uint32(actionAllow)
				for _, p := range parts {
					if want = p.Run(d).Action; want != actionAllow {
						refused++
						break
					}
				}
				if got := whole.Run(d).Action; got != want {
					t.Fatalf("%+v: %#x, want %#x", d, got, want)
				}
			})
			if refused == 0 {
				t.Error("no call was refused: the walk shows nothing")
			}
		})
	}
}

func TestStack_LeavesASingleFilterAlone(t *testing.T) {
	if got := Stack(Base()); len(got) != 1 || got[0] != Base() {
		t.Errorf("%v", got)
	}
	if got := Stack(); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func mustParse(t *testing.T, f Filter) sim.Program {
	t.Helper()
	p, err := sim.Parse(f.Program())
	if err != nil {
		t.Fatalf("%s: the kernel would not take it: %v", f.Name, err)
	}
	return p
}
