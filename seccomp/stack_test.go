package seccomp

import (
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/srt-sandbox/srt/seccomp/internal/sim"
)

// TestStack compares the joint program with what the kernel makes of the programs loaded one upon the other.
func TestStack(t *testing.T) {
	if Supported() != nil {
		t.Skipf("no filters for %s", runtime.GOARCH)
	}
	for _, set := range [][]Filter{
		{Base(), Namespaces(), Unix()}, {Base(), Unix()}, {Base(), Namespaces()}, {Base(), Namespaces(), UnixDatagram()},
		{Base(), Namespaces(), UnixDatagram(), Names()}, {Base(), Names()}, {Base(), Namespaces(), Unix(), Opens()}, {Base(), Namespaces(), Unix(), IoctlNames()},
		{Base(), Namespaces(), UnixDatagram(), Network()}, {Base(), Namespaces(), UnixDatagram(), Names(), Network()},
		{Base(), UnixDatagram(), Opens(), Network()}, {Base(), Network()}, {Base(), Namespaces(), UnixDatagram(), IoctlNames(), Network()},
		{Base(), Namespaces(), UnixDatagram(), ConfinedSockets(), ConfinedNetwork()},
		{Base(), ConfinedSockets(), MadeSockets(), ConfinedNetwork()},
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
				want := strictest(parts, d)
				if want != actionAllow {
					refused++
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

// strictest is the kernel's choice among several filters' answers: the smallest, as signed numbers (seccomp_run_filters
// in kernel/seccomp.c; seccomp(2) gives the order).
func strictest(parts []sim.Program, d sim.Data) uint32 {
	answer := uint32(actionAllow)
	for _, p := range parts {
		if got := p.Run(d).Action; int32(got) < int32(answer) {
			answer = got
		}
	}
	return answer
}

// A refusal goes before a notification (seccomp(2)): where both apply, no listener is asked.
func TestStack_RefusesBeforeItNotifies(t *testing.T) {
	ret := func(answer uint32) string {
		return "\x06\x00\x00\x00" + string(binary.NativeEndian.AppendUint32(nil, answer))
	}
	refuse := Filter{Name: "refuse", program: ret(errnoBit | 1)}
	notify := Filter{Name: "notify", program: ret(userNotif), notifies: true}
	joined := Stack(refuse, notify)
	if got := mustParse(t, joined[0]).Run(sim.Data{}).Action; got != errnoBit|1 {
		t.Errorf("%#x, want EPERM", got)
	}
	parts := []sim.Program{mustParse(t, refuse), mustParse(t, notify)}
	if got := strictest(parts, sim.Data{}); got != errnoBit|1 {
		t.Errorf("the kernel's order gives %#x, want EPERM", got)
	}
}

// One program has one listener, whichever of its parts asks for it.
func TestStack_NotifiesIfAPartDoes(t *testing.T) {
	for _, c := range []struct {
		set  []Filter
		want bool
	}{
		{[]Filter{Base(), Namespaces(), Unix()}, false},
		{[]Filter{Base(), Names()}, true},
		{[]Filter{Base(), UnixDatagram(), Opens()}, true},
		{[]Filter{Names()}, true},
		{[]Filter{Base(), UnixDatagram(), Network()}, true},
		{[]Filter{Base(), Names(), Network()}, true},
	} {
		got := Stack(c.set...)
		if len(got) != 1 || got[0].Notifies() != c.want {
			t.Errorf("%v: %d programs, notifies %t; want one, %t", c.set, len(got), got[0].Notifies(), c.want)
		}
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
