package bpf

import (
	"fmt"
	"strings"
)

// Rule says that Name must not be created in a directory, by whatever call (FS-30).
type Rule struct {
	// Dir is an absolute path without symbolic links, in the mount namespace of this process. It is opened once, must be
	// Dev and Ino then (stat(2)), and must stay in memory while the session lasts; a mount on it sees to that.
	Dir      string
	Dev, Ino uint64
	Name     string // one component, any bytes but "/" and NUL
	Fold     bool   // Name stands for itself in any letter case (FS-38)
}

// Bounds of names in rules. A name that is to be compared without regard to case may be spelled with letters of three
// bytes, and must fit in the same 255 bytes then.
const (
	nameSize       = 256
	maxName        = nameSize - 1
	maxFolded      = maxName / 3
	maxSpellings   = 64
	kelvin, dotted = "\u212a", "\u0130" // the letters beyond ASCII whose small form is ASCII: k, i
)

// spellings are the names under which a rule is looked up: the one of an exact rule; of a folded one all that are left
// after the programs have made ASCII letters small.
func (r *Rule) spellings() ([]string, error) {
	switch {
	case r.Name == "" || r.Name == "." || r.Name == "..":
		return nil, r.bad("it names no entry")
	case strings.ContainsAny(r.Name, "/\x00"):
		return nil, r.bad("it is no single name")
	case len(r.Name) > maxName:
		return nil, r.bad("it is longer than 255 bytes")
	case !r.Fold:
		return []string{r.Name}, nil
	}
	small := strings.ToLower(r.Name)
	for i := range len(small) {
		if small[i] >= 0x80 {
			return nil, r.bad("letters beyond ASCII cannot be compared in the kernel without regard to case")
		}
	}
	if len(small) > maxFolded {
		return nil, r.bad("it is longer than 85 bytes and to be compared without regard to case")
	}
	all := []string{""}
	for i := range len(small) {
		letters := []string{small[i : i+1]}
		switch small[i] {
		case 'k':
			letters = append(letters, kelvin)
		case 'i':
			letters = append(letters, dotted)
		}
		if len(all)*len(letters) > maxSpellings {
			return nil, r.bad("it has too many spellings")
		}
		next := make([]string, 0, len(all)*len(letters))
		for _, start := range all {
			for _, letter := range letters {
				next = append(next, start+letter)
			}
		}
		all = next
	}
	return all, nil
}

func (r *Rule) bad(why string) error {
	return fmt.Errorf("rule for %q in %s: %s: %w", r.Name, r.Dir, why, ErrRule)
}

// Operation is the kind of call that was refused.
type Operation uint16

// The operations, as the programs number them.
const (
	OpUnknown Operation = iota
	OpCreate            // open(2) or creat(2)
	OpMkdir             // mkdir(2)
	OpMknod             // mknod(2), or bind(2) of a Unix socket
	OpSymlink           // symlink(2)
	OpLink              // link(2)
	OpRename            // rename(2), onto the name
)

var operationNames = [...]string{"unknown", "create", "mkdir", "mknod", "symlink", "link", "rename"}

// String is the lower-case name of o.
func (o Operation) String() string {
	if int(o) < len(operationNames) {
		return operationNames[o]
	}
	return "unknown"
}

// Refusal is one creation that the kernel refused.
type Refusal struct {
	Rule      int // index in the order of Session.Add, over all its calls
	Pid, Tid  int // as the host sees them
	Operation Operation
	Process   string // the thread's own name for itself: not to be trusted, 15 bytes at most
	Name      string // as spelled by the caller; empty when the kernel could not read it
}
