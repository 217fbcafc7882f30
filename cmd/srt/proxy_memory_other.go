//go:build !linux

package main

import "runtime"

// residentMemory is what the Go runtime has of the system, in bytes: nearest to what is resident without a system call of
// each system's own.
func residentMemory() (int64, error) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys - m.HeapReleased), nil
}
