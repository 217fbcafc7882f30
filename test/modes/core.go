package main

// suite is what runs in a mode as a whole ("make test-modes-all").
var suite = []string{"./test", "./test/escape", "./test/programs", "./test/clients", "./test/hostile", "./test/differential", "./test/traces"}

// corePackages and coreTests are what CI runs of it ("make test-modes"): some of each promise.
var (
	corePackages = []string{"./test", "./test/escape"}
	coreTests    = []string{
		// Files: rules, links, names that do not exist, patterns.
		"FS30_33_52_Names", "FS_55_WritePatterns", "TestEscape_00[1-9]", "TestEscape_01[0-57]", "TestEscape_02[0-48]",
		// Processes, /proc, system calls.
		"TestEscape_03[0-8]", "TestEscape_04[0-8]", "TestEscape_05[0-4]", "TestEscape_056_HandOutOfReach", "TestEscape_06[02-8]",
		// The network.
		"TestEscape_07", "TestEscape_08[0-6]",
		// Credentials, streams and what is left.
		"TestCRED_2$", "TestRoot_IPCOfTheHost", "TestCRED_Case27", "TestCLI_10_NoOtherDescriptor",
	}
)

// ownModes are the tests that choose the mode of their srt themselves, and so say nothing about the mode of a run.
const ownModes = "^Test(Confined|Nested|Inner|EveryFeature|TheWalk)"
