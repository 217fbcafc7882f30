package test

import (
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestCLI_17_OneAfterAnotherLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		b.repository(".")
		before, host := b.tree("../.."), hostTrace(t)
		args := b.srt(cfg{aw: list{"."}, dw: list{"f"}, dr: list{"/etc/hostname"}, allow: list{"localhost"}}, "sh", "-c", "sleep 60 & exit 0")
		kept := b.tree("../..")
		for range 200 {
			b.host(args...).ok().silent()
		}
		b.deserted()
		b.unchanged("../..", kept)
		leftOver(t, host)
		if len(kept) != len(before)+1 {
			t.Errorf("the settings file is %d files", len(kept)-len(before))
		}
	})
}

func TestCLI_17_ManyAtOnceLeaveNothing(t *testing.T) {
	each(t, func(t *testing.T, b *box) {
		web := b.web()
		args := b.srt(cfg{aw: list{"."}, allow: list{"localhost:" + web.port}}, "sh", "-c",
			byProxy+"sleep 60 & curl -fsS http://localhost:"+web.port+"/ -o $0 && touch made-$0")
		before, host := b.tree("../.."), hostTrace(t)
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				if r := b.host(append(args[:len(args):len(args)], fmt.Sprint(i))...); r.status != 0 || r.stderr != "" {
					t.Errorf("%v", r)
				}
			})
		}
		wg.Wait()
		b.deserted()
		for i := range 50 {
			for _, name := range []string{fmt.Sprint(i), fmt.Sprint("made-", i)} {
				if err := os.Remove(b.abs(name)); err != nil {
					t.Error(err)
				}
			}
		}
		b.unchanged("../..", before)
		web.Close()
		leftOver(t, host)
	})
}

func TestCLI_15_17_SignalsLeaveNothing(t *testing.T) {
	signals := map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGINT: 130, syscall.SIGHUP: 129, syscall.SIGQUIT: 131,
		syscall.SIGKILL: -9}
	each(t, func(t *testing.T, b *box) {
		for sig, want := range signals {
			b.file("seen", "")
			before, host := b.tree("."), hostTrace(t)
			// A child, a grandchild in a session of its own, and a reader of the terminal's place.
			cmd := b.command(b.srt(cfg{aw: list{"."}}, "bash", "-c", "ulimit -c 0; sleep 60 & setsid sh -c 'sleep 60 & touch ready; wait' & exec sleep 60")...)
			b.must(cmd.Start())
			b.appears("ready")
			b.must(cmd.Process.Signal(sig))
			_ = cmd.Wait()
			if got := exitStatus(cmd.ProcessState); got != want {
				t.Errorf("%v: status %d, want %d", sig, got, want)
			}
			b.deserted()
			b.must(os.Remove(b.abs("ready")))
			b.unchanged(".", before)
			leftOver(t, host)
		}
	})
}

func TestCLI_15_StatusAfterASignal(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		tests := []struct {
			name, script string
			want         int
		}{
			{"chosen", `trap "exit 5" TERM; touch ready; sleep 60 & wait`, 5},
			{"killed", `touch ready; exec sleep 60`, 143},
			{"ignored", `trap "" TERM; touch ready; sleep 60 & sleep 60`, 143},
		}
		for _, tt := range tests {
			cmd := b.command(b.srt(cfg{aw: list{"."}}, "bash", "-c", tt.script)...)
			b.must(cmd.Start())
			b.appears("ready")
			b.must(cmd.Process.Signal(syscall.SIGTERM))
			_ = cmd.Wait()
			if got := exitStatus(cmd.ProcessState); got != tt.want {
				t.Errorf("%s: status %d, want %d", tt.name, got, tt.want)
			}
			b.deserted()
			b.must(os.Remove(b.abs("ready")))
		}
	})
}

func TestFS_case29_FS52_54_KilledSrtLeavesNoFile(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.repository(".")
		b.file(".bashrc", "")
		before := b.tree(".")
		cmd := b.command(b.srt(cfg{aw: list{"."}, dw: list{"f", "later/x", "*.pem"}, dr: list{"secrets"}}, "sh", "-c", "cat; exec sleep 60")...)
		in, err := cmd.StdinPipe()
		b.must(err)
		b.must(cmd.Start())
		eventually(t, func() string {
			if len(b.processes()) < 2 {
				return "the command does not run"
			}
			return ""
		})
		b.must(cmd.Process.Kill())
		_ = cmd.Wait()
		in.Close()
		b.deserted()
		b.unchanged(".", before)
	})
}

func TestFS_case30_FS54_NeighbourKeepsItsDenies(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		b.file(".bashrc", "old")
		b.file("sec/k", "secret")
		c := cfg{aw: list{"."}, dr: list{"sec"}}
		second := b.command(b.srt(c, "sh", "-c", "touch ready; read go; echo x >.bashrc; mv .bashrc y; cat sec/k; touch done")...)
		in, err := second.StdinPipe()
		b.must(err)
		var out strings.Builder
		second.Stdout = &out
		b.must(second.Start())
		b.appears("ready")
		b.run(c, "true").ok() // the first comes and goes
		_, err = in.Write([]byte("go\n"))
		b.must(err)
		_ = second.Wait()
		b.appears("done")
		b.holds(".bashrc", "old")
		if out.String() != "" {
			t.Errorf("the second sees %q", out.String())
		}
	})
}

func TestCLI_18_BackgroundProcessesHoldNothingOpen(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		// What the command leaves running holds the pipes of its output; srt ends it, so that readers see the end.
		b.sh(cfg{}, "echo out; (setsid sleep 60; echo late) & exec true").ok().prints("out").silent()
		b.deserted()
	})
}

func TestCLI_17_OutlivesNoConnection(t *testing.T) {
	eachAlong(t, func(t *testing.T, b *box) {
		need(t, "python3")
		ln, err := net.Listen("tcp4", "127.0.0.1:0")
		b.must(err)
		defer ln.Close()
		_, port, _ := net.SplitHostPort(ln.Addr().String())
		cmd := b.command(b.srt(cfg{allow: list{"localhost"}}, "sh", "-c", byProxy+"exec curl -sp http://localhost:"+port+"/")...)
		b.must(cmd.Start())
		conn, err := ln.Accept()
		b.must(err)
		defer conn.Close()
		b.must(cmd.Process.Kill())
		_ = cmd.Wait()
		buf := make([]byte, 4096)
		for err == nil { // the tunnel ends with srt
			_, err = conn.Read(buf)
		}
		b.deserted()
	})
}
