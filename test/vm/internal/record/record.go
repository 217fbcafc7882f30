// Package record has what a guest tells the host about the kernel that it runs under: a line of JSON for each record, on the
// guest's second serial port.
package record

// Kinds of records, in the order in which a guest sends them.
const (
	KindSystem  = "system"  // System
	KindSight   = "sight"   // Sight, for each variant and account
	KindTest    = "test"    // Test, for each that was run
	KindPackage = "package" // Package, after its tests
	KindEnd     = "end"     // nothing more comes
	KindCut     = "cut"     // from the host: the machine was ended before
)

// Line is one record: its kind, and the field of that kind.
type Line struct {
	Kind    string   `json:"kind"`
	System  *System  `json:"system,omitempty"`
	Sight   *Sight   `json:"sight,omitempty"`
	Test    *Test    `json:"test,omitempty"`
	Package *Package `json:"package,omitempty"`
}

// Suite is a test program that the guest is to run: on its second disk, in a file with a list of these.
type Suite struct {
	Folder string `json:"folder"` // in the tree
	// Accounts run it; one that root starts and that runs its tests as a user too needs no other one.
	Accounts []string `json:"accounts"`
	// Run and Skip choose among its tests as the go command's flags do; empty: all.
	Run  string `json:"run,omitempty"`
	Skip string `json:"skip,omitempty"`
}

// SuitesFile is the name of that file.
const SuitesFile = "suites.json"

// WeakerFile is the name of a settings file there that has enableWeakerNestedSandbox, and allows nothing.
const WeakerFile = "weaker.json"

// System is what the kernel says of itself.
type System struct {
	Release string `json:"release"` // as uname -r
	Build   string `json:"build"`   // as uname -v
	LSM     string `json:"lsm"`     // /sys/kernel/security/lsm
}

// Sight is what srt says to one account under one variant of the system's configuration.
type Sight struct {
	Variant string `json:"variant"`
	// Unset says that the kernel does not have the setting that makes the variant; nothing else is filled in then.
	Unset   bool   `json:"unset,omitempty"`
	Account string `json:"account"`
	// Check is what "srt check --json" printed, and CheckExit its exit status.
	Check     Report `json:"check"`
	CheckExit int    `json:"checkExit"`
	// Exec is what "srt exec" of a command that prints "works" printed, on both streams, and ExecExit its exit status.
	Exec     string `json:"exec"`
	ExecExit int    `json:"execExit"`
	// Weaker and WeakerExit are the same with enableWeakerNestedSandbox.
	Weaker     string `json:"weaker"`
	WeakerExit int    `json:"weakerExit"`
}

// Works tells whether srt started the command.
func (s Sight) Works() bool { return s.ExecExit == 0 }

// Report is the part of "srt check --json" that is recorded.
type Report struct {
	Mode     string    `json:"mode"`
	Reasons  []string  `json:"reasons"`
	Remedy   *Remedy   `json:"remedy,omitempty"`
	Features []Feature `json:"features"`
	Errors   []string  `json:"errors"`
}

// Remedy is what srt says to do for a better mode.
type Remedy struct {
	Text     string   `json:"text"`
	Commands []string `json:"commands,omitempty"`
}

// Feature is one of the kernel's that srt uses.
type Feature struct {
	Key     string `json:"key"`
	Name    string `json:"name"`
	Present bool   `json:"present"`
	Value   int    `json:"value"`
	Found   string `json:"found"`
}

// Outcomes of a test.
const (
	Pass = "pass"
	Fail = "fail"
	Skip = "skip"
)

// Test is one test function, or a subtest that failed.
type Test struct {
	Package string `json:"package"` // its folder in the tree
	Account string `json:"account"`
	Name    string `json:"name"`
	Outcome string `json:"outcome"`
}

// Package is one run of a test program.
type Package struct {
	Package string  `json:"package"`
	Account string  `json:"account"`
	Exit    int     `json:"exit"` // -1: ended by a signal
	Seconds float64 `json:"seconds"`
	Output  string  `json:"output,omitempty"` // its end, if it failed; not kept in results.json
}
