package traces

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

// restless makes names that begin with "made" and tries what is denied, without end.
const restless = `i=0; while :; do i=$((i+1)); echo $i >made-$((i%7)); mkdir -p made; mv -f made-1 made/1; ln -sf f made-link; rm -f made-2
echo x >.bashrc; mkdir .vscode; mv made .idea; ln f .mcp.json; ALSO done 2>/dev/null`

// alsoAbsent is what restless tries besides, where absent names are denied.
const alsoAbsent = `mkdir secrets; echo x >d/absent; mv made .env.local;`

// kill is a way to end a sandbox from outside, and what its processes are called.
var kills = []struct {
	name string
	kill func(*stage.Stage, *exec.Cmd)
}{
	{"SIGKILL of srt", func(_ *stage.Stage, cmd *exec.Cmd) { _ = cmd.Process.Kill() }},
	{"loss of power", func(s *stage.Stage, _ *exec.Cmd) { s.KillAll() }},
}

// rounds is how often each way is tried under each ruleset. Every other round waits until the command is at work.
const rounds = 6

func TestFS_52_KilledAtAnyMoment(t *testing.T) {
	stage.Need(t, "git")
	for _, k := range kills {
		t.Run(k.name, func(t *testing.T) {
			stage.Each(t, func(s *stage.Stage) {
				s.Env = append(s.Env, gitEnv...)
				for _, rules := range rulesets(s) {
					restlessRounds(s, rules, k.kill)
				}
			})
		})
	}
}

func restlessRounds(s *stage.Stage, rules ruleset, kill func(*stage.Stage, *exec.Cmd)) {
	s.T.Helper()
	settings, also := s.Settings(rules.Rules), ""
	if rules.absent {
		also = alsoAbsent
	}
	script := strings.Replace(restless, "ALSO", also, 1)
	seen := 0
	for round := range rounds {
		what := fmt.Sprintf("%s, round %d", rules.name, round)
		s.Clear()
		if r := s.Outside(repository); r.Status != 0 {
			s.T.Fatal(r)
		}
		before := s.Tree(".", withoutMade)
		w := begin(s)
		cmd := s.Command(s.Srt(settings, stage.Shell(script)...)...)
		record := killAtWork(s, w, cmd, round%2 == 0, kill)
		seen += len(record)
		strangers(what, s, record)
		for _, line := range stage.Differences(before, s.Tree(".", withoutMade)) {
			s.T.Errorf("%s: %s", what, line)
		}
		if r := s.Outside("rm -rf made*; git status --porcelain --ignored"); r.Status != 0 || r.Stdout != "" {
			s.T.Errorf("%s: %v", what, r)
		}
		w.take()
		if r := s.Inside(settings, "true"); r.Status != 0 { // the next start finds nothing to clean up
			s.T.Errorf("%s: %v", what, r)
		}
		w.silent(what + ", the next start")
		w.end()
	}
	if seen == 0 {
		s.T.Errorf("%s: the command was never at work", rules.name)
	}
}

// withoutMade looks at all but what the command makes.
var withoutMade = stage.View{Without: []string{"made*"}}

// killAtWork starts a command, kills it at some moment, after its first act if it is to wait, and gives the record.
func killAtWork(s *stage.Stage, w *watch, cmd *exec.Cmd, wait bool, kill func(*stage.Stage, *exec.Cmd)) []string {
	s.T.Helper()
	var errs strings.Builder
	cmd.Stderr = &errs
	s.Must(cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed
	}()
	var record []string
	if wait {
		s.Eventually(func() string {
			select {
			case <-ended:
				s.T.Fatalf("the command has ended: %s", errs.String())
			default:
			}
			if record = append(record, w.take()...); len(record) == 0 {
				return "the command does nothing"
			}
			return ""
		})
	}
	time.Sleep(rand.N(15 * time.Millisecond)) // the moment of the attack; nothing is expected of it
	kill(s, cmd)
	<-ended
	s.Deserted()
	return append(record, w.take()...)
}

// strangers fails the test with the events that are not of the names that the command makes.
func strangers(what string, s *stage.Stage, record []string) {
	s.T.Helper()
	record = slices.DeleteFunc(slices.Clone(record), func(line string) bool {
		_, path, _ := strings.Cut(line, " ")
		rest, ok := strings.CutPrefix(path, s.Work+"/made")
		return ok && (rest == "" || rest[0] == '/' || rest[0] == '-')
	})
	if len(record) > 0 {
		s.T.Errorf("%s: the host sees\n%s", what, strings.Join(record, "\n"))
	}
}

// The neighbour that ends takes nothing with it, and the one that stays adds nothing (FS-54).
func TestFS_54_TwoInOneFolder(t *testing.T) {
	stage.Each(t, func(s *stage.Stage) {
		s.Env = append(s.Env, gitEnv...)
		if r := s.Outside(repository); r.Status != 0 {
			s.T.Fatal(r)
		}
		for _, rules := range rulesets(s) {
			name, settings := rules.name, s.Settings(rules.Rules)
			w := begin(s)
			first := s.Command(s.Srt(settings, stage.Shell(`echo ready; read x; exec 2>/dev/null; ln -s f .mcp.json && echo made; { echo x >.bashrc; } && echo made; mkdir .vscode && echo made; echo a >a`)...)...)
			var errs strings.Builder
			first.Stderr = &errs
			in, err := first.StdinPipe()
			s.Must(err)
			out, err := first.StdoutPipe()
			s.Must(err)
			s.Must(first.Start())
			lines := bufio.NewReader(out)
			if line, err := lines.ReadString('\n'); line != "ready\n" {
				s.T.Fatalf("%s: the first says %q, %v", name, line, err)
			}
			w.silent(name + ": the first runs")
			if r := s.Inside(settings, "echo b >b; mkdir .idea 2>/dev/null || true"); r.Status != 0 {
				s.T.Fatal(r)
			}
			made := func(n string) []string {
				return []string{"create " + s.Abs(n), "modify " + s.Abs(n), "close " + s.Abs(n)}
			}
			if got := w.take(); !slices.Equal(got, made("b")) {
				s.T.Errorf("%s: of the second the host sees %q", name, got)
			}
			if _, err := io.WriteString(in, "go\n"); err != nil {
				s.T.Fatalf("%s: the first has ended: %v: %v: %s", name, err, first.Wait(), errs.String())
			}
			rest, err := io.ReadAll(lines)
			s.Must(err)
			_ = first.Wait() // its status says nothing new
			if len(rest) > 0 {
				s.T.Errorf("%s: the denies of the first have ended with the second: %q", name, rest)
			}
			if got := w.take(); !slices.Equal(got, made("a")) {
				s.T.Errorf("%s: of the first the host sees %q", name, got)
			}
			if r := s.Outside("rm a b"); r.Status != 0 {
				s.T.Fatal(r)
			}
		}
	})
}
