package hostfacts

import (
	"maps"
	"strings"
	"testing"
)

const (
	hostMounts = "22 1 8:1 / / rw - ext4 /dev/sda rw\n23 22 0:5 / /proc rw - proc proc rw\n24 23 0:30 / /proc/sys/fs/binfmt_misc rw - autofs x rw"
	maskedProc = "22 1 8:1 / / rw - overlay overlay rw\n23 22 0:5 / /proc rw - proc proc rw\n24 23 0:5 /bus /proc/bus ro - proc proc rw"
	chroot     = "7 1 8:1 / /srv rw - ext4 /dev/sda rw"
	filtered   = "Name:\tsrt\nNoNewPrivs:\t0\nSeccomp:\t2\nSeccomp_filters:\t1"
	noSetfcap  = "Name:\tsrt\nCapEff:\t00000000280425fb\nSeccomp:\t2" // Docker's default capabilities without CAP_SETFCAP
	setsFcap   = "Name:\tsrt\nCapEff:\t00000000a80425fb\nSeccomp:\t2"
	unfiltered = "Name:\tsrt\nNoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0"
)

// host is an ordinary machine and an ordinary user of it.
func host(files, env map[string]string) Fake {
	f := Fake{User: 1000, Path: "/usr/bin/srt", Env: env, Files: map[string]string{"/proc/self/status": unfiltered, "/proc/self/mountinfo": hostMounts,
		"/proc/sys/user/max_user_namespaces": "15000"}}
	maps.Copy(f.Files, files)
	return f
}

