package proxy

import (
	"context"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// A program that cannot reach one address of a name tries the other at once: what the callback has allowed once is that one
// wish, whichever address it succeeds with, and nothing more.
func TestLIB28_TheOtherAddressOfAnUnreachableName(t *testing.T) {
	a := always(true, "")
	c := capture(t, nowhere, asks(a), func(o *Options) { o.Resolver = resolves("name.test") }) // to nothing: the dial fails
	dst := c.addresses("name.test", 443)
	for n, step := range []struct {
		name  string
		pid   int
		at    int // of dst: 0 is IPv4, 1 IPv6
		asked int
	}{
		{"the first address", testPID, 1, 1},
		{"the other one, of another thread", testPID + 1, 0, 2},
		{"the other one", testPID, 0, 2},
		{"which was not asked about, so that the first one is", testPID, 1, 3},
		{"the same one again is asked about", testPID, 1, 4},
	} {
		w, err := c.Judge(step.pid, dst[step.at])
		if err != nil {
			t.Fatal(err)
		}
		if _, err = w.Dial(t.Context()); err == nil {
			t.Fatalf("%s: it is reached", step.name)
		}
		if got := a.count(); got != step.asked {
			t.Errorf("%d, %s: asked %d times, want %d", n, step.name, got, step.asked)
		}
	}
	c.settled()
}

// What stands before the callback stands before its last answer, too.
func TestNET16_TheOtherAddressAfterAnUpdate(t *testing.T) {
	allowed, err := policy.NewNetwork(nowhere)
	if err != nil {
		t.Fatal(err)
	}
	denied, err := policy.NewNetwork(policy.NetworkRules{DeniedDomains: []string{"name.test"}})
	if err != nil {
		t.Fatal(err)
	}
	var current atomic.Pointer[Rules]
	current.Store(&Rules{Network: allowed})
	a := always(true, "")
	c := capture(t, nowhere, asks(a), func(o *Options) { o.Policy, o.Resolver = current.Load, resolves("name.test") })
	dst := c.addresses("name.test", 443)
	dial := func(at int) error {
		w, err := c.Judge(testPID, dst[at])
		if err == nil {
			_, err = w.Dial(t.Context())
		}
		return err
	}
	if err := dial(1); err == nil {
		t.Fatal("it is reached")
	}
	w, err := c.Judge(testPID, dst[0])
	if err != nil {
		t.Fatal(err)
	}
	current.Store(&Rules{Network: denied})
	if _, err := w.Dial(t.Context()); err == nil {
		t.Error("a denied host is reached")
	}
	c.wantAll("deny network-outbound name.test:443 (host is on the deny list)")
}

// slowResolver tells that it was asked, and answers nothing.
type slowResolver struct{ asked chan<- struct{} }

func (r slowResolver) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	r.asked <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

// A call that the pause of another question interrupts while it is dialled is made again, and was answered.
func TestLIB28_AnInterruptedDialIsMadeAgain(t *testing.T) {
	a := always(true, "")
	begun := make(chan struct{}, 4)
	c := capture(t, nowhere, asks(a), func(o *Options) {
		o.Resolver = slowResolver{begun}
	})
	dst := c.addresses("name.test", 443)[0]
	for n, asked := range []int{1, 1, 1} {
		w, err := c.Judge(testPID, dst)
		if err != nil {
			t.Fatal(err)
		}
		ctx, interrupt := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { _, err := w.Dial(ctx); ended <- err }()
		<-begun
		interrupt()
		if err := <-ended; err == nil || a.count() != asked {
			t.Errorf("call %d: %v, asked %d times, want %d", n, err, a.count(), asked)
		}
	}
}
