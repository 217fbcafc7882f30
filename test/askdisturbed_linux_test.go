package test

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"
)

// continued are ways in which a stopped process is continued without anybody who runs (signal(7), SIGCONT). Each is Python
// text that arranges it.
var continued = []struct {
	name    string
	arrange string
	always  bool // every question is disturbed, not the first alone
}{
	// Many that expire once: whether one that repeats goes on after a stop differs between kernels.
	{"timer_create", `for i in range(60): timer(signal.SIGCONT, 0.7 + 0.3 * i)`, true},
	{"F_SETSIG, a key", `
signal.signal(signal.SIGCONT, lambda *_: None)
fcntl.fcntl(tty, fcntl.F_SETSIG, signal.SIGCONT)
fcntl.fcntl(tty, fcntl.F_SETOWN, os.getpid())
fcntl.fcntl(tty, fcntl.F_SETFL, fcntl.fcntl(tty, fcntl.F_GETFL) | os.O_ASYNC)`, true},
	{"PR_SET_PDEATHSIG", `
if os.fork():
    timer(signal.SIGKILL, 0.7) # this one's end is its child's start
    while True: time.sleep(100)
libc.prctl(1, int(signal.SIGCONT), 0, 0, 0)`, false},
	{"clone, the signal of a child's end", `
if libc.syscall({"x86_64": 56, "aarch64": 220}[os.uname().machine], int(signal.SIGCONT), 0, 0, 0, 0) == 0:
    timer(signal.SIGKILL, 0.7)
    while True: time.sleep(100)`, false},
}

// disturber is a program that is continued during a question. It takes the terminal, shows another host in the place of the
// question's, and reads what is typed. "ran" tells that it did; "heard" has what it read.
const disturber = `
import ctypes, fcntl, os, signal, struct, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
tty = os.open("/dev/tty", os.O_RDWR)
def timer(sig, after):
    event = struct.pack("PiiQQQQQQ", 0, sig, 0, 0, 0, 0, 0, 0, 0)
    which = ctypes.c_void_p()
    assert libc.timer_create(1, event, ctypes.byref(which)) == 0
    split = lambda t: (int(t), int(t % 1 * 1e9))
    assert libc.timer_settime(which, 0, struct.pack("llll", 0, 0, *split(after)), None) == 0
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
signal.signal(signal.SIGTTIN, signal.SIG_IGN)
`

const disturbs = `
last = time.monotonic()
while True:
    now = time.monotonic()
    if now - last > 0.06: # it was stopped in between
        os.write(tty, b"\0337\033[8A\r\033[2Ksrt: the command asks to connect to registry.test port 80\0338")
        try:
            os.tcsetpgrp(tty, os.getpgrp())
            os.set_blocking(tty, False)
            with open("heard", "ab") as f: f.write(os.read(tty, 100))
        except OSError: pass
        with open("ran", "a") as f: f.write("x")
    last = now
    time.sleep(0.001)
`

// Nothing that is typed while the command runs allows anything. The question is put anew, with other letters, and after three
// of them the host is refused and the run goes on.
func TestAsk_ACommandThatContinuesItself(t *testing.T) {
	need(t, "curl", "python3")
	eachAlong(t, func(t *testing.T, b *box) {
		for _, tc := range continued {
			if err := os.Remove(b.abs("ran")); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			b.file("disturber.py", disturber+tc.arrange+disturbs)
			a := b.ask(nil, `python3 disturber.py & for i in 1 2 3 4 5 6 7 8 9; do sleep 0.05; done; why evil.test; echo end$((1)); pkill -KILL python3; exit 0`)
			first := a.question("evil.test")
			if tc.always {
				a.typeWhileItRuns(t, tc.name)
				a.refusedForRunning()
				a.expect("end1")
				a.exits(0)
				a.reached("")
				continue
			}
			a.expect("the command ran during the last question")
			second := a.question("evil.test")
			if first == second {
				t.Errorf("%s: the letters of a disturbed question are used again", tc.name) // 1 in 65536
			}
			if _, err := os.Stat(b.abs("ran")); err != nil {
				t.Errorf("%s: the program did not run: %v", tc.name, err)
			}
			a.send("once " + first + "\n")
			a.expect("to allow it, type once " + second)
			a.reached("")
			a.send("once " + second + "\n")
			a.expect("200 OK")
			a.expect("end1")
			a.exits(0)
			a.reached("evil.test:80")
		}
		b.deserted()
	})
}

