// Package probetest lets tests skip where a kernel feature is missing (probe), and fail where that hides a fault.
//
// It belongs to tests alone.
package probetest
