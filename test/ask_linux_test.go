package test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Every way out of a sandbox asks: proxy, SOCKS, and a program that knows no proxy, whose name resolves before anybody has
// decided about it (LIB-25).
func TestAsk_EveryWayAsksAndEveryAnswerCounts_LIB25_LIB27(t *testing.T) {
	need(t, "curl")
	eachAlong(t, func(t *testing.T, b *box) {
		for _, way := range []string{"get", "socks", "raw"} {
			try := "(" + way + " ask.test); " // each in a process of its own
			a := b.ask(nil, strings.Repeat(try, 4)+"echo end$((1))")
			a.send("once " + a.question("ask.test") + "\n")
			a.expect("hello ask.test:80")
			a.question("ask.test")
			a.send("no\n")
			a.expect("refused")
			a.send("run " + a.question("ask.test") + "\n")
			a.expect("hello ask.test:80")
			a.expect("hello ask.test:80")
			a.expect("end1")
			a.exits(0)
			a.asksNoMore()
			a.reached("ask.test:80 ask.test:80 ask.test:80")
		}
		b.deserted()
	})
}

func TestAsk_NeverAndNone(t *testing.T) {
	need(t, "curl")
	eachAlong(t, func(t *testing.T, b *box) {
		a := b.ask(nil, "get a.test; get a.test; raw a.test; get b.test; raw c.test; get d.test; get ok.test; echo end$((1))", cfg{allow: list{"ok.test"}})
		a.question("a.test")
		a.send("never\n")
		a.expect("refused")
		a.question("b.test")
		a.send("NONE\n")
		a.expect("hello ok.test:80") // which the settings allow
		a.expect("end1")
		a.exits(0)
		a.asksNoMore()
		a.reached("ok.test:80")
	})
}

// Nothing but the code of this very question allows; what is no answer is asked again, a few times.
func TestAsk_OnlyTheCodeAllows(t *testing.T) {
	need(t, "curl")
	eachAlong(t, func(t *testing.T, b *box) {
		a := b.ask(nil, "get a.test; get a.test; get b.test; echo end$((1))")
		first := a.question("a.test")
		a.send("once\n")
		a.expect("to allow it, type once " + first)
		a.send("run qqqq\n")
		a.expect("to allow it, type run " + first)
		a.send("\n\n\n")
		a.send("yes " + first + "\n")
		a.expect("type once " + first)
		a.send("\x1b[200~\x1b]0;once " + first + "\n") // within a sequence of the terminal
		a.send("xyz\x7f\x7f\x7f\x15once " + first + "x\x7f\n")
		a.expect("hello a.test:80")
		second := a.question("a.test")
		if first == second {
			t.Error("the code was used twice") // 1 in 65536
		}
		a.send("once " + first + "\n")
		a.expect("to allow it, type once " + second)
		for range 4 {
			a.send("\xff\xfe\x00garbage\n")
		}
		a.expect("so it is refused")
		a.expect("refused")
		a.question("b.test")
		a.send("^D")
		a.expect("refused this time")
		a.expect("refused")
		a.expect("end1")
		a.exits(0)
		a.reached("a.test:80")
	})
}

func TestAsk_NobodyAnswers_LIB28(t *testing.T) {
	need(t, "curl")
	eachAlong(t, func(t *testing.T, b *box) {
		a := b.ask([]string{"--ask-timeout", "1"}, "why a.test; raw b.test; echo end$((1))")
		a.question("a.test")
		a.expect("nobody answered, so it is refused")
		a.expect("403 permission prompt failed")
		a.question("b.test")
		a.expect("nobody answered, so it is refused")
		a.expect("end1")
		a.exits(0)
		a.reached("")
	})
}

