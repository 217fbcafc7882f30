//go:build !linux && !darwin && !windows

package runtime

func checkPlatform() error { return ErrUnsupportedPlatform }
