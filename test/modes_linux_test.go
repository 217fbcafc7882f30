package test

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/srt-sandbox/srt/probe"
)

// Nothing anywhere starts a command with less than the settings ask for: every feature of the kernel's is taken away
// (SRT_WITHOUT), and a command tries to break what each setting promises. Either it cannot, or it is not started, and the reason
// names what is missing.

// promise is what a setting promises, and a try to break it.
type promise struct {
	settings cfg
	// text is what the command tries; it has printed "ran" before.
	text string
	// broken says how the promise was broken, empty if it was not.
	broken func(*walk, result) string
	// warned is on standard error where srt says at the start that the promise is not all kept; empty: it must be.
	warned string
	args   []string    // further options of srt
	world  func(*walk) // makes what else is tried to be reached; nil: nothing
}

// walk is the world that commands try to reach.
type walk struct {
	*box
	web, unix net.Listener
	webHits   atomic.Int64
	unixHits  atomic.Int64
	secret    string
	weak      bool    // with enableWeakerNestedSandbox
	beside    *beside // made by surround
}

// newWalk makes a world: a server, a socket of the host, files that are nobody's business.
func newWalk(b *box) *walk {
	w := &walk{box: b, secret: "planted-" + b.mark}
	var err error
	w.web, err = net.Listen("tcp4", "127.0.0.1:0")
	b.must(err)
	w.unix, err = net.Listen("unix", b.dir+"/host.sock")
	b.must(err)
	b.must(os.Chmod(b.dir+"/host.sock", 0o666))
	for l, hits := range map[net.Listener]*atomic.Int64{w.web: &w.webHits, w.unix: &w.unixHits} {
		b.t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				hits.Add(1)
				_, _ = c.Write([]byte("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"))
				c.Close()
			}
		}()
	}
	b.file(b.dir+"/outside/f", "host")
	b.file(b.home+"/secret/s", w.secret)
	b.file(b.home+"/token", w.secret)
	return w
}

// The tries. $OUT is a directory that may not be written, $WEB the port of a server, $SOCK a socket of the host.
const (
	tryWrite = `echo x > $OUT/f; echo x >> $OUT/f; rm -f $OUT/f; mv $OUT/f stolen; touch $OUT/new; mkdir $OUT/new; chmod 777 $OUT/f; ln $OUT/f l && echo x > l; ln -s $OUT/f sl; echo x > sl`
	tryRead  = `cat ~/secret/s; cat < ~/secret/s; ls ~/secret; cp ~/secret/s copy; cat copy; ln ~/secret/s hard && cat hard; cat ~/token; cp ~/token t2; cat t2; cat /proc/self/root$HOME/secret/s`
	tryNames = `echo x > later; mkdir later; ln -s / later; touch other; mv other later; ln other later; mkdir d; mv d later`
	tryGlobs = `echo x > a.lock; touch y; mv y b.lock; mkdir c.lock; ln -s / d.lock; mkdir -p e && echo x > e/f.lock`
	tryWeb   = `(exec 3<>/dev/tcp/127.0.0.1/$WEB; echo GET >&3; head -c 1 <&3); curl -sS -m 5 http://127.0.0.1:$WEB/; curl -sS -m 5 --noproxy '*' http://127.0.0.1:$WEB/; curl -sS -m 5 -x "socks5h://${ALL_PROXY#*://}" http://127.0.0.1:$WEB/`
	tryUnix  = `curl -sS -m 5 --noproxy '*' --unix-socket $SOCK http://x/`
	tryMount = `unshare -Urm sh -c "umount -l ~/secret; umount /; mount --bind / /mnt; mount -o remount,rw /; mount -t tmpfs x $OUT; cat ~/secret/s /mnt$HOME/secret/s; echo x > $OUT/f; echo x > $OUT/new"`
)

func keepsOutside(w *walk, _ result) string {
	if text, err := os.ReadFile(w.dir + "/outside/f"); err != nil || string(text) != "host" {
		return fmt.Sprintf("the host's file holds %q, %v", text, err)
	}
	if list, err := os.ReadDir(w.dir + "/outside"); err != nil || len(list) != 1 {
		return fmt.Sprintf("beside it: %v, %v", list, err)
	}
	return ""
}

