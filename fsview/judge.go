package fsview

import (
	"strconv"
	"syscall"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// Access is what a process wants to do with an object or a name.
type Access uint8

// The accesses. The zero value is the least.
const (
	AccessRead   Access = iota // see the object: open it for reading, list it, read a link, execute it
	AccessWrite                // change an object that exists: its content, mode, owner, times or attributes
	AccessCreate               // make a name, of whatever object
	AccessRemove               // take a name away: unlink, rmdir, rename to another name
)

var accessNames = [...]string{"read", "write", "create", "remove"}

// String is the access as a verb.
func (a Access) String() string {
	if int(a) < len(accessNames) {
		return accessNames[a]
	}
	return "unknown"
}

// Judgement is what a plan makes of one access. The zero value allows it, as far as the plan is concerned: the modes and
// owners of the host hold besides.
type Judgement struct {
	// Denied says that the object of the host cannot be accessed so.
	Denied bool
	// Rule is the place in the settings that decided, for example "filesystem.denyRead.0"; RuleAllowWrite where nothing
	// grants writing; for srt's own protections a short text. Entry is the entry as written, empty if none decided.
	Rule, Entry string
	// Reason is a sentence for the person, without the rule.
	Reason string
	// Path is where what the rule protects or hides begins: absolute, the judged path itself or one above it. For a pattern
	// it is the judged path, for a name that is still to be made what the rule forbids, which may lie beneath.
	Path string
	// Substitute says that the sandbox has an object of its own there, in memory: an empty directory, an empty file, a file
	// with another content. A call may succeed on that, and what the host has shows as missing (ENOENT).
	Substitute bool
	// Masked says that reading succeeds, on the content that a mask shows in the place of the host's (FS-58). The settings mean
	// programs to read that: nobody was refused anything.
	Masked bool
}

// refusals are the errors with which a denied access fails. What a pin or a mount holds in place is EBUSY, what a mount
// shows read-only EROFS, what Landlock or the mode of a hidden file refuses EACCES, and a rename out of a part EXDEV.
var refusals = [...]syscall.Errno{syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.EBUSY, syscall.EXDEV}

// Explains reports whether a call that failed with errno failed for the sake of this judgement. A file that a directory in
// memory hides is not there (FS-32). errno 0, a call that succeeded, is never explained.
func (v *Judgement) Explains(errno syscall.Errno) bool {
	if !v.Denied {
		return false
	}
	for _, e := range refusals {
		if errno == e {
			return true
		}
	}
	return v.Substitute && errno == syscall.ENOENT
}

// RuleAllowWrite is the rule of a refusal where the list of what may be written lacks an entry.
const RuleAllowWrite = "filesystem.allowWrite"

// RuleSSHConfigDir is the rule of the directory that every sandbox shows empty (FS-24). No setting is behind it, and ssh reads
// that directory at every start: who reads it has been refused nothing.
const RuleSSHConfigDir = "/etc/ssh/ssh_config.d"

// Judge says what a finished plan makes of an access: what its mounts, its Landlock rules and the broker do when a command
// tries. It makes no system call. A Judge is immutable and safe for concurrent use; one question costs about as many
// look-ups as its path has components, and one match for each pattern of the plan.
type Judge struct {
	steps  map[string]*Step // all but pins, by path
	pins   map[string]*Step
	root   zone
	guard  *Guard // nil where mounts hold the plan alone
	absent forbiddenNames
	causes causes
}

// NewJudge makes the judge of a plan, which must not change afterwards. It costs a look at each step and rule.
func NewJudge(p *Plan) *Judge {
	j := &Judge{steps: make(map[string]*Step, len(p.Steps)), pins: map[string]*Step{}, guard: NewGuard(p), causes: causes{plan: p},
		absent: forbiddenNamesOf(p.Absent)}
	if p.RootWritable || p.Unrestricted {
		j.root = zoneWritable
	}
	for i := range p.Steps {
		if s := &p.Steps[i]; s.Kind == Pin {
			j.pins[s.Path] = s
		} else {
			j.steps[s.Path] = s
		}
	}
	return j
}

// Judge judges one access. path is absolute, without "." and "..", and the caller has followed the symbolic links in it as
// the sandbox would; nothing need exist there.
func (j *Judge) Judge(path string, a Access) Judgement {
	if inKernelTree(path) {
		if v, decided := j.judgeKernel(path, a); decided {
			return v
		}
	}
	switch a {
	case AccessRead:
		return j.judgeRead(path)
	case AccessCreate:
		if j.steps[path] == nil { // else there is something, and it is opened
			return j.judgeCreate(path)
		}
	case AccessRemove:
		return j.judgeRemove(path)
	}
	return j.judgeWrite(path)
}

// covering is the deepest step that a path is at or beneath, nil if only the root is.
func (j *Judge) covering(path string) *Step {
	for path != "" {
		if s := j.steps[path]; s != nil {
			return s
		}
		path = above(path)
	}
	return j.steps["/"]
}

// zone is what a step makes of the objects beneath it, nil for the root.
func (j *Judge) zone(s *Step) zone {
	if s == nil {
		return j.root
	}
	return stepZones[s.Kind]
}

func (j *Judge) judgeRead(path string) Judgement {
	s := j.covering(path)
	if z := j.zone(s); z == zoneMemory || z == zoneReplaced {
		return j.replaced(s, path, AccessRead)
	}
	return j.judgeOpen(path)
}

// judgeOpen judges the opening of what no mount hides, by the rules about what came to exist later.
func (j *Judge) judgeOpen(path string) Judgement {
	why, denied := j.guard.Open(path)
	if !denied {
		return Judgement{}
	}
	v := j.denied(why, path)
	v.Reason = "it must not be opened, although it did not exist when the command started"
	return v
}

func (j *Judge) judgeWrite(path string) Judgement {
	s := j.covering(path)
	if v := j.judgeZone(s, path, AccessWrite); v.Denied {
		return v
	}
	return j.judgeOpen(path)
}

// judgeZone judges a change by what a step makes of the objects beneath it. path is what the change is about.
func (j *Judge) judgeZone(s *Step, path string, a Access) Judgement {
	switch j.zone(s) {
	case zoneWritable:
		return Judgement{}
	case zoneReadOnly:
		return j.readOnly(s, path)
	}
	return j.replaced(s, path, a)
}

// readOnly is the judgement of a change to what shows read-only.
func (j *Judge) readOnly(s *Step, path string) Judgement {
	why := ""
	switch {
	case s == nil:
	case s.Kind == Reveal:
		why = s.Unwritable
	default:
		why = s.Why
	}
	if why == "" {
		if rule := j.causes.plan.protectedWherever(path); rule != "" {
			return Judgement{Denied: true, Rule: rule, Path: path, Reason: "it is protected, whatever entry grants writing there"}
		}
		return Judgement{Denied: true, Rule: RuleAllowWrite, Path: path, Reason: "no entry grants writing there"}
	}
	v := j.denied(why, s.Path)
	v.Reason = "it is shown read-only"
	if s.Path != path {
		v.Reason = "it lies in " + strconv.Quote(s.Path) + ", which is shown read-only"
	}
	return v
}

// replacedTexts say what shows in the place of an object.
var replacedTexts = [...]string{HideDir: "an empty directory in memory", EmptyDir: "an empty directory", HideFile: "an empty file",
	Mask: "a file with other content", Supplied: "a file of the sandbox's own"}

// replaced is the judgement of an access to what does not show.
func (j *Judge) replaced(s *Step, path string, a Access) Judgement {
	if s.Kind == Supplied && a == AccessRead {
		return Judgement{Substitute: true, Path: s.Path}
	}
	v := j.denied(s.Why, s.Path)
	v.Substitute = true
	v.Masked = s.Kind == Mask && a == AccessRead && s.Path == path
	v.Reason = "the command sees " + replacedTexts[s.Kind] + " in its place"
	if s.Path != path {
		v.Reason = "it lies in " + strconv.Quote(s.Path) + ", in whose place the command sees " + replacedTexts[s.Kind]
	}
	if s.Kind == HideDir && a != AccessRead {
		v.Reason += "; what it writes there is gone when it ends"
	}
	return v
}

// judgeRemove judges the taking away of a name: what is mounted or pinned there keeps it in place (FS-41, FS-42), then it is
// a change of the directory around it.
func (j *Judge) judgeRemove(path string) Judgement {
	held := j.steps[path]
	if held == nil {
		held = j.pins[path]
	}
	dir := above(path)
	if dir == "" {
		dir = "/"
	}
	around := j.covering(dir)
	z := j.zone(around)
	switch {
	case path == "/":
		return Judgement{Denied: true, Rule: "root directory", Path: path, Reason: "it cannot be removed"}
	case held != nil && (z == zoneWritable || stepZones[held.Kind] == zoneMemory || stepZones[held.Kind] == zoneReplaced):
		return j.inPlace(held, path)
	}
	return j.judgeZone(around, path, AccessRemove)
}

// inPlace is the judgement of the removal of a name that a step holds.
func (j *Judge) inPlace(s *Step, path string) Judgement {
	v := j.denied(s.Why, path)
	switch s.Kind {
	case Pin, Writable, RevealWritable, Reveal:
		v.Reason = "it holds, or leads to, something that is protected, and cannot be renamed or removed"
	default:
		v.Substitute = stepZones[s.Kind] != zoneReadOnly
		v.Reason = "it is protected, and cannot be renamed or removed"
	}
	return v
}

// denied is a refusal by the rule that a Why of the plan names.
func (j *Judge) denied(why, path string) Judgement {
	rule, entry := j.causes.split(why)
	return Judgement{Denied: true, Rule: rule, Entry: entry, Path: path}
}

// Grant names what grants writing at a path, for one at which a Judge denies neither writing nor creating: the rule and the
// entry behind it, both empty where none is needed, as in /dev and /proc.
func (j *Judge) Grant(path string) (rule, entry string) {
	s := j.covering(path)
	switch {
	case inKernelTree(path), j.zone(s) != zoneWritable:
		return "", ""
	case s == nil && j.causes.plan.Unrestricted:
		return "filesystem.disabled", ""
	case s != nil && s.Kind == Writable:
		return j.causes.split(s.Why)
	}
	// The whole tree, or what a list of reading shows again in a hidden directory: the write root is not in the step.
	for i := range j.causes.plan.Rules.AllowWrite {
		if r := &j.causes.plan.Rules.AllowWrite[i]; !r.Pattern && policy.Covers(r.Path, path) {
			return r.Key, r.Entry
		}
	}
	return RuleAllowWrite, ""
}

// Shown reports whether a path is the name of something that a step shows from elsewhere: a link there is not followed, and
// its target shows under this name alone (FS-9).
func (j *Judge) Shown(path string) bool {
	s := j.steps[path]
	return s != nil && s.Source != "" && s.Source != s.Path
}
