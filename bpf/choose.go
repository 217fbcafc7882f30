package bpf

// Mechanism is what refuses names that do not exist.
type Mechanism uint8

// The mechanisms. The zero value is the broker, which enforces every kind of rule.
const (
	Broker Mechanism = iota // each call is performed by the host side (seccomp/broker)
	Kernel                  // hooks in the kernel (this package)
	None                    // no rule needs either
)

var mechanismNames = [...]string{"broker", "kernel", "none"}

// String is the lower-case name of m.
func (m Mechanism) String() string {
	if int(m) < len(mechanismNames) {
		return mechanismNames[m]
	}
	return "unknown"
}

// Need says which kinds of rule a policy has that no mount enforces.
type Need struct {
	Names    bool // names in given directories must not be created (FS-30)
	Patterns bool // names that match a pattern must not be created, or directories not moved (FS-55)
	Reads    bool // what appears later must not be opened (FS-10)
}

// Choose says which mechanism enforces a policy. supported is the answer of [Supported]. why is empty for Kernel and
// None, and else a clause for a person. Where the kernel takes a part only, the broker takes all: two mechanisms at once
// would ask every question twice.
func Choose(need Need, supported error) (m Mechanism, why string) {
	switch {
	case need == (Need{}):
		return None, ""
	case need.Patterns:
		return Broker, "patterns are judged by whole paths, which a hook in the kernel does not have"
	case need.Reads:
		return Broker, "opening is judged by whole paths, which a hook in the kernel does not have"
	case supported != nil:
		return Broker, supported.Error()
	}
	return Kernel, ""
}
