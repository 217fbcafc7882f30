package cases

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/probe"
	"github.com/srt-sandbox/srt/probe/probetest"
	"github.com/srt-sandbox/srt/runtime/modetable"
)

const (
	// casesVariable names the directory of the cases, which has run.sh.
	casesVariable = "SRT_CASES"
	// whoVariable limits the run to root or to the user: root, user.
	whoVariable = "SRT_CASES_WHO"
)

// excuse is why a case may fail in mode confined: a row of docs/modes.md.
type excuse struct {
	row string
	// luck says that the case passes where the host happens to be as it wants.
	luck bool
}

// zombies excuses the case that counts those in /proc, which shows the host's as well.
var zombies = excuse{row: "proc-list", luck: true}

// excused are the cases, by number, that mode confined is another in. All others must pass.
var excused = map[string]excuse{
	"16": {row: "hide-in-write-root"},
	"18": {row: "hide-in-write-root"},
	"31": {row: "attributes"}, // git takes what access(2) allows and open(2) refuses for broken
	"38": {row: "direct"},
	"39": {row: "direct"},
	"46": {row: "datagrams"},
	"49": {row: "local-binding"},
	"68": zombies,
	"77": {row: "hide-in-write-root"},
	"79": {row: "hide-in-write-root"},
}

// TestExcusesAreRows: what excuses a case is said to people.
func TestExcusesAreRows(t *testing.T) {
	for number, e := range excused {
		if _, ok := modetable.Excused("confined", e.row); !ok {
			t.Errorf("case %s: the row %s of docs/modes.md says that mode confined is as mode full", number, e.row)
		}
	}
}

// TestCases runs every case in each mode that is not full. As root it runs them as an ordinary user, too.
func TestCases(t *testing.T) {
	dir := os.Getenv(casesVariable)
	if dir == "" {
		t.Skipf("got no %s; want the directory of the cases", casesVariable)
	}
	binary := build(t)
	for _, mode := range []struct {
		name, without, weaker string
		excused               map[string]excuse
	}{
		{"nested", "procfs", "false", nil},
		{"nested and weaker", "procfs", "true", map[string]excuse{"68": zombies}},
		{"confined", "userns", "true", excused},
	} {
		t.Run(mode.name, func(t *testing.T) {
			if mode.name == "confined" {
				probetest.NeedVersion(t, probe.Landlock, 6)
			}
			got := run(t, dir, "SRT_CASES_BINARY="+binary, "SRT_CASES_WEAKER="+mode.weaker, "SRT_WITHOUT="+mode.without)
			for _, o := range got {
				if wrong := o.judge(mode.excused); wrong != "" {
					t.Error(wrong)
				}
			}
			for number := range mode.excused {
				if !slices.ContainsFunc(got, func(o outcome) bool { return o.number() == number }) {
					t.Errorf("case %s is excused, and there is none", number)
				}
			}
		})
	}
}

// build makes the srt under test, where every user can execute it and no case hides it: not beneath /tmp.
func build(t *testing.T) string {
	dir, err := os.MkdirTemp("/var/tmp", "srt-cases-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "srt")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../cmd/srt").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// outcome is a line of the runner's.
type outcome struct{ verdict, who, name, why string }

func (o outcome) number() string {
	number, _, _ := strings.Cut(o.name, "-")
	return number
}

// verdicts of the runner.
const (
	right      = "ok"
	impossible = "-" // it cannot be tried here
)

// judge says what is wrong, empty for nothing: a case that failed and no row excuses, or that passed and a row says cannot.
func (o outcome) judge(excused map[string]excuse) string {
	e, ok := excused[o.number()]
	switch {
	case o.verdict == impossible:
	case o.verdict == right && ok && !e.luck:
		return fmt.Sprintf("%s as %s passes, though row %s excuses it: take the excuse out", o.name, o.who, e.row)
	case o.verdict != right && !ok:
		return fmt.Sprintf("%s as %s: %s: %s", o.name, o.who, o.verdict, o.why)
	}
	return ""
}

// run has the runner try every case, and gives what it said.
func run(t *testing.T, dir string, env ...string) (got []outcome) {
	standIn, err := filepath.Abs("in-mode.sh")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	who := os.Getenv(whoVariable)
	if os.Getuid() != 0 {
		t.Skipf("got uid %d; want root, who can run the cases as another user, too (%s=user: as that one alone)", os.Getuid(), whoVariable)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "run.sh"), strings.Fields(who)...)
	cmd.Env = slices.Concat(os.Environ(), env, []string{"SRT=" + standIn, "TMPDIR=/var/tmp", "PROBE_USER=srt-test"})
	out, err := cmd.Output()
	whole := false
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) > 0 && fields[0] == "wrong:" {
			whole = true
		} else if len(fields) >= 3 {
			got = append(got, outcome{fields[0], fields[1], fields[2], strings.Join(fields[3:], " ")})
		}
	}
	if !whole || len(got) == 0 {
		t.Fatalf("the runner did not come to its end: %v\n%s", err, out)
	}
	return got
}

// TestJudge: a run cannot pass by failures that nothing excuses, nor by excuses that nothing needs.
func TestJudge(t *testing.T) {
	for text, fails := range map[string]bool{
		"ok 02-free": false, "- 02-free": false, "FAIL 02-free": true, "TIME 02-free": true,
		"ok 16-excused": true, "- 16-excused": false, "FAIL 16-excused": false, "ok 68-lucky": false, "FAIL 68-lucky": false,
	} {
		verdict, name, _ := strings.Cut(text, " ")
		o := outcome{verdict, "user", name, ""}
		if wrong := o.judge(map[string]excuse{"16": {row: "x"}, "68": {row: "y", luck: true}}); (wrong != "") != fails {
			t.Errorf("%s: %q", text, wrong)
		}
	}
}
