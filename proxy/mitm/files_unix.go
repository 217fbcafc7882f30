//go:build unix

package mitm

import "syscall"

// openNoFollow refuses a link where a new file is to be made.
const openNoFollow = syscall.O_NOFOLLOW
