package ns

import "unsafe"

// The interpreter of programs. It runs in a copy of one thread of a Go program: what is said at the top of
// child_linux.go holds here too.

// runProgram interprets a program. It stops at the first step that fails, and gives its number and error.
//
//go:norace
//go:nosplit
func runProgram(c *script) (failed, errno uintptr) {
	for i := uintptr(0); i < uintptr(c.nsteps); i++ {
		s := (*step)(unsafe.Add(unsafe.Pointer(c.steps), i*unsafe.Sizeof(step{})))
		if s.cond != 0 && (*slot(c, s.cond) >= leftOut) != s.unless {
			continue
		}
		if s.kind == kindSkip {
			if !holds(s) {
				i += s.args[3]
			}
			continue
		}
		if errno := runStep(c, s); errno != 0 {
			return i, errno
		}
	}
	return 0, 0
}

//go:norace
//go:nosplit
func slot(c *script, n uint32) *uintptr {
	return (*uintptr)(unsafe.Add(unsafe.Pointer(c.slots), uintptr(n-1)*unsafe.Sizeof(uintptr(0))))
}

//go:norace
//go:nosplit
func arg(c *script, s *step, i int) uintptr {
	if s.from[i] != 0 {
		return *slot(c, s.from[i])
	}
	return s.args[i]
}

// runStep runs one step and returns the error that ends the program, if any.
//
//go:norace
//go:nosplit
func runStep(c *script, s *step) uintptr {
	switch s.kind {
	case kindStore:
		*(*uint32)(pointer(s.args[0])) = uint32(arg(c, s, 1))
		return 0
	case kindExpect:
		if !holds(s) {
			return s.args[3]
		}
		return 0
	case kindAnswered:
		if word := (*uint32)(pointer(s.args[0])); *word == silent {
			*word = answered
		}
		return 0
	case kindName:
		writeDecimal(s.args[0], arg(c, s, 1))
		return 0
	}
	r, errno := sys(s.trap, arg(c, s, 0), arg(c, s, 1), arg(c, s, 2), arg(c, s, 3), arg(c, s, 4), arg(c, s, 5))
	if errno != 0 {
		r = -errno
		if errno != uintptr(s.tolerate[0]) && errno != uintptr(s.tolerate[1]) && errno != uintptr(s.tolerate[2]) {
			return errno
		}
	}
	if s.out != 0 {
		*slot(c, s.out) = r
	}
	return 0
}

// holds tells whether the condition of a kindExpect or kindSkip is met.
//
//go:norace
//go:nosplit
func holds(s *step) bool {
	return *(*uint64)(pointer(s.args[0]))&uint64(s.args[1]) == uint64(s.args[2])
}

// nameSize is the space that kindName needs: 20 digits of a 64-bit number and a NUL byte.
const nameSize = 21

// writeDecimal writes n and a NUL byte to the memory at dst.
//
//go:norace
//go:nosplit
func writeDecimal(dst, n uintptr) {
	digits := uintptr(1)
	for rest := n; rest > 9; rest /= 10 {
		digits++
	}
	*(*byte)(pointer(dst + digits)) = 0
	for ; digits > 0; digits-- {
		*(*byte)(pointer(dst + digits - 1)) = byte('0' + n%10)
		n /= 10
	}
}

// pointer turns an address that the host side took from a live object back into a pointer.
//
//go:norace
//go:nosplit
func pointer(a uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&a)) }
