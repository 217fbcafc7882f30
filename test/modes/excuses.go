package main

// excuses are the tests that may fail in each mode, by the rows of docs/modes.md.
var excuses = map[string][]excuse{
	"nested":   {},
	"confined": {},
}
