package container

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// examples has the recipes.
const examples = "../../examples/containers"

// mode is what a container lets srt do (docs/modes.md), by the exit status of srt check.
type mode int

const (
	full     mode = 0
	nested   mode = 10
	confined mode = 11
	none     mode = 1
)

func (m mode) String() string {
	return map[mode]string{full: "full", nested: "nested", confined: "confined", none: "none"}[m]
}

// shape is a row of the matrix: a container, and what srt can do in it for root and for a user.
type shape struct {
	name string
	// One of these says what the container is.
	flags    string // of docker run
	podman   bool   // of podman run instead
	manifest string // of Kubernetes, beneath examples
	ci       string // another file beneath examples
	change   func(*recipe)

	root, user mode
}

func (s shape) recipe() (recipe, error) {
	r, err := fromFlags(s.flags)
	if s.manifest != "" {
		r, err = fromManifest(s.manifest)
	} else if s.ci != "" {
		r, err = fromCI(s.ci)
	}
	if s.podman {
		r.asPodman()
	}
	if s.change != nil {
		s.change(&r)
	}
	return r, err
}

const (
	withProfile = "--security-opt seccomp=srt-seccomp.json "
	unconfined  = "--security-opt seccomp=unconfined "
)

func ids(i identities) func(*recipe) { return func(r *recipe) { r.ids = i } }

var shapes = []shape{
	{name: "privileged", flags: "--privileged", root: full, user: full},
	{name: "unmasked", flags: withProfile + "--security-opt systempaths=unconfined", root: full, user: full},
	{name: "profile", flags: withProfile, root: nested, user: nested},
	{name: "no filter", flags: unconfined, root: nested, user: nested},
	{name: "tight", flags: withProfile + "--security-opt no-new-privileges --cap-drop ALL --read-only --tmpfs /tmp --user 1001", user: nested},
	{name: "default", flags: "", root: confined, user: confined},
	{name: "default without new privileges", flags: "--security-opt no-new-privileges", root: confined, user: confined},
	{name: "default without Landlock", change: func(r *recipe) { r.filter = closed }, root: none, user: none},
	{name: "SYS_ADMIN", flags: "--cap-add SYS_ADMIN", root: nested, user: nested},
	{name: "all capabilities", flags: unconfined + "--cap-add ALL", root: nested, user: nested},
	// The kernel lets nobody map root's id who lacks CAP_SETFCAP (user_namespaces(7)).
	{name: "no SETFCAP", flags: withProfile + "--cap-drop SETFCAP", root: confined, user: nested},
	{name: "no capabilities", flags: withProfile + "--cap-drop ALL", root: confined, user: nested},
	{name: "SETFCAP alone", flags: withProfile + "--cap-drop ALL --cap-add SETFCAP", root: nested, user: nested},

	{name: "read-only root", flags: withProfile + "--read-only --tmpfs /tmp", root: nested, user: nested},
	{name: "read-only root and /tmp", flags: withProfile + "--read-only --tmpfs /tmp:ro", root: nested, user: nested},
	{name: "read-only root, nothing writable in it", flags: withProfile + "--read-only", root: nested, user: nested},
	{name: "noexec /tmp", flags: withProfile + "--tmpfs /tmp:noexec", root: nested, user: nested},
	{name: "no /tmp", flags: withProfile, change: func(r *recipe) { r.noTmp = true }, root: nested, user: nested},

	{name: "user namespace", flags: withProfile, change: ids(rangeIDs), root: nested, user: nested},
	{name: "rootless", flags: withProfile, change: ids(mappedIDs), root: nested, user: nested},
	{name: "rootless, unmasked", flags: unconfined + "--security-opt unmask=ALL", change: ids(mappedIDs), root: full, user: full},
	{name: "rootless, 1000 ids", flags: withProfile, change: ids(fewIDs), root: nested, user: nested},
	{name: "rootless, one id", flags: withProfile, change: ids(singleID), root: nested, user: nested},
	{name: "rootless, default", flags: "", change: ids(mappedIDs), root: confined, user: confined},

	{name: "Podman", podman: true, root: nested, user: nested},
	{name: "Podman, rootless", podman: true, change: ids(mappedIDs), root: nested, user: nested},
	{name: "Podman, unmasked", podman: true, flags: "--security-opt unmask=ALL", change: ids(mappedIDs), root: full, user: full},

	{name: "pod baseline", manifest: "kubernetes/pod-baseline.yaml", root: nested, user: nested},
	{name: "pod restricted", manifest: "kubernetes/pod-restricted.yaml", user: confined},
	{name: "pod nested", manifest: "kubernetes/deployment-nested.yaml", user: nested},
	{name: "pod full", manifest: "kubernetes/deployment.yaml", user: full},
	{name: "pod of a job", manifest: "kubernetes/job.yaml", user: nested},
	{name: "pod of Jenkins", manifest: "jenkins/pod.yaml", user: nested},

	{name: "GitHub Actions", ci: "github/workflow.yml", root: full, user: full},
	{name: "GitLab", ci: "gitlab/config.toml", root: nested, user: nested},
	{name: "Jenkins", ci: "jenkins/Jenkinsfile", root: nested, user: nested},
	{name: "Nomad", ci: "nomad/job.json", user: nested},
}