// typeWhileItRuns types the letters of each question, one key after the other as a person does, and ends the line once the
// command has painted over that question, until the command has ended. It wants three questions, or fewer if the command could not even be stopped for the next.
func (a *asked) typeWhileItRuns(t *testing.T, name string) {
	t.Helper()
	typed, ended := 0, 0
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		a.mu.Lock()
		text := a.seen.String()
		a.mu.Unlock()
		codes := askCode.FindAllStringSubmatch(text, -1)
		questions := strings.Count(text, "Answer within")
		switch {
		case strings.Contains(text, "end1"):
			if questions != 3 && !strings.Contains(text, notStopped) || questions > 3 {
				t.Errorf("%s: %d questions in %q", name, questions, text)
			}
			return
		case questions > typed:
			typed = questions
			for _, key := range "once " + codes[questions-1][1] {
				a.send(string(key))
				time.Sleep(10 * time.Millisecond)
			}
		case questions > ended && strings.Contains(afterQuestion(text, questions), "registry.test"):
			ended = questions
			a.send("\n")
		}
	}
	a.b.t.Fatalf("%s: it never ends", name)
}

// notStopped is the reason where a command is continued so often that no question can be put.
const notStopped = "403 the command could not be stopped to ask about it"

// refusedForRunning waits until the command is told that it was refused because it ran.
func (a *asked) refusedForRunning() {
	a.b.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		a.mu.Lock()
		text := a.seen.String()[a.read:]
		a.mu.Unlock()
		if strings.Contains(text, "403 the command ran while srt asked about it") || strings.Contains(text, notStopped) {
			return
		}
	}
	a.expect("403 the command ran while srt asked about it")
}

// afterQuestion is what the terminal shows after the nth question.
func afterQuestion(text string, n int) string {
	parts := strings.SplitN(text, "Answer within", n+1)
	return parts[len(parts)-1]
}

// srt is not left stopped, and its shell has the terminal, whatever the command does with it during a question.
func TestAsk_ADisturbedQuestionBelowAShell(t *testing.T) {
	need(t, "curl", "python3")
	eachAlong(t, func(t *testing.T, b *box) {
		p := b.parentProxy()
		c := cfg{aw: list{"."}, net: object{"parentProxy": object{"http": p.url, "https": p.url}}}
		b.file("disturber.py", disturber+continued[0].arrange+disturbs)
		b.file("disturb.sh", askFunctions+`python3 disturber.py & for i in 1 2 3 4 5 6 7 8 9; do sleep 0.05; done; why evil.test; pkill -KILL python3; exit 5`)
		a := &asked{b.onTerminal(b.bash()...), p}
		a.expect("ready$ ")
		a.send(srtPath + " --ask -s " + b.settings(c) + " exec -- bash disturb.sh; echo status$((1)) $?\n")
		a.question("evil.test")
		a.refusedForRunning()
		a.expect("status1 5")
		a.expect("ready$ ")
		a.do("jobs; read x; echo none$((1)):$x", "")
		a.do("word", "none1:word")
		a.send("exit 0\n")
		a.exits(0)
		a.reached("")
		b.deserted()
	})
}

// News of a stop that comes when the question is over is not taken for a stop by the person: the command stops itself while
// it is continued, which is one stop more than srt has made.
func TestAsk_ACommandThatStopsItselfMeanwhile(t *testing.T) {
	need(t, "curl", "python3")
	eachAlong(t, func(t *testing.T, b *box) {
		p := b.parentProxy()
		c := cfg{aw: list{"."}, net: object{"parentProxy": object{"http": p.url, "https": p.url}}}
		b.file("stops.py", disturber+continued[0].arrange+`
import subprocess
child = subprocess.Popen(["bash", "-c", "sleep 0.4; " + sys.argv[1] + "; why evil.test; exit 5"])
stops, last = 0, time.monotonic()
while child.poll() is None:
    now = time.monotonic()
    if now - last > 0.06 and stops == 0:
        stops += 1
        os.kill(os.getpid(), signal.SIGSTOP)
    last = time.monotonic()
    time.sleep(0.001)
print("stopped itself", stops)
sys.exit(child.returncode)
`)
		a := &asked{b.onTerminal(b.bash()...), p}
		a.expect("ready$ ")
		b.file("functions", askFunctions)
		a.send(srtPath + " --ask -s " + b.settings(c) + ` exec -- python3 stops.py "$(cat functions)"; echo status$((1)) $?` + "\n")
		a.question("evil.test")
		a.refusedForRunning()
		a.expect("stopped itself 1")
		a.expect("status1 5")
		a.expect("ready$ ")
		a.do("jobs; read x; echo none$((1)):$x", "")
		a.do("word", "none1:word")
		a.send("exit 0\n")
		a.exits(0)
		a.reached("")
		b.deserted()
	})
}
