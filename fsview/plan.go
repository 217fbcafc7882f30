package fsview

import (
	"io/fs"

	"github.com/srt-sandbox/srt/runtime/policy"
)

// Kind says what a step of a plan does at its path.
type Kind uint8

// The kinds of step. The zero Kind does nothing and never appears in a plan.
const (
	KindNone       Kind = iota
	Writable            // the pristine object, writable as on the host, onto its own path
	ReadOnly            // what is visible at the path by then, made read-only, onto itself; never a FIFO or socket
	HideDir             // a fresh directory in memory, mode 0755, writable (FS-32)
	HideFile            // an empty read-only file of mode 0000 (FS-31)
	Reveal              // the pristine object, read-only, inside a hidden directory (FS-25)
	RevealWritable      // the pristine object, writable as on the host, inside a hidden directory
	Pin                 // keeps the object from being renamed or removed, changes nothing else (FS-41, FS-42)
	EmptyDir            // an empty read-only directory (FS-24)
	Mask                // a read-only file of the caller, mode 0600, with the step's Content (FS-58)
	Supplied            // the same with mode 0644, also in the place of a symbolic link (SuppliedFile)
)

var kindNames = [...]string{"none", "writable", "read-only", "hide directory", "hide file", "reveal", "reveal writable",
	"pin", "empty directory", "mask", "supplied file"}

// String is the lower-case name of k for listings.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Identity says which object a path named when the plan was made.
type Identity struct {
	Dev, Ino uint64      // st_dev and st_ino
	Type     fs.FileMode // the type bits alone (fs.ModeType)
}

// Step is one mount of a plan. All paths are absolute and hold no symbolic link on the way.
type Step struct {
	Kind Kind
	Path string // where it is put
	// Source is where the content of a Reveal or RevealWritable comes from, in the tree before any step; it differs
	// from Path only for a re-allowed symbolic link (FS-9). Empty for other kinds.
	Source string
	// ID is the object at Source, or at Path when there is no Source, in the tree before any step. It is not
	// meaningful for a Late step beneath /proc and /dev, whose content is replaced.
	ID  Identity
	Dir bool // the object is a directory
	// Make lists, for a reveal and for a mask or supplied file in a hidden directory, what has to be created inside the
	// directory HiddenBy first: paths relative to it, in order, each a directory but the last when Dir is false, which is
	// then an empty file. The last is the mount point itself. A path is listed once in a whole plan.
	Make     []string
	HiddenBy string // where Make is used: the Path of the step that hides the directory around it
	Content  []byte // what a Mask or Supplied shows; not the file's own bytes
	// Late marks a step beneath /proc, /dev or /sys. It is applied after these have been replaced; beneath /proc and
	// /dev an object that is no longer there needs no hiding (FS-47).
	Late bool
	Why  string // the entry or name behind it and its rule, for example "filesystem.denyWrite.0 (FS-26)"
	// Unwritable is the Why of the deny for whose sake a Reveal shows what a write root covers read-only, empty where no list
	// grants writing; and of the deny of writing alone for whose sake a HideFile hides a pipe or socket. Empty for other kinds.
	Unwritable string
}

// WritableRule is a path that Landlock must leave writable, with all beneath it.
type WritableRule struct {
	Path string
	Dir  bool
}

// Absent is a name that does not exist when the plan is made, and a deny of it. No mount can stand for it, so it is
// judged when a command makes or opens something (Guard).
type Absent struct {
	// Path is the denied location, absolute: Dir, Name, and the names that are missing beneath that.
	Path string
	// Dir is the deepest directory of Path that exists, a location, and ID what it is. A pin keeps it, and what leads to
	// it from the write root, in place.
	Dir  string
	ID   Identity
	Name string // the first missing name: whoever makes it could go on to make Path
	Fold bool   // Name stands for itself in any letter case (FS-38)
	// Mandatory says that the rule is of the list of protected names (FS-35).
	Mandatory bool
	// Directory says that Path is the name of a directory, where the list that it is on tells (FS-35, FS-54).
	Directory bool
	// Write says that Name must not be created in Dir by any call (FS-30).
	Write bool
	// Read says that whatever comes to lie at or beneath Path must not be opened (FS-10). Hard: no list lifts it.
	Read, Hard bool
	Why        string // as in Step
}

// Pattern is a deny pattern, which also holds for names that come to exist later (FS-55).
type Pattern struct {
	Text string // absolute, the grammar of FS-13 and FS-14
	// Write says that a match must not be created, Read that a match and what lies beneath must not be opened. Hard: no
	// list lifts it (FS-57).
	Write, Read, Hard bool
	Why               string // as in Step
}

