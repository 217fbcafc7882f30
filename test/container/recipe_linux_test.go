package container

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// filter is which system calls a container may make.
type filter string

const (
	unfiltered filter = "unconfined" // Docker's and Kubernetes' name for no filter
	byDefault  filter = "default"    // Docker's profile, which is RuntimeDefault of containerd as well
	ofPodman   filter = "podman"     // the profile of Podman, where this machine has it (podmanProfile)
	closed     filter = "closed"     // the default profile without the calls of Landlock, which older engines do not know
	opened     filter = "opened"     // the default profile with examples/containers/seccomp-additions.json
)

// identities are how user ids inside of a container map to those outside.
type identities int

const (
	sameIDs   identities = iota // no user namespace
	rangeIDs                    // a user namespace of the machine's making, 65536 ids (hostUsers: false, userns-remap)
	mappedIDs                   // rootless: the starting user is root inside, with the ids of /etc/subuid
	fewIDs                      // the same with 1000 ids, as nested Podman has
	singleID                    // rootless without newuidmap: root alone
)

// rootless tells whether an ordinary user starts the container.
func (i identities) rootless() bool { return i >= mappedIDs }

// recipe is what of a container counts for srt. The zero value is a container as Docker makes it, but without a filter.
type recipe struct {
	filter       filter
	added        []string // capabilities beyond defaultCapabilities, or "ALL"
	dropped      []string // of these, or "ALL"
	noNewPrivs   bool
	unmasked     bool // nothing in /proc and /sys is hidden or read-only
	writableSys  bool
	readOnlyRoot bool
	tmpfs        map[string][]string // path -> options
	noTmp        bool                // an image without /tmp
	ids          identities
	nonRoot      bool              // may not start as root (runAsNonRoot)
	uid          *int              // the user that the recipe names
	files        map[string]string // of the image, by path: a text, or a link as "-> target"
}

// defaultCapabilities are what Docker and containerd give a container (moby/daemon/pkg/oci/caps, containerd/pkg/oci).
var defaultCapabilities = []string{"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW", "CAP_SETGID",
	"CAP_SETUID", "CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL", "CAP_AUDIT_WRITE"}

// allCapabilities are those of Linux 5.9 and later, by number (capabilities(7)).
var allCapabilities = strings.Fields(`CAP_CHOWN CAP_DAC_OVERRIDE CAP_DAC_READ_SEARCH CAP_FOWNER CAP_FSETID CAP_KILL CAP_SETGID CAP_SETUID
	CAP_SETPCAP CAP_LINUX_IMMUTABLE CAP_NET_BIND_SERVICE CAP_NET_BROADCAST CAP_NET_ADMIN CAP_NET_RAW CAP_IPC_LOCK CAP_IPC_OWNER
	CAP_SYS_MODULE CAP_SYS_RAWIO CAP_SYS_CHROOT CAP_SYS_PTRACE CAP_SYS_PACCT CAP_SYS_ADMIN CAP_SYS_BOOT CAP_SYS_NICE
	CAP_SYS_RESOURCE CAP_SYS_TIME CAP_SYS_TTY_CONFIG CAP_MKNOD CAP_LEASE CAP_AUDIT_WRITE CAP_AUDIT_CONTROL CAP_SETFCAP
	CAP_MAC_OVERRIDE CAP_MAC_ADMIN CAP_SYSLOG CAP_WAKE_ALARM CAP_BLOCK_SUSPEND CAP_AUDIT_READ CAP_PERFMON CAP_BPF
	CAP_CHECKPOINT_RESTORE`)

