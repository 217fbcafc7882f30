package credential

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
	"github.com/srt-sandbox/srt/runtime/config"
)

const (
	tokenFake = "fake_value_00000000-0000-4000-8000-000000000001"
	otherFake = "fake_value_00000000-0000-4000-8000-000000000002"
	longFake  = "fake_value_00000000-0000-4000-8000-000000000003-and-sixty-bytes"
	jwtFake   = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJmYWtlX3ZhbHVlXzEifQ.c3J0LWZha2U"
)

// plant adds a sentinel of a given text to a store, as Mask would with one that it draws.
func plant(t testing.TB, s *Store, name, sentinel, value string, hosts ...string) *secret {
	t.Helper()
	parsed, _, err := parseHosts(hosts)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	x := &secret{store: s, slot: &slot{}, sentinel: sentinel, hosts: parsed, name: name, whole: true}
	place(t, x, value)
	s.secrets = append(s.secrets, x)
	s.byHost, s.lists = nil, nil
	return x
}

// place gives x another value. The lock of the store is held.
func place(t testing.TB, x *secret, value string) {
	t.Helper()
	view, err := x.store.region.place([]byte(value))
	if err != nil {
		t.Fatal(err)
	}
	x.slot.view = view
}

// change gives x another value, as a later launch does.
func change(t testing.TB, x *secret, value string) {
	t.Helper()
	x.store.mu.Lock()
	defer x.store.mu.Unlock()
	place(t, x, value)
}

func newStore(t testing.TB) *Store {
	t.Helper()
	s, err := NewStore()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func canonical(t testing.TB, host string) config.Host {
	t.Helper()
	h, err := config.CanonicalHost(host)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// at is Store.At for a host that something may be injected at.
func at(t testing.TB, s *Store, host string) *Injection {
	t.Helper()
	i := s.At(canonical(t, host))
	if i == nil {
		t.Fatalf("nothing is injectable at %s", host)
	}
	return i
}

func TestCRED21_At(t *testing.T) {
	s := newStore(t)
	plant(t, s, "A", tokenFake, "a", "api.example.com")
	plant(t, s, "B", otherFake, "b", "*.example.com", "10.0.0.1")
	for _, tc := range []struct {
		host  string
		names []string
	}{
		{"api.example.com", []string{"A", "B"}},
		{"API.example.com.", []string{"A", "B"}},
		{"www.example.com", []string{"B"}},
		{"10.0.0.1", []string{"B"}},
		{"example.com", nil},
		{"api.example.com.evil.test", nil},
	} {
		// Twice: the second answer comes from what the first left behind.
		for range 2 {
			i := s.At(canonical(t, tc.host))
			if i == nil {
				if tc.names != nil {
					t.Errorf("%s: nothing, want %q", tc.host, tc.names)
				}
				continue
			}
			if got := i.InTarget("/?a=" + tokenFake + "&b=" + otherFake); !slices.Equal(got, tc.names) {
				t.Errorf("%s: %q, want %q", tc.host, got, tc.names)
			}
		}
	}
}

func TestCRED21_TwoLaunchesWithOtherHosts(t *testing.T) {
	s := newStore(t)
	plant(t, s, "A", tokenFake, "first", "one.example")
	if got := replaced(t, at(t, s, "one.example"), tokenFake); got != "first" {
		t.Errorf("%q", got)
	}
	plant(t, s, "A", otherFake, "second", "two.example", "one.example")
	if got := replaced(t, at(t, s, "one.example"), tokenFake+" "+otherFake); got != "first second" {
		t.Errorf("%q", got)
	}
	if got := replaced(t, at(t, s, "two.example"), tokenFake+" "+otherFake); got != tokenFake+" second" {
		t.Errorf("%q", got)
	}
}

func TestCRED21_AfterClose(t *testing.T) {
	s := newStore(t)
	plant(t, s, "A", tokenFake, "a", "h.example")
	i := at(t, s, "h.example")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s.At(canonical(t, "h.example")) != nil {
		t.Error("something is injectable after Close")
	}
	if got := replaced(t, i, "x"+tokenFake); got != "x"+tokenFake {
		t.Errorf("%q", got)
	}
	if i.LengthKept() {
		t.Error("a length was promised for a value that is gone")
	}
}

func TestCRED22_InTarget(t *testing.T) {
	s := newStore(t)
	plant(t, s, "A", tokenFake, "a", "h.example")
	plant(t, s, "J", jwtFake, "j", "h.example")
	plant(t, s, "B", otherFake, "b", "elsewhere.example")
	i := at(t, s, "h.example")
	for _, tc := range []struct {
		target string
		names  []string
	}{
		{"/", nil},
		{"", nil},
		{"/" + tokenFake[:20], nil},
		{"/?t=" + tokenFake, []string{"A"}},
		{"/" + jwtFake + "/" + tokenFake, []string{"J", "A"}},
		{"/" + otherFake, nil},
	} {
		if got := i.InTarget(tc.target); !slices.Equal(got, tc.names) {
			t.Errorf("%s: %q, want %q", tc.target, got, tc.names)
		}
	}
}

func TestCRED26_LengthKept(t *testing.T) {
	s := newStore(t)
	x := plant(t, s, "A", tokenFake, strings.Repeat("v", len(tokenFake)), "h.example")
	i := at(t, s, "h.example")
	if !i.LengthKept() {
		t.Error("equal lengths (case 25): not kept")
	}
	// A later launch with another length must not break what was promised: the fake goes out.
	change(t, x, "short")
	if got := replaced(t, i, "a"+tokenFake+"b"); got != "a"+tokenFake+"b" {
		t.Errorf("after the promise: %q", got)
	}
	i = at(t, s, "h.example")
	if i.LengthKept() {
		t.Error("other lengths: kept")
	}
	if got := replaced(t, i, "a"+tokenFake+"b"); got != "ashortb" {
		t.Errorf("%q", got)
	}
}

// TestCRED37_Concurrently: requests go on while launches change values and the session ends. What comes out is a value
// that once was, the fake, or an error.
func TestCRED37_Concurrently(t *testing.T) {
	s := newStore(t)
	x := plant(t, s, "A", tokenFake, "value-0", "h.example")
	host := canonical(t, "h.example")
	var requests, launches sync.WaitGroup
	for range 4 {
		requests.Go(func() {
			for range 300 {
				i := s.At(host)
				if i == nil {
					continue
				}
				got, err := readBy(i.Body(strings.NewReader("<"+tokenFake+">")), 5)
				if err != nil {
					if !errors.Is(err, ErrChanged) {
						t.Error(err)
					}
					continue
				}
				if got != "<"+tokenFake+">" && !strings.HasPrefix(got, "<value-") {
					t.Errorf("%q", got)
				}
				if _, err := i.Header(httphead.Header{{Name: "Authorization", Value: "Bearer " + tokenFake}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	launches.Go(func() {
		for k := range 100 {
			change(t, x, "value-"+strings.Repeat("1", k%7))
			plant(t, s, "B", otherFake, "other", "*.example.com")
		}
	})
	launches.Wait()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	requests.Wait()
	if s.At(host) != nil {
		t.Error("something is injectable after Close")
	}
}
