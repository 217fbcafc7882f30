// This file lets the compiler accept the functions without a body in fork_linux.go.