// TestMatrix: in every container a command of srt has all that the settings ask for, or srt says why it starts none.
func TestMatrix(t *testing.T) {
	for _, s := range shapes {
		r, err := s.recipe()
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
			continue
		}
		for engine := range engines {
			for _, as := range r.accounts() {
				want := s.user
				if as.uid == 0 {
					want = s.root
				}
				t.Run(fmt.Sprintf("%s/%s/uid %d", s.name, engine, as.uid), func(t *testing.T) {
					if _, err := os.Stat(podmanProfile()); err != nil && r.filter == ofPodman {
						t.Skipf("got no profile of Podman (%v), want one: install containers-common, or name one in SRT_PODMAN_PROFILE", err)
					}
					t.Parallel()
					judge(t, examine(t, engine, r, as), want)
				})
			}
		}
	}
}

// accounts are whom a container may run as: those that the recipe leaves, and that have an id in it.
func (r recipe) accounts() []account {
	ordinary := account{1001, 1001}
	switch {
	case r.uid != nil:
		return []account{{*r.uid, *r.uid}}
	case r.ids == singleID:
		return []account{{}}
	case r.ids == fewIDs:
		ordinary = account{501, 501}
	}
	return []account{{}, ordinary}
}

// examine runs the first process of a container.
func examine(t *testing.T, engine string, r recipe, as account) report {
	t.Helper()
	o := newContainer(t, engine, r, as).run(t, []string{toolPath + "/inside"}, []string{roleVariable + "=inside"})
	var got report
	if err := json.Unmarshal(o.stdout, &got); err != nil {
		t.Fatalf("the container ended with %d, %v\n%s\n%s", o.status, err, o.stdout, o.stderr)
	}
	return got
}

// judge compares what happened with a mode.
func judge(t *testing.T, got report, want mode) {
	t.Helper()
	if got.CheckStatus != int(want) || !strings.Contains(got.Check, `"mode": "`+want.String()+`"`) {
		t.Errorf("srt check exits with %d, want %d (%v): %s", got.CheckStatus, want, want, got.Check)
	}
	for _, c := range []struct {
		name  string
		got   trial
		works bool
	}{
		{"without enableWeakerNestedSandbox", got.Strict, want == full || want == nested},
		{"with enableWeakerNestedSandbox", got.Weaker, want != none},
	} {
		for _, broken := range c.got.Broken {
			t.Errorf("%s: %s", c.name, broken)
		}
		if refused := c.got.Refused != ""; refused == c.works {
			t.Errorf("%s: refused with %q, and %v should work: %v", c.name, c.got.Refused, want, c.works)
		}
		if c.got.Refused != "" && !strings.HasPrefix(c.got.Refused, "Error: ") {
			t.Errorf("%s: what it says is no error: %q", c.name, c.got.Refused)
		}
	}
}
