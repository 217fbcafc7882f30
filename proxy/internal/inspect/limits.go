package inspect

import (
	"time"

	"github.com/srt-sandbox/srt/proxy/internal/httphead"
)

// responseHead is the longest response head in bytes: policies in header fields make some longer than requests get.
const responseHead = 64 << 10

// withDefaults fills in what the rules say (TLS-43 to TLS-46, REQ-14).
func (l Limits) withDefaults() Limits {
	for _, d := range [...]struct {
		field *time.Duration
		rule  time.Duration
	}{
		{&l.FirstHead, 10 * time.Second},
		{&l.Idle, 6 * time.Second},
		{&l.Stall, 300 * time.Second},
		{&l.Linger, 5 * time.Second},
		{&l.RefusalLinger, time.Second},
	} {
		if *d.field == 0 {
			*d.field = d.rule
		}
	}
	if l.Head <= 0 {
		l.Head = httphead.Limit
	}
	if l.BodyKept <= 0 {
		l.BodyKept = 64 << 20
	}
	return l
}
