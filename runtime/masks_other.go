//go:build !linux

package runtime

// withheld is what a command keeps of its launch. Nothing is launched here.
type withheld struct{}
