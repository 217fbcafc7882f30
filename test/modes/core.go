package main

// suite is what runs in a mode as a whole ("make test-modes-all").
var suite = []string{"./test", "./test/escape", "./test/programs", "./test/clients", "./test/hostile", "./test/differential", "./test/traces"}

// corePackages and coreTests are what CI runs of it ("make test-modes").
var (
	corePackages = []string{"./test", "./test/escape"}
	coreTests    = []string{"TestEscape"}

	// ownModes are the tests that choose the mode of their srt themselves, and so say nothing about the mode of a run.
	ownModes = "^Test(Confined|Nested|Inner|EveryFeature|TheWalk)"
)