// capabilities are what root has in the container.
func (r recipe) capabilities() []string {
	list := slices.Clone(defaultCapabilities)
	if slices.Contains(r.added, "ALL") {
		list = available()
	}
	if slices.Contains(r.dropped, "ALL") {
		list = nil
	}
	for _, name := range r.added {
		if name = capability(name); name != "CAP_ALL" && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return slices.DeleteFunc(list, func(name string) bool {
		return slices.ContainsFunc(r.dropped, func(d string) bool { return capability(d) == name })
	})
}

// available are all capabilities that this machine lets anybody have; Docker gives a privileged container no other ones.
func available() []string {
	var bounds uint64
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	_, line, _ := strings.Cut(string(text), "\nCapBnd:")
	if _, err := fmt.Sscanf(line, "%x", &bounds); err != nil {
		panic(err)
	}
	var list []string
	for number, name := range allCapabilities {
		if bounds&(1<<number) != 0 {
			list = append(list, name)
		}
	}
	return list
}

func capability(name string) string {
	return "CAP_" + strings.TrimPrefix(strings.ToUpper(name), "CAP_")
}

// privileged opens all that --privileged and privileged: true open.
func (r *recipe) privileged() {
	r.added, r.unmasked, r.writableSys, r.filter = []string{"ALL"}, true, true, unfiltered
}

// asPodman makes a container of docker run one of podman run (containers/common, pkg/config, DefaultCapabilities).
func (r *recipe) asPodman() {
	if r.filter == byDefault {
		r.filter = ofPodman
	}
	r.dropped = append(r.dropped, "MKNOD", "NET_RAW", "AUDIT_WRITE")
}

// securityOptions are what --security-opt of docker run and podman run may say here. AppArmor's are for machines that have
// it: those have no counterpart in an OCI specification where the kernel has no AppArmor.
var securityOptions = map[string]func(*recipe){
	"no-new-privileges":                 func(r *recipe) { r.noNewPrivs = true },
	"no-new-privileges=true":            func(r *recipe) { r.noNewPrivs = true },
	"seccomp=unconfined":                func(r *recipe) { r.filter = unfiltered },
	"seccomp=srt-seccomp.json":          func(r *recipe) { r.filter = opened },
	"seccomp=/etc/srt/srt-seccomp.json": func(r *recipe) { r.filter = opened },
	"systempaths=unconfined":            func(r *recipe) { r.unmasked = true }, // Docker
	"unmask=ALL":                        func(r *recipe) { r.unmasked = true }, // Podman
	"unmask=/proc/*":                    func(r *recipe) { r.unmasked = true },
	"apparmor=unconfined":               func(*recipe) {},
	"apparmor=srt-container":            func(*recipe) {},
}

// fromFlags is the container of docker run with these flags (docker-run(1)); an unknown one is an error, so that no recipe is
// documented that the tests do not understand.
func fromFlags(flags string) (recipe, error) {
	r := recipe{filter: byDefault, tmpfs: map[string][]string{}}
	words := strings.Fields(flags)
	for i := 0; i < len(words); i++ {
		name, value, given := strings.Cut(words[i], "=")
		next := func() string {
			if !given && i+1 < len(words) {
				i++
				value = words[i]
			}
			return value
		}
		switch name {
		case "--privileged":
			r.privileged()
		case "--read-only":
			r.readOnlyRoot = true
		case "--security-opt":
			open, ok := securityOptions[next()]
			if !ok {
				return r, fmt.Errorf("--security-opt %s: not known to the tests", value)
			}
			open(&r)
		case "--cap-add":
			r.added = append(r.added, next())
		case "--cap-drop":
			r.dropped = append(r.dropped, next())
		case "--tmpfs":
			path, options, _ := strings.Cut(next(), ":")
			r.tmpfs[path] = strings.FieldsFunc(options, func(c rune) bool { return c == ',' })
		case "--user", "-u":
			var uid int
			if _, err := fmt.Sscanf(next(), "%d", &uid); err != nil {
				return r, fmt.Errorf("--user %s: a number is needed", value)
			}
			r.uid = &uid
		case "--rm", "-i", "-t", "-it", "--init":
		case "-v", "--volume", "-w", "--workdir", "-e", "--env", "--name", "--network":
			next() // what the tests have of their own
		default:
			return r, fmt.Errorf("%s: not known to the tests", words[i])
		}
	}
	return r, nil
}
