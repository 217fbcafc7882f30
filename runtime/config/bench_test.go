package config

import (
	"os"
	"testing"
)

// BenchmarkDecode is the part of a cold start that this package costs.
func BenchmarkDecode(b *testing.B) {
	full, err := os.ReadFile("testdata/full.json")
	if err != nil {
		b.Fatal(err)
	}
	for _, bc := range []struct {
		name string
		data []byte
	}{{"smallest", []byte(smallest)}, {"full", full}} {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Decode(bc.data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDomainMatches(b *testing.B) {
	d, err := ParseDomain("*.example.com:443", DomainForm{Port: true})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		h, err := CanonicalHost("registry.npm.example.com")
		if err != nil || !d.Matches(h, 443) {
			b.Fatal("no match")
		}
	}
}