func keepsSecret(w *walk, r result) string {
	if strings.Contains(r.stdout+r.stderr, w.secret) {
		return "the command has read it"
	}
	return keepsOutside(w, r)
}

func keepsAway(w *walk, r result) string {
	if n := w.webHits.Load(); n != 0 {
		return fmt.Sprintf("%d connections came through", n)
	}
	return keepsOutside(w, r)
}

func keepsAll(w *walk, r result) string { return keepsSecret(w, r) + keepsAway(w, r) }

func keepsNames(names ...string) func(*walk, result) string {
	return func(w *walk, _ result) string {
		for _, name := range names {
			if _, err := os.Lstat(w.abs(name)); err == nil {
				return name + " has come to be"
			}
		}
		return ""
	}
}

// promises are the settings of the walk.
var promises = map[string]promise{
	"allowWrite":           {settings: cfg{aw: list{"."}}, text: tryWrite, broken: keepsOutside},
	"denyRead":             {settings: cfg{aw: list{"."}, dr: list{"~/secret", "~/token"}}, text: tryRead, broken: keepsSecret},
	"denyWrite, absent":    {settings: cfg{aw: list{"."}, dw: list{"later"}}, text: tryNames, broken: keepsNames("later")},
	"denyWrite, a pattern": {settings: cfg{aw: list{"."}, dw: list{"**/*.lock"}}, text: tryGlobs, broken: keepsNames("a.lock", "b.lock", "c.lock", "d.lock", "e/f.lock"), warned: "*.lock"},
	"credentials, mask": {settings: cfg{aw: list{"."}, dr: list{"~/secret"}, allow: list{"localhost"}, net: ends(nil), top: masks(object{"files": list{object{"path": "~/token"}}})},
		text: tryRead, broken: keepsSecret},
	"allowedDomains":            {settings: cfg{aw: list{"."}}, text: tryWeb, broken: keepsAway},
	"allowUnixSockets":          {settings: cfg{aw: list{"."}}, text: tryUnix, broken: keepsSocket},
	"allowAllUnixSockets":       {settings: cfg{aw: list{"."}, net: object{"allowAllUnixSockets": true}}, text: tryUnix + ";" + tryWrite + ";" + tryWeb, broken: keepsAway},
	"allowNestedUserNamespaces": {settings: cfg{aw: list{"."}, dr: list{"~/secret"}, top: object{"allowNestedUserNamespaces": true}}, text: tryMount + ";" + tryWrite, broken: keepsSecret},
	"filesystem.disabled":       {settings: cfg{fs: object{"disabled": true}}, text: tryWeb, broken: keepsAway},
	"tlsTerminate":              {settings: cfg{aw: list{"."}, net: object{"tlsTerminate": object{}}}, text: tryWeb + ";" + tryWrite, broken: keepsAway},
	"monitor":                   {settings: cfg{aw: list{"."}}, text: `echo x > $OUT/f`, broken: tellsOf, warned: "is not reported", args: []string{"--violations", "../events"}},
	"enableWeakerNestedSandbox": {settings: cfg{aw: list{"."}, dr: list{"~/secret", "~/token"}}, text: tryRead + ";" + tryWrite + ";" + tryWeb, broken: keepsAll},
	"what is beside": {settings: cfg{aw: list{"."}, allow: list{"localhost"}, net: ends(nil), top: masks(object{"envVars": list{object{"name": "WALK_TOKEN"}}})},
		text: tryBeside, broken: keepsBeside, world: surround},
}

func keepsSocket(w *walk, _ result) string {
	if n := w.unixHits.Load(); n != 0 {
		return fmt.Sprintf("%d connections to the host's socket", n)
	}
	return ""
}

// tellsOf wants the refused write among the violations.
func tellsOf(w *walk, _ result) string {
	text, err := os.ReadFile(w.home + "/events")
	if err != nil || !strings.Contains(string(text), w.dir+"/outside/f") {
		return fmt.Sprintf("violations: %q, %v", text, err)
	}
	return ""
}