// A program that reads the same terminal at the same time gets nothing of the answer, blocked in a read or waiting for it.
func TestAsk_TheCommandHearsNothing(t *testing.T) {
	need(t, "curl", "python3")
	eachAlong(t, func(t *testing.T, b *box) {
		a := b.ask(nil, `(exec </dev/tty; read -r line; echo "heard:$line") & (sleep 1; get a.test; echo got$((1))) & wait`)
		code := a.question("a.test")
		a.send("once " + code + "\n")
		a.expect("got1")
		a.send("mine\n")
		a.expect("heard:mine")
		a.exits(0)
		a.reached("a.test:80")
		// One that has a session of its own, ignores SIGTTIN and has the terminal by a descriptor.
		a = b.ask(nil, `python3 -c '
import os, signal, subprocess, sys
signal.signal(signal.SIGTTIN, signal.SIG_IGN)
child = os.fork()
if child == 0:
    os.setsid()
    while True:
        try: os.write(2, b"heard:" + os.read(0, 100))
        except OSError: pass
import time; time.sleep(1)
' & sleep 1.2; get a.test; echo end$((1)); kill %1; pkill python3; exit 0`)
		code = a.question("a.test")
		a.send("once " + code + "\n")
		a.expect("hello a.test:80")
		a.expect("end1")
		a.mu.Lock()
		if text := a.seen.String(); strings.Contains(text, "heard:once") {
			t.Errorf("the command has read the answer: %q", text)
		}
		a.mu.Unlock()
		a.exits(0)
	})
}

// A program with the terminal in raw mode finds it as it was, and is told to draw its screen anew.
func TestAsk_RawModeIsRestored(t *testing.T) {
	need(t, "curl", "python3")
	eachAlong(t, func(t *testing.T, b *box) {
		a := b.askAs(nil, nil, "bash", "-c", askFunctions+`export -f get; exec python3 -c '
import os, signal, subprocess, termios, tty
old = termios.tcgetattr(0); tty.setraw(0); raw = termios.tcgetattr(0)
drawn = []
signal.signal(signal.SIGWINCH, lambda *_: drawn.append(1))
out = subprocess.run(["bash", "-c", "get a.test"], capture_output=True, stdin=subprocess.DEVNULL).stdout
now = termios.tcgetattr(0)
os.write(1, b"same:%d front:%d drawn:%d %s\r\n" % (now == raw, os.tcgetpgrp(0) == os.getpgrp(), len(drawn) > 0, out))
key = os.read(0, 1)
termios.tcsetattr(0, termios.TCSANOW, old); print("key", key)'`)
		a.send("once " + a.question("a.test") + "\r")
		a.expect("same:1 front:1 drawn:1 hello a.test:80")
		a.send("^C")
		a.expect(`key b'\x03'`)
		a.exits(0)
	})
}

// An interactive shell in the sandbox keeps its job and hears nothing of the pause.
func TestAsk_InteractiveShell(t *testing.T) {
	need(t, "curl")
	eachAlong(t, func(t *testing.T, b *box) {
		b.file("functions", askFunctions)
		a := b.askAs(nil, nil, b.bash()...)
		a.expect("ready$ ")
		a.do(". ./functions; echo is$((1))", "is1")
		a.send("get a.test\n")
		a.send("run " + a.question("a.test") + "\n")
		a.expect("hello a.test:80")
		a.expect("ready$ ")
		a.do("jobs; echo none$((1))", "none1")
		a.send("get b.test | cat\n")
		a.question("b.test")
		a.send("^C") // refuses, and reaches the job as it would have
		a.expect("ready$ ")
		a.do("echo status $?", "status 130")
		a.send("sleep 60\n")
		b.runs("sleep")
		a.send("^Z") // job control is as before
		a.expect("Stopped")
		a.do("kill %1; wait %1; jobs; echo still$((1))", "still1")
		a.send("exit 3\n")
		a.exits(3)
		b.deserted()
	})
}

