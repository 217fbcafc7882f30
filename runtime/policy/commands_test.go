package policy

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/srt-sandbox/srt/runtime/config"
)

const commandID = "0123456789abcdefghijkl" // 22 characters

func hostOf(t testing.TB, s string) config.Host {
	t.Helper()
	h, err := config.CanonicalHost(s)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestNET15_case25_CommandIDs(t *testing.T) {
	for _, tc := range []struct {
		name, id string
		ok       bool
	}{
		{"21 characters", commandID[:21], false},
		{"22 characters", commandID, true},
		{"empty", "", false},
		{"30 unpaired surrogates", strings.Repeat("\xed\xa0\x80", 30), false},
		{"22 characters and unpaired surrogates", commandID + "\xed\xa0\x80", true},
		{"21 characters and U+FFFD", commandID[:21] + strings.Repeat("\uFFFD", 9), false},
		{"22 characters beyond the first 100 units", strings.Repeat("\uFFFD", 100) + commandID, false},
		{"22 characters at the end of the first 100 units", strings.Repeat("\uFFFD", 78) + commandID, true},
		{"a halved pair does not count", strings.Repeat("\uFFFD", 78) + commandID[:21] + "😀", false},
		{"22 characters of two units", strings.Repeat("😀", 22), true},
		{"11 characters of two units", strings.Repeat("😀", 11), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var c CommandLists
			_, err := c.Register(tc.id, []string{"a.test"})
			if tc.ok != (err == nil) || !tc.ok && !errors.Is(err, ErrShortCommandID) {
				t.Fatalf("Register: %v", err)
			}
			if err != nil && tc.id != "" && strings.Contains(err.Error(), tc.id) {
				t.Errorf("the error holds the id: %v", err)
			}
			if _, ok := c.Allows(tc.id, hostOf(t, "a.test"), 1); ok != tc.ok {
				t.Errorf("Allows: %v", ok)
			}
		})
	}
}

func TestNET15_Lists(t *testing.T) {
	var c CommandLists
	if _, err := c.Register(commandID, []string{"*.a.test:443", "b.test", "[::1]:5"}); err != nil {
		t.Fatal(err)
	}
	long := commandID + strings.Repeat("x", 100)
	if _, err := c.Register(long, []string{"long.test"}); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, key, host string
		port            uint16
		entry           string
	}{
		{"wildcard", commandID, "x.a.test", 443, "*.a.test:443"},
		{"its port", commandID, "x.a.test", 80, ""},
		{"canonical host", commandID, "B.Test.", 80, "b.test"},
		{"literal", commandID, "[0::1]", 5, "[::1]:5"},
		{"not listed", commandID, "c.test", 80, ""},
		{"another key", commandID + "x", "b.test", 80, ""},
		{"no key", "", "b.test", 80, ""},
		{"what counts of a long key", long[:100], "long.test", 1, "long.test"},
		{"a longer key that begins alike", long + "y", "long.test", 1, "long.test"},
		{"one unit too few", long[:99], "long.test", 1, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			entry, ok := c.Allows(tc.key, hostOf(t, tc.host), tc.port)
			if entry != tc.entry || ok != (tc.entry != "") {
				t.Errorf("%q, %v", entry, ok)
			}
		})
	}
}

func TestNET15_RegisterReplacesAndFailsWhole(t *testing.T) {
	var c CommandLists
	allows := func(host string) bool { _, ok := c.Allows(commandID, hostOf(t, host), 1); return ok }
	removeFirst, err := c.Register(commandID, []string{"a.test"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Register(commandID, []string{"b.test", "*.com"})
	if !errors.Is(err, config.ErrInvalidDomain) || !strings.Contains(err.Error(), "allowedDomains[1]") || strings.Contains(err.Error(), commandID) {
		t.Errorf("a bad entry: %v", err)
	}
	if !allows("a.test") || allows("b.test") {
		t.Error("a registration that failed has changed the list")
	}
	removeThird, err := c.Register(commandID, []string{"c.test"})
	if err != nil {
		t.Fatal(err)
	}
	if allows("a.test") || !allows("c.test") {
		t.Error("registering again does not replace")
	}
	removeFirst()
	if !allows("c.test") {
		t.Error("LIB-32: removing a list that was replaced has removed the one in its place")
	}
	removeThird()
	if allows("c.test") {
		t.Error("the list is still there")
	}
	removeThird()
	if _, err := c.Register(commandID, []string{"d.test"}); err != nil {
		t.Fatal(err)
	}
	c.Reset()
	if allows("d.test") {
		t.Error("a list has outlived Reset")
	}
	var none *CommandLists
	if _, ok := none.Allows(commandID, hostOf(t, "a.test"), 1); ok {
		t.Error("no lists allow something")
	}
}

// A key that a user name carries is the very key that a list is found by.
func TestNET15_ProxyUserCarriesTheKey(t *testing.T) {
	for _, id := range []string{
		commandID, strings.Repeat("é", 60), strings.Repeat("a", 99) + "😀", strings.Repeat("a", 98) + "😀b", commandID + "\xff\xfe",
	} {
		user := ProxyUser(id)
		var c CommandLists
		if _, err := c.Register(id, []string{"a.test"}); err != nil {
			t.Fatal(err)
		}
		key := decodeUser(t, user)
		if _, ok := c.Allows(key, hostOf(t, "a.test"), 1); !ok {
			t.Errorf("%q: the key %q of %q finds no list", id, key, user)
		}
	}
}

func TestNET15_ConcurrentUse(t *testing.T) {
	var c CommandLists
	var wg sync.WaitGroup
	h := hostOf(t, "a.test")
	for i := range 4 {
		wg.Go(func() {
			id := fmt.Sprintf("%s-%d", commandID, i)
			for range 200 {
				remove, err := c.Register(id, []string{"a.test"})
				if err != nil {
					t.Error(err)
					return
				}
				if _, ok := c.Allows(id, h, 1); !ok {
					t.Error("the list is not there")
				}
				remove()
				if _, ok := c.Allows(id, h, 1); ok {
					t.Error("the list is still there")
				}
			}
		})
	}
	wg.Wait()
}

// decodeUser is the key in a proxy user name.
func decodeUser(t *testing.T, user string) string {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(user, "srt."))
	if err != nil {
		t.Fatal(err)
	}
	return string(key)
}

func TestNET15_PossibleOnSomePort(t *testing.T) {
	var c CommandLists
	const first, second = "first-0123456789-0123456789", "second-0123456789-0123456789"
	for id, entry := range map[string]string{first: "one.test:443", second: "*.two.test"} {
		if _, err := c.Register(id, []string{entry}); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		key, host string
		want      bool
	}{
		{first, "one.test", true}, {first, "a.two.test", false}, {second, "a.two.test", true}, {second, "two.test", false},
		{"", "one.test", true}, {"", "a.two.test", true}, {"", "three.test", false}, {"nobody", "one.test", false},
	} {
		if got := c.Possible(tc.key, config.Host{Name: tc.host}); got != tc.want {
			t.Errorf("%q, %s: %v", tc.key, tc.host, got)
		}
	}
	if (*CommandLists)(nil).Possible("", config.Host{Name: "one.test"}) {
		t.Error("no lists")
	}
}