// Plan is what a sandboxed command sees of the file system. It is data: making one changes nothing.
//
// An executor verifies each identity in the tree before any step, clones the sources of Writable and reveal steps there,
// applies the pins in that same tree, makes the whole tree read-only unless RootWritable, and then attaches the other
// steps in order. A pin is a clone of the object on itself, so a symbolic link still resolves.
type Plan struct {
	Steps        []Step         // pins first, the deepest first; then the others, parents before what lies in them
	RootWritable bool           // the root mount stays writable (allowWrite "/")
	Unrestricted bool           // filesystem.disabled: no rule but masks, supplied files and the hiding of further kernel mounts (FS-56)
	Writable     []WritableRule // for the second wall; hidden directories are not listed, they are in memory
	Absent       []Absent       // denies of what does not exist, in path order
	Patterns     []Pattern      // deny patterns, in the order of the lists
	// AllowRead are the locations that allowRead names, existing or not, and the directories that allowWrite re-opens: what
	// they cover is not denied by a shallower read rule in Absent or Patterns (FS-22). In path order.
	AllowRead []string
	// AllowFiles are files that allowWrite re-opens: what denies a directory above one does not deny it, what denies the
	// file itself does (FS-22). In path order.
	AllowFiles []string
	Keep       []string // srt's own files, which no rule keeps from being read (FS-23); locations, in path order
	// Own are srt's own files that a command must not change or make, whether or not anything grants it (FS-51); locations.
	Own        []string
	Dir        string   // where the command starts, a location (FS-49)
	WriteRoots []string // locations that are granted for writing, none beneath another, in path order
	Warnings   []string // one line each for the person
	Notes      []string // one line each for the debug log
	// ForeignProcesses is Input's.
	ForeignProcesses bool
	// Rules and Masks are the entries that the plan was made of, as in Input: a Judge names those that decide.
	Rules policy.PathRules
	Masks []policy.PathRule
}

// Input is everything a plan depends on but the disk. The zero value grants no write, denies no read and protects the
// mandatory names (FS-35) to the default depth.
type Input struct {
	Rules policy.PathRules
	Cwd   string // absolute; where srt was started
	Home  string // absolute, or empty when there is none
	UID   int    // the effective user id of the caller; 0 is taken to pass all permission checks

	// Masks are the files that are seen with another content, names alone (FS-57, FS-58). FakeContent gives that content for
	// an entry, an index in Masks, at a location, an absolute path without links; it is asked once for each location. What it
	// cannot answer is said beside ErrHideUnmasked. Without it what is to be masked is hidden.
	Masks       []policy.PathRule
	FakeContent func(entry int, location string) ([]byte, error)

	// Supplied are files that are seen in the place of the host's, where the host has something at their names and the
	// settings neither hide nor mask it; under Disabled too. Of two at one name the first counts.
	Supplied []SuppliedFile

	// Private are hidden, and nothing re-opens them: absolute; directories in which srt keeps what it must not be told by a
	// command (FS-51, FS-54). One that does not exist is passed over.
	Private []string
	// PrivateFiles are hidden, and nothing re-opens them, under Disabled too: absolute; files and FIFOs through which the
	// caller is spoken to (CLI-30). One that does not exist cannot be made, but under Disabled; directories are passed over.
	// One with a second name (a hard link) is an error: what has it can be reached by that.
	PrivateFiles []string
	// Program is srt's executable: absolute, or empty. It is write-denied (FS-51) and stays readable even when hidden (FS-23).
	// It may have further names, as those that package managers install have: while it runs nobody can write to it by any of
	// them (ETXTBSY, open(2)), and a command runs only while srt does.
	Program string
	// OwnFiles are write-denied: absolute; the settings file in use, and what else is srt's own (FS-51). One with a second
	// name by which a command could change it is an error.
	OwnFiles []string
	Keep     []string // absolute; files that stay readable even when hidden (FS-23)
	// TrustFiles are certificates that commands are told to trust: absolute; readable whatever hides them or the directories
	// around them, of which nothing else shows, and write-denied like OwnFiles, under Disabled too (TLS-9).
	TrustFiles []string
	// TrustDirs are directories in which such files are made for one session: absolute; nothing in them can be made, changed or
	// removed, under Disabled too, or a command could keep srt from removing them (TLS-8).
	TrustDirs []string
	// ExtraWrite are granted like allowWrite but without a word when they are absent or links: the default write paths
	// and TMPDIR. One that lies in the home never re-opens a hidden directory (FS-28).
	ExtraWrite []string

	MandatoryDepth   int  // mandatoryDenySearchDepth, 1 to 10; 0 is the default of 3 (FS-38)
	AllowGitConfig   bool // lifts .git/config from the mandatory denies, everywhere
	Disabled         bool // filesystem.disabled (FS-56)
	HideSSHConfigDir bool // show /etc/ssh/ssh_config.d empty (FS-24)
	// KernelMounts are hidden: absolute; mounts outside of /proc, /sys and /dev of the file systems through which the
	// kernel is seen and controlled (FS-47).
	KernelMounts []string

	// ForeignProcesses says that the sandbox's /proc will show processes that are not of the sandbox (CompileOptions.HostProc), and
	// that nothing about them is to be opened: the plan then needs a Guard.
	ForeignProcesses bool

	// Mounts are all mounts of the host as the caller sees them, in any order. Objects that they show at several paths are
	// protected at each (FS-7). Empty: nothing shows twice.
	Mounts []Mount

	// MountMax is fs.mount-max, 0 for the kernel's default of 100,000. MountsInUse is how many mounts the sandbox
	// starts with (FS-65).
	MountMax, MountsInUse int
}