func TestAsk_InterruptGoesOnAsUsual_CLI15(t *testing.T) {
	need(t, "curl")
	eachAlong(t, func(t *testing.T, b *box) {
		for _, text := range []string{"get a.test; sleep 60", "raw a.test; sleep 60", "trap 'echo trapped; exit 9' INT; get a.test & wait; sleep 60"} {
			a := b.ask(nil, text)
			a.question("a.test")
			a.send("^C")
			if strings.Contains(text, "trap") {
				a.expect("trapped")
				a.exits(9)
			} else {
				a.exits(130)
			}
			a.reached("")
		}
		// SIGTERM to srt ends the question, and the command by its own hands.
		a := b.ask(nil, "trap 'echo ended$((1)); exit 7' TERM; get a.test & wait")
		a.question("a.test")
		b.must(a.cmd.Process.Signal(unix.SIGTERM))
		a.expect("ended1")
		a.exits(7)
		a.reached("")
		b.deserted()
	})
}

// In a pipeline of the caller's shell, and with the command in a session of its own, the terminal is asked all the same.
func TestAsk_OtherPlacesOnTheTerminal(t *testing.T) {
	need(t, "curl")
	eachAlong(t, func(t *testing.T, b *box) {
		p := b.parentProxy()
		c := cfg{aw: list{"."}, net: object{"parentProxy": object{"http": p.url, "https": p.url}}}
		b.file("get.sh", askFunctions+"get a.test; raw b.test")
		srt := srtPath + " --ask -s " + b.settings(c) + " exec -- bash get.sh"
		a := &asked{b.onTerminal(b.bash()...), p}
		a.expect("ready$ ")
		for _, line := range []string{srt + " | tr h H", srt + " </dev/null", "true | " + srt + " | cat"} {
			a.send(line + "\n")
			a.send("once " + a.question("a.test") + "\n")
			a.send("once " + a.question("b.test") + "\n")
			a.expect("ello b.test:80")
			a.expect("ready$ ")
			a.do("read x; echo got:$x", "")
			a.do("word", "got:word")
		}
		// A job in the background asks nobody: the terminal is another's.
		b.file("get.sh", askFunctions+"why a.test")
		a.send(srt + " &\n")
		a.expect("not in the foreground of its terminal")
		a.do("wait; echo waited$((1))", "waited1")
		a.send("exit 0\n")
		a.exits(0)
	})
}

// More hosts at once than a person answers are refused, with the reason; equal ones are one question.
func TestAsk_AFloodOfHosts(t *testing.T) {
	need(t, "curl")
	eachAlong(t, func(t *testing.T, b *box) {
		a := b.ask(nil, `for i in 1 2 3 4 5 6 7 8 9 10 11 12; do why h$i.test >out.$i & done
			sleep 2; get h1.test & get h1.test & wait; grep -l "too many" out.* | wc -l | sed 's/^/turned away: /'; echo end$((1))`)
		questions := 0
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
			a.mu.Lock()
			text := a.seen.String()
			a.mu.Unlock()
			if n := strings.Count(text, "Answer within"); n > questions {
				questions = n
				a.send("no\n")
			}
			if strings.Contains(text, "end1") {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		a.expect("end1")
		a.exits(0)
		a.mu.Lock()
		text := a.seen.String()
		a.mu.Unlock()
		if turned, _ := regexp.MatchString(`turned away: [1-4]\n`, text); questions < 8 || questions > 12 || !turned {
			t.Errorf("%d questions in %q", questions, text)
		}
		a.reached("")
	})
}

// An option that cannot work is an error before anything runs.
func TestAsk_NeedsATerminal(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		line := func(c cfg) []string {
			return []string{srtPath, "--ask", "-s", b.settings(c), "exec", "--", "touch", "ran"}
		}
		b.host(line(cfg{aw: list{"."}})...).exits(1).says("Error: --ask needs somebody to ask")
		b.absent("ran")
		b.host(line(cfg{aw: list{"."}, net: object{"strictAllowlist": true}})...).ok() // nothing to ask (LIB-25)
	})
}