// TestRemedyFor gives each surrounding the traces that it leaves, and looks for the one thing to do.
func TestRemedyFor(t *testing.T) {
	type m = map[string]string
	for name, c := range map[string]struct {
		files, env m
		root       bool
		feature    string
		want       string // in the remedy; empty: none is known
	}{
		"nothing known":           {nil, nil, false, "userns", ""},
		"limit of user":           {m{"/proc/sys/user/max_user_namespaces": "0"}, nil, true, "userns", "sysctl -w user.max_user_namespaces=15000"},
		"limit of net":            {m{"/proc/sys/user/max_net_namespaces": "0"}, nil, true, "net", "sysctl -w user.max_net_namespaces=15000"},
		"Debian's switch":         {m{"/proc/sys/kernel/unprivileged_userns_clone": "0"}, nil, false, "userns", "kernel.unprivileged_userns_clone=1"},
		"Debian's switch, root":   {m{"/proc/sys/kernel/unprivileged_userns_clone": "0"}, nil, true, "userns", ""},
		"AppArmor":                {m{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"}, nil, false, "mount", "apparmor_parser -r /etc/apparmor.d/srt"},
		"AppArmor, in a unit":     {m{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1", "/proc/self/status": filtered}, nil, false, "mount", "apparmor_parser"},
		"AppArmor, in Docker":     {m{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1", "/proc/self/status": filtered, "/.dockerenv": ""}, nil, false, "mount", "docker run --security-opt seccomp=unconfined"},
		"Docker":                  {m{"/proc/self/status": filtered, "/.dockerenv": ""}, nil, true, "userns", "apparmor=unconfined"},
		"Podman":                  {m{"/proc/self/status": filtered, "/run/.containerenv": ""}, nil, true, "userns", "podman run --security-opt seccomp=unconfined"},
		"Kubernetes":              {m{"/proc/self/status": filtered}, m{"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, true, "userns", "seccompProfile: {type: Unconfined}"},
		"Kubernetes by cgroup":    {m{"/proc/self/status": filtered, "/proc/self/cgroup": "0::/kubepods/burstable/x"}, nil, true, "userns", "seccompProfile"},
		"an unnamed container":    {m{"/proc/self/status": filtered}, nil, true, "userns", "seccomp=unconfined"},
		"docker's AppArmor":       {m{"/proc/self/attr/apparmor/current": "docker-default (enforce)", "/.dockerenv": ""}, nil, true, "mount", "apparmor=unconfined"},
		"in a sandbox":            {m{"/proc/self/status": filtered, "/.dockerenv": ""}, m{"SANDBOX_RUNTIME": "1"}, false, "userns", "allowNestedUserNamespaces"},
		"root without SETFCAP":    {m{"/proc/self/status": noSetfcap, "/.dockerenv": ""}, nil, true, "userns", "docker run --cap-add SETFCAP --security-opt seccomp=unconfined"},
		"the same in Podman":      {m{"/proc/self/status": noSetfcap, "/run/.containerenv": ""}, nil, true, "userns", "podman run --cap-add SETFCAP"},
		"the same in Kubernetes":  {m{"/proc/self/status": noSetfcap}, m{"KUBERNETES_SERVICE_HOST": "1"}, true, "userns", "capabilities: {add: [SETFCAP]}"},
		"the same in a unit":      {m{"/proc/self/status": noSetfcap}, nil, true, "userns", "as another user, or with that capability"},
		"root with SETFCAP":       {m{"/proc/self/status": setsFcap, "/.dockerenv": ""}, nil, true, "userns", "docker run --security-opt seccomp"},
		"a user without SETFCAP":  {m{"/proc/self/status": noSetfcap, "/.dockerenv": ""}, nil, false, "userns", "docker run --security-opt seccomp"},
		"a chroot":                {m{"/proc/self/mountinfo": chroot}, nil, false, "userns", "outside it"},
		"masked, in Docker":       {m{"/proc/self/mountinfo": maskedProc, "/.dockerenv": ""}, nil, true, "procfs", "systempaths=unconfined"},
		"masked, in Podman":       {m{"/proc/self/mountinfo": maskedProc, "/run/.containerenv": ""}, nil, true, "procfs", "unmask=ALL"},
		"masked, in Kubernetes":   {m{"/proc/self/mountinfo": maskedProc}, m{"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, true, "procfs", "procMount: Unmasked"},
		"masked, unnamed":         {m{"/proc/self/mountinfo": maskedProc}, nil, true, "procfs", "systempaths=unconfined"},
		"Landlock":                {nil, nil, true, "landlock", "lsm="},
		"Landlock in a sandbox":   {nil, m{"SANDBOX_RUNTIME": "1"}, true, "landlock", "allowNestedUserNamespaces"},
		"a listener":              {nil, nil, true, "notify", "listens"},
		"pidfd_getfd in Docker":   {m{"/proc/self/status": filtered, "/.dockerenv": ""}, nil, true, "pidfd_getfd", "--cap-add SYS_PTRACE"},
		"pidfd_getfd, Kubernetes": {m{"/proc/self/status": filtered}, m{"KUBERNETES_SERVICE_HOST": "1"}, true, "pidfd_getfd", "add: [SYS_PTRACE]"},
		"Yama":                    {nil, nil, false, "ptrace", "kernel.yama.ptrace_scope=1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := host(c.files, c.env)
			if c.root {
				s.User = 0
			}
			got := Look(s).RemedyFor(c.feature)
			if c.want == "" && !got.IsZero() || c.want != "" && !strings.Contains(got.String(), c.want) {
				t.Errorf("%q, want it to say %q", got.String(), c.want)
			}
		})
	}
}

// TestMaskedProc: what a host mounts in /proc masks nothing.
func TestMaskedProc(t *testing.T) {
	for text, want := range map[string]bool{hostMounts: false, maskedProc: true, chroot: false, "": false} {
		if got := Look(Fake{Files: map[string]string{"/proc/self/mountinfo": text}}).MaskedProc; got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestProfile states the text, and how a path is spelled in it.
func TestProfile(t *testing.T) {
	f := host(map[string]string{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1"}, nil)
	r := Look(f).RemedyFor("userns")
	const want = "abi <abi/4.0>,\ninclude <tunables/global>\n\nprofile srt /usr/bin/srt flags=(unconfined) {\n  userns,\n\n  include if exists <local/srt>\n}\n"
	if r.Content != want || r.File != "/etc/apparmor.d/srt" {
		t.Errorf("%q in %q", r.Content, r.File)
	}
	for path, want := range map[string]string{
		"/usr/local/bin/srt": "/usr/local/bin/srt", "/home/a b/srt": `"/home/a b/srt"`, "/x/*/srt": `"/x/\*/srt"`, `/x"{1}/srt`: `"/x\"\{1\}/srt"`,
	} {
		if got := attachment(path); got != want {
			t.Errorf("%s is spelled %s", path, got)
		}
	}
	f.Path = ""
	if r := Look(f).RemedyFor("userns"); r.Content != "" || !strings.Contains(r.String(), "apparmor_restrict_unprivileged_userns=0") {
		t.Errorf("without a path: %+v", r)
	}
}
