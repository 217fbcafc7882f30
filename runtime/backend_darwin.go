package runtime

import "fmt"

// The macOS backend (Seatbelt) lives in package darwin once it exists. Until then nothing runs: a command is never
// started without a boundary.

func checkPlatform() error {
	return fmt.Errorf("%w: confining commands on macOS is not available in this version of srt", ErrUnsupportedPlatform)
}
