package bpf

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// A flood of refusals costs nobody else anything: what does not fit is counted, and every call is refused.
func TestReader_Bounded(t *testing.T) {
	k := newTestKernel(t)
	dir := mkdirs(t)
	prog, here := k.load(t, "ask"), place(t, k, dir)
	const asked = 2000
	release, begun := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var got recorder
	s := k.session(t, startChild(t, 0).namespace, func(r Refusal) {
		once.Do(func() { close(begun); <-release })
		got.add(r)
	}, ruleFor(t, dir, "new", false))
	for i := range asked {
		if !ask(t, prog, s.id, here, "new", true) {
			t.Fatal("not refused")
		}
		if i == 0 {
			<-begun
		}
	}
	close(release)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	lost, err := k.Lost()
	if err != nil {
		t.Fatal(err)
	}
	told := len(got.all())
	if lost == 0 || told == 0 || told+int(lost) != asked || told > ringSize/refusalSize {
		t.Errorf("%d of %d told, %d lost", told, asked, lost)
	}
}

// Every refusal arrives, in order, once, round after round of the buffer; those of other sessions do not.
func TestReader_Order(t *testing.T) {
	k := newTestKernel(t)
	dir := mkdirs(t)
	prog, here := k.load(t, "ask"), place(t, k, dir)
	var rules []Rule
	for i := range 100 {
		rules = append(rules, ruleFor(t, dir, fmt.Sprint("N", i, strings.Repeat("x", i/2)), true))
	}
	arrived := make(chan Refusal, 1)
	s := k.session(t, startChild(t, 0).namespace, func(r Refusal) { arrived <- r }, rules...)
	for i := range 1000 {
		name := strings.ToLower(rules[i%100].Name)
		if i%2 == 1 {
			name = strings.ToUpper(name)
		}
		ask(t, prog, s.id+7, here, name, true)
		if !ask(t, prog, s.id, here, name, true) {
			t.Fatalf("%s is not refused", name)
		}
		if r := <-arrived; r.Rule != i%100 || r.Name != name || r.Tid == 0 || r.Pid == 0 {
			t.Fatalf("%d: %+v", i, r)
		}
	}
}

// Sessions come and go while refusals arrive.
func TestReader_Race(t *testing.T) {
	k := newTestKernel(t)
	dir := mkdirs(t)
	prog, here := k.load(t, "ask"), place(t, k, dir)
	namespaces := []*child{startChild(t, 0), startChild(t, 0), startChild(t, 0)}
	var group sync.WaitGroup
	for _, c := range namespaces {
		group.Go(func() {
			for range 30 {
				var got recorder
				s, err := k.Session(c.namespace, got.add)
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Add([]Rule{ruleFor(t, dir, "new", false)}); err != nil {
					t.Error(err)
				}
				for range 3 {
					ask(t, prog, s.id, here, "new", true)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				if n := len(got.all()); n != 3 {
					t.Errorf("%d refusals told, want 3", n)
				}
			}
		})
	}
	group.Wait()
}

// Whatever is in a record is read within its bounds.
func FuzzReader_Decode(f *testing.F) {
	f.Add(make([]byte, refusalSize))
	full := make([]byte, refusalSize)
	for i := range full {
		full[i] = 0xff
	}
	f.Add(full)
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < refusalSize {
			return
		}
		_, r := decodeRefusal(b[:refusalSize])
		if len(r.Name) > maxName || len(r.Process) > 16 || strings.Contains(r.Process, "\x00") {
			t.Errorf("%+v", r)
		}
	})
}
