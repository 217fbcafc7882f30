package container

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestRemedies: who does what srt check says in a container of Docker's has mode full in the next one.
func TestRemedies(t *testing.T) {
	user, root := account{1001, 1001}, account{}
	for _, c := range []struct {
		flags string
		as    account
	}{
		{"", user}, {"--security-opt no-new-privileges", user}, {withProfile, user}, {unconfined, user}, {"--cap-add SYS_ADMIN", user},
		{withProfile + "--cap-drop ALL", root}, {"--cap-drop ALL", root},
	} {
		flags, as := c.flags, c.as
		r, err := fromFlags(flags)
		if err != nil {
			t.Fatal(err)
		}
		var said struct {
			Remedy struct{ Commands []string }
		}
		if err := json.Unmarshal([]byte(examine(t, "crun", r, as).Check), &said); err != nil {
			t.Fatalf("%q: %v", flags, err)
		}
		if len(said.Remedy.Commands) != 1 {
			t.Errorf("%q: the one thing to do is %q", flags, said.Remedy.Commands)
			continue
		}
		added := strings.TrimSuffix(strings.TrimPrefix(said.Remedy.Commands[0], "docker run "), " ...")
		if r, err = fromFlags(flags + " " + added); err != nil {
			t.Errorf("%q: %q: %v", flags, said.Remedy.Commands[0], err)
			continue
		}
		if got := examine(t, "crun", r, as); got.CheckStatus != int(full) {
			t.Errorf("%q: with %q the status is %d: %s", flags, added, got.CheckStatus, got.Check)
		}
	}
}

// TestFilterOfLandlock: where a container's filter takes Landlock, the error names the calls to allow and asks for no other kernel.
func TestFilterOfLandlock(t *testing.T) {
	r, err := fromFlags("")
	if err != nil {
		t.Fatal(err)
	}
	r.filter = closed
	got := examine(t, "crun", r, account{1001, 1001}).Weaker.Refused
	if !strings.Contains(got, "allow landlock_create_ruleset") || strings.Contains(got, "CONFIG_SECURITY_LANDLOCK") {
		t.Errorf("it says %q", got)
	}
}
