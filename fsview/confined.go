package fsview

import (
	"fmt"
	"slices"
	"strings"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// A sandbox without mounts of its own (mode confined, docs/modes.md) is held to the same plan in another way:
//
//	what a command changes   by the broker, to which every such call is put, with what ConfinedJudge says of its location
//	what a command reads     by Landlock, which is given what may be read around that which may not (ReadRules)
//	what no wall can show    refused before anything starts (ConfineError): another content in the place of a file, and a
//	                         part of a place that can be written to which cannot be read

// ConfineInput is what confined mode has to know beside a plan.
type ConfineInput struct {
	// Tree is the disk that the plan was made of. Only directories on the way to what is hidden are listed.
	Tree Tree
	// UID is the effective user id of the caller, as in Input.
	UID int
	// ExtraWrite is Input's: of it counts what lies in /dev/shm, which a sandbox with mounts has its own of.
	ExtraWrite []string
	// AllUnixSockets leaves abstract sockets of the host in reach (network.allowAllUnixSockets).
	AllUnixSockets bool
}

// RefusalKind is what cannot be had without mounts: the name of a row of the table of modes (runtime/modetable).
type RefusalKind string

// The kinds.
const (
	RefusedMask     RefusalKind = "mask"
	RefusedHide     RefusalKind = "hide-in-write-root"
	RefusedProc     RefusalKind = "hide-in-proc"
	RefusedShm      RefusalKind = "hide-in-shm"
	RefusedSame     RefusalKind = "hide-twice-shown"
	RefusedUnlisted RefusalKind = "hide-unlisted" // or not to be inspected any more
	RefusedMany     RefusalKind = "hide-many"
)

// RefusalKinds are all of them.
func RefusalKinds() []RefusalKind {
	return []RefusalKind{RefusedMask, RefusedHide, RefusedProc, RefusedShm, RefusedSame, RefusedUnlisted, RefusedMany}
}

// Refusal is one thing that the settings ask for and that cannot be had without mounts.
type Refusal struct {
	Kind    RefusalKind
	Setting string // the place in the settings, or what else asks for it: "private file"
	Entry   string // the entry as written, empty if none is behind it
	Path    string // the location that it is about
	Why     string // why it cannot be had, and what to do
}

// ConfineError lists all that keeps a plan from being held in mode confined, in the order of the plan.
type ConfineError struct{ Refusals []Refusal }

func (e *ConfineError) Error() string {
	var text strings.Builder
	text.WriteString("without mounts (mode confined) the settings cannot be held:")
	for _, r := range e.Refusals {
		fmt.Fprintf(&text, "\n  %s", r.Setting)
		if r.Entry != "" {
			fmt.Fprintf(&text, " (%q)", r.Entry)
		}
		fmt.Fprintf(&text, ": %q %s (docs/modes.md: %s)", r.Path, r.Why, r.Kind)
	}
	return text.String()
}

// The reasons of refusals. Each says what to do.
const (
	whyMask = "cannot show another content than it has, which takes a mount: deny the file (\"mode\": \"deny\"), or mask a variable instead of it"
	whyHide = "lies in a place that can be written to, where what may be read can only be said of all of it: " +
		"take it out of filesystem.allowWrite by naming the directories beside it, or deny writing alone (filesystem.denyWrite)"
	whyProc = "lies in /proc, where entries come and go with processes, so that the others cannot be listed: deny /proc as a whole, or nothing in it"
	whyShm  = "lies in /dev/shm, which is the host's own here and is granted as a whole: take /dev/shm out of filesystem.allowWrite, or the entry out"
	whyMany = "takes more Landlock rules than the %d that srt gives: name a directory with fewer names beside it"
	whyGone = "cannot be hidden: %q cannot be inspected any more (%v); start again"
	whySame = "is the very directory that %q shows as well, which is not denied, and what may be read can only be said of both: deny both, or neither"
	whyList = "lies beneath %q, which cannot be listed (%v), so that what is beside it cannot be granted: deny that directory instead"
)

// Confined is a plan as mode confined holds it. It is immutable and safe for concurrent use.
type Confined struct {
	plan *Plan
	in   ConfineInput
	// read are what a command may read, write what the hands may change.
	read  []ReadRule
	write []WritableRule
	// judged says that something in a place that can be written to is hidden, which openings have to be judged for.
	judged bool
	// shm says that /dev/shm, the host's, is granted.
	shm   bool
	marks []mark
}

// Confine says how a plan is held without mounts. The plan must not change afterwards. The error is a *ConfineError.
func Confine(pl *Plan, in ConfineInput) (*Confined, error) {
	c := &confiner{Confined: &Confined{plan: pl, in: in}, judge: NewJudge(pl)}
	for i := range pl.Steps {
		c.step(&pl.Steps[i])
	}
	c.grantShm()
	if len(c.refused) == 0 {
		c.grantReading()
	}
	if len(c.refused) > 0 {
		return nil, &ConfineError{c.refused}
	}
	return c.Confined, nil
}

// confiner carries one Confine.
type confiner struct {
	*Confined
	judge   *Judge
	refused []Refusal
	shown   []Step // reveals
	objects objects
}

// refuse notes what cannot be had, with what asks for it.
func (c *confiner) refuse(kind RefusalKind, why, path, text string) {
	rule, entry := c.judge.causes.split(why)
	c.refused = append(c.refused, Refusal{Kind: kind, Setting: rule, Entry: entry, Path: path, Why: text})
}

// ownRules are the rules of srt's own that hide something. All others are taken for entries of the settings.
var ownRules = [...]string{keyPrivateFile, keyOwnDir, keyKernelMount}

// isSetting tells an entry of the settings from a rule of srt's own.
func (c *confiner) isSetting(s *Step) bool {
	rule, _ := c.judge.causes.split(s.Why)
	return !slices.Contains(ownRules[:], rule)
}

// conceals reports whether a step stands for something that must not be read. An empty directory stands in for one that is no
// secret but that ssh does not like in a user namespace (FS-24), a supplied file for one that a network namespace makes
// wrong (NET-7), and some hidden files for ones that must not be written to: what is there is judged here.
func (s *Step) conceals() bool {
	return s.Kind == HideDir || s.Kind == Mask || s.Kind == HideFile && s.Unwritable == ""
}

// step sorts one step out.
func (c *confiner) step(s *Step) {
	switch {
	case s.Kind == Reveal || s.Kind == RevealWritable:
		c.shown = append(c.shown, *s)
	case s.Kind == Mask:
		c.refuse(RefusedMask, s.Why, s.Path, whyMask)
	case !s.conceals(), policy.Covers("/dev", s.Path) && s.Path != "/dev": // of /dev the usual devices show alone
	case policy.Covers("/proc", s.Path) && s.Path != "/proc":
		if c.isSetting(s) {
			c.refuse(RefusedProc, s.Why, s.Path, whyProc)
		}
	case c.inWriteRoot(s.Path) && c.isSetting(s):
		c.refuse(RefusedHide, s.Why, s.Path, whyHide)
	case c.inWriteRoot(s.Path):
		c.judged = true
	default:
		c.mark(s)
	}
}

// inWriteRoot reports whether a path lies in a place that can be written to, be it in a part of that which cannot: what a command
// makes there has to be readable, so that it is granted as a whole. The kernel's own trees are no part of the root directory.
func (c *confiner) inWriteRoot(path string) bool {
	return slices.ContainsFunc(c.plan.Writable, func(w WritableRule) bool {
		return w.Path != path && policy.Covers(w.Path, path) && (w.Path != "/" || !inKernelTree(path))
	})
}

// mark notes what must not be read. What is srt's own has no names that are a secret: with them hidden, no command of root's
// could list the root directory.
func (c *confiner) mark(s *Step) {
	m := mark{path: s.Path, dir: s.Dir && c.isSetting(s), why: s.Why}
	if !s.Late {
		m.id = s.ID
	}
	c.marks = append(c.marks, m)
}

// sharedMemory is what mode confined grants only where a list names it. Elsewhere each sandbox has its own (FS-47).
const sharedMemory = "/dev/shm"

// grantShm sets what may be changed: the write roots, and /dev/shm where the lists name it or something in it.
func (c *confiner) grantShm() {
	c.write = append(c.write, c.plan.Writable...)
	c.shm = c.plan.Unrestricted
	for _, r := range c.plan.Rules.AllowWrite {
		c.shm = c.shm || !r.Pattern && (policy.Covers(r.Path, sharedMemory) || policy.Covers(sharedMemory, r.Path))
	}
	for _, p := range c.in.ExtraWrite {
		c.shm = c.shm || policy.Covers(sharedMemory, p)
	}
	if !c.shm {
		return
	}
	c.write = append(c.write, WritableRule{Path: sharedMemory, Dir: true})
	c.read = append(c.read, ReadRule{Path: sharedMemory, Right: readAll, Dir: true, Listed: true})
	for _, list := range [...][]policy.PathRule{c.plan.Rules.DenyRead, c.plan.Rules.DenyWrite, c.plan.Rules.CredentialDeny} {
		for _, r := range list {
			if policy.Covers(sharedMemory, r.Path) {
				c.refused = append(c.refused, Refusal{Kind: RefusedShm, Setting: r.Key, Entry: r.Entry, Path: r.Path, Why: whyShm})
			}
		}
	}
}

// WriteRules are the places in which hands may change something, the second wall behind the judge. In no order.
func (c *Confined) WriteRules() []WritableRule { return c.write }

// ReadRules are what a command, and a hand, may read. In path order.
func (c *Confined) ReadRules() []ReadRule { return c.read }
