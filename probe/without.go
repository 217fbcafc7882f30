package probe

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Variable is the environment variable that takes features away.
const Variable = "SRT_WITHOUT"

// WithoutError says that the variable does not name features. Nothing may be started then: what was to be taken away is not
// known.
type WithoutError struct{ Text, Problem string }

func (e *WithoutError) Error() string {
	return fmt.Sprintf("%s=%s: %s; a list of these is meant: %s (landlock=N leaves version N at most)", Variable, e.Text, e.Problem,
		strings.Join(slices.Sorted(maps.Keys(known)), ","))
}

// known are the names of features, and whether they have a value that can be limited.
var known = map[string]bool{
	"userns": false, "pid": false, "mount": false, "net": false, "ipc": false, "uts": false, "cgroup": false, "procfs": false, "landlock": true,
	"seccomp": false, "notify": false, "pidfd_getfd": false, "process_vm": false, "ptrace": false, "openat2": false, "mount_setattr": false,
	"bpf": false,
}

// Limits are what SRT_WITHOUT leaves of features: the greatest value by name, 0 for nothing. A feature that it does not name is
// not limited.
type Limits map[string]int

// ParseWithout reads the value of SRT_WITHOUT. The error is a *WithoutError.
func ParseWithout(text string) (Limits, error) {
	limits := Limits{}
	for _, word := range strings.Split(text, ",") {
		word = strings.TrimSpace(word)
		if word == "" {
			continue
		}
		name, value, limited := strings.Cut(word, "=")
		takes, ok := known[name]
		n := 0
		var err error
		if limited {
			n, err = strconv.Atoi(value)
		}
		switch {
		case !ok:
			return nil, &WithoutError{text, fmt.Sprintf("%q is no feature", name)}
		case limited && (!takes || err != nil || n < 0):
			return nil, &WithoutError{text, fmt.Sprintf("%q is no limit", word)}
		}
		if before, ok := limits[name]; !ok || n < before {
			limits[name] = n
		}
	}
	return limits, nil
}

// without is read once: the variable is of the start of this process.
var without = sync.OnceValues(func() (Limits, error) { return ParseWithout(os.Getenv(Variable)) })

// Forced tells whether SRT_WITHOUT takes anything away. The error is a *WithoutError.
func Forced() (bool, error) {
	limits, err := without()
	return len(limits) > 0, err
}
