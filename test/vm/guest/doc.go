//go:build linux

// Program guest is what runs in the machines of test/vm after their start: it looks at the kernel with srt's eyes, as root and as an
// ordinary user and under each variant of the system's configuration, then runs test programs, and tells all of it to the host (package record).
// It changes sysctls and runs tests as root: it is for machines that are thrown away.
package main
