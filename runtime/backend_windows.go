package runtime

import "fmt"

// The Windows backend lives in package windows once it exists. Until then nothing runs: a command is never
// started without a boundary.

func checkPlatform() error {
	return fmt.Errorf("%w: confining commands on Windows is not available in this version of srt", ErrUnsupportedPlatform)
}
