package inspect

import "io"

// Body is the body of a request.
type Body struct{}

// Read is for the handler before the request goes out.
func (b *Body) Read(p []byte) (int, error) { return 0, ErrBodyClosed }

// Stream returns all of the body once: what was kept, then the rest as it comes.
func (b *Body) Stream() io.Reader { return b }
