package hostile

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/srt-sandbox/srt/test/programs/stage"
)

// triesVariable says how many connections each race makes; defaultTries is how many in an ordinary run.
const (
	triesVariable = "SRT_TEST_TRIES"
	defaultTries  = 400
)

// perRun is how many connections one sandbox makes: few enough for all of them to wait in vain for what to read.
const perRun = 2000

// race is a way to change what a connect works with while it is judged.
type race struct {
	mode string
	part int  // of the tries that it makes, where each takes a process
	both bool // some connections must be made and some refused, or the race has not been one
}

var races = []race{
	{"address", 1, true}, {"port", 1, true}, {"family", 1, false}, {"all", 1, false}, {"length", 1, false}, {"unmap", 1, false},
	{"udp", 4, false}, {"unix", 4, false}, {"listener", 4, false}, {"close", 4, false}, {"undo", 4, false}, {"modes", 4, false}, {"passed", 4, false},
	{"exec", 10, false}, {"exit", 10, false},
}

// TestNET7_Races: the kernel never reads an address again after it was judged (limits of the reference), nor is a
// descriptor looked at twice. Whatever threads do meanwhile, only the allowed port of the allowed host is reached.
func TestNET7_Races(t *testing.T) {
	w := newWorld(t)
	tries := defaultTries
	if text := os.Getenv(triesVariable); text != "" {
		var err error
		tries, err = strconv.Atoi(text)
		must(t, err)
	}
	for _, r := range races {
		for _, how := range []string{"blocking", "non-blocking"} {
			t.Run(r.mode+" "+how, func(t *testing.T) {
				stage.Each(t, func(s *stage.Stage) { w.race(s, r, how, tries/r.part) })
			})
		}
	}
}

func (w *world) race(s *stage.Stage, r race, how string, tries int) {
	socket := w.hostSocket(s, "host.sock")
	var connected, refused, failed int
	for left := tries; left > 0; left -= perRun {
		w.silent(s.T, func() {
			now := min(left, perRun)
			result := w.run(s, rules{Allow: []string{good + ":8", "[" + good6 + "]:8"}},
				"env", "HOSTSOCKET="+socket.path, w.dir+"/race", r.mode, how, strconv.Itoa(now))
			var made, c, d, f int
			line := done(s.T, result)[0]
			if _, err := fmt.Sscanf(line, "tries %d connected %d refused %d failed %d", &made, &c, &d, &f); err != nil || made != now {
				s.T.Fatalf("%v: %v", err, result)
			}
			if result.Stderr != "" {
				s.T.Logf("srt said:\n%.2000s", result.Stderr)
			}
			connected, refused, failed = connected+c, refused+d, failed+f
		}, good+":8", "["+good6+"]:8")
		socket.untouched(s)
	}
	s.T.Logf("%d tries: %d connected, %d refused, %d failed", tries, connected, refused, failed)
	if r.both && (connected == 0 || refused == 0) {
		s.T.Error("want both connections and refusals: the race attacks nothing")
	}
}