// takenAway are what SRT_WITHOUT is set to: nothing, each feature alone, each older Landlock, and what comes together in containers.
func takenAway() []string {
	list := []string{""}
	for _, f := range probe.All() {
		list = append(list, f.Key)
	}
	for abi := 1; abi <= 6; abi++ {
		list = append(list, "landlock="+strconv.Itoa(abi))
	}
	return append(list, "procfs,notify", "procfs,pidfd_getfd", "userns,pidfd_getfd", "userns,landlock=5", "userns,landlock=6", "userns,notify", "cgroup,bpf,notify")
}

// runsWithout are the features without which everything starts as it stands: what they bring is optional, or other means hold it.
var runsWithout = map[string]bool{"": true, "cgroup": true, "bpf": true, "pidfd_getfd": true, "ptrace": true, "landlock=2": true, "landlock=3": true,
	"landlock=4": true, "landlock=5": true, "landlock=6": true, "notify": true, "cgroup,bpf,notify": true, "process_vm": true, "procfs": true,
	"procfs,pidfd_getfd": true}

// TestEveryFeatureAndEverySetting walks them as settings stand, and with enableWeakerNestedSandbox where that may make a difference.
func TestEveryFeatureAndEverySetting(t *testing.T) {
	need(t, "curl", "unshare", "python3")
	for _, without := range takenAway() {
		t.Run("without "+without, func(t *testing.T) {
			eachAlong(t, func(t *testing.T, b *box) {
				for name, p := range promises {
					walkOne(t, b.who, name, without, p, false)
					if strings.Contains(without, "procfs") || !runsWithout[without] {
						walkOne(t, b.who, name+", weaker", without, p, true)
					}
				}
			})
		})
	}
}

// TestTheWalkBreaksPromisesWithoutASandbox: what is tried would do harm.
func TestTheWalkBreaksPromisesWithoutASandbox(t *testing.T) {
	need(t, "curl", "unshare", "python3")
	each(t, func(t *testing.T, b *box) {
		for name, p := range promises {
			w := newWalk(newBox(t, b.who))
			w.env = append(w.env, w.places()...)
			if p.world != nil {
				p.world(w)
			}
			if r := w.host("bash", "-c", p.text+"; true"); p.broken(w, r) == "" {
				t.Errorf("%s: nothing was broken: %v", name, r)
			}
		}
	})
}

// places are the variables that the tries go by.
func (w *walk) places() []string {
	return []string{"OUT=" + w.dir + "/outside", "WEB=" + strconv.Itoa(w.web.Addr().(*net.TCPAddr).Port), "SOCK=" + w.dir + "/host.sock"}
}

// walkOne tries one promise under one lack.
func walkOne(t *testing.T, who account, name, without string, p promise, weak bool) {
	t.Run(name, func(t *testing.T) {
		w := newWalk(newBox(t, who))
		c := p.settings
		if w.weak = weak; weak {
			c = weaker(c)
		}
		w.env = append(w.env, append(w.places(), probe.Variable+"="+without)...)
		if p.world != nil {
			p.world(w)
		}
		args := append([]string{srtPath, "-s", w.settings(c)}, p.args...)
		r := w.host(append(args, "exec", "--", "bash", "-c", "echo ran; "+p.text+"; true")...)
		if !strings.HasPrefix(r.stdout, "ran\n") {
			if runsWithout[without] || !namesWhy(r.stderr) {
				t.Errorf("it is not started, and the reason names nothing that is missing: %v", r)
			}
			return
		}
		if how := p.broken(w, r); how != "" && (p.warned == "" || without == "" || !strings.Contains(r.stderr, p.warned)) {
			t.Errorf("%s: %v", how, r)
		}
	})
}

// namesWhy tells whether a refused start names what is missing: the feature that was taken away, or what the mode without it cannot
// express.
func namesWhy(text string) bool {
	for _, name := range []string{probe.Variable, "Landlock", "mode confined"} {
		if strings.Contains(text, name) {
			return true
		}
	}
	return false
}
