package violation

import (
	"context"
	"testing"
)

// BenchmarkAdd is what one refusal costs its source: alone, and with a reader and a subscriber.
func BenchmarkAdd(b *testing.B) {
	e := Event{Operation: "openat", Target: "/home/u/.ssh/known_hosts", Rule: "filesystem.denyRead.0", Entry: "~/.ssh", CommandID: "N2omYEpvSvMFJic6Q4gKnw"}
	for name, watched := range map[string]bool{"alone": false, "watched": true} {
		b.Run(name, func(b *testing.B) {
			var s Store
			s.Register(e.CommandID, "make")
			if watched {
				f := s.Feed(0)
				defer f.Stop()
				go func() {
					for {
						if _, ok := f.Next(context.Background()); !ok {
							return
						}
					}
				}()
				defer s.Subscribe(func([]Record) {}, nil)()
			}
			b.ReportAllocs()
			for b.Loop() {
				s.Add(e)
			}
		})
	}
}

// BenchmarkRegister is what a launch costs, with as many behind it as are known.
func BenchmarkRegister(b *testing.B) {
	var s Store
	keys := make([]string, 2*Launches)
	for i := range keys {
		keys[i] = Carrier(string(rune('a'+i%26))) + string(rune(0x4e00+i))
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		key := keys[i%len(keys)]
		s.Register(key, "make")
		s.Unregister(key)
		i++
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	var s Store
	r, _ := s.Add(Event{Operation: NetworkOutbound, Target: "example.com:8443", Rule: "network.allowedDomains", Reason: "host is not on the allow list"})
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		buf = AppendJSON(buf[:0], r)
	}
}
