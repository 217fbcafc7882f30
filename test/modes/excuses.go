package main

import "slices"

// hidden are the escape tests in whose scene something in the granted working directory is hidden, so that the command is not started
// at all.
var hidden = []string{
	"TestEscape_039_NestedNamespacesAllowed/*",
	"TestEscape_009_OtherName/*",
	"TestEscape_009_BindAlias/read_the_very_place/*",
	"TestEscape_009_BindAlias/read_a_granted_directory/*",
	"TestEscape_009_BindAlias/read_a_mount_of_a_mount/*",
	"TestEscape_009_BindAlias/read_outside_of_the_write_roots/*",
	"TestEscape_009_BindAlias/read_the_directory_around_it/*",
	"TestEscape_013_HardLinkOfAProtectedFile/outside_file/*",
	"TestEscape_013_HardLinkOfAProtectedFile/through_a_link/*",
	"TestEscape_013_HardLinkOfAProtectedFile/of_a_hidden_file/*",
	"TestEscape_013_HardLinkOfAProtectedFile/by_descriptor/*",
	"TestEscape_013_HardLinkOfAProtectedFile/out,_by_descriptor/*",
	"TestEscape_013_HardLinkOfAProtectedFile/protected_file/*",
	"TestEscape_005_SetUpFollowsALink/*",
	"TestEscape_007_NothingTruncated/*",
	"TestEscape_061_ForkBombAndFill/*",
	"TestEscape_016_HiddenDirectory/*",
	"TestEscape_017_OverlappingRules/4/*",
	"TestEscape_022_PatternDeny/read/*",
	"TestEscape_025_StrangeObjects/*",
	"TestEscape_026_UnsearchableDirectory/*",
}

// masked are the tests of files that show another content.
var masked = []string{
	"TestCRED_11_CopiesAreNotMasked",
	"TestCRED_Case26",
	"TestCRED_Case27",
	"TestCRED_Case29_Case30",
	"TestCRED_Case31",
	"TestCRED_7_FakesCannotBeWritten",
}

// excuses are the tests that may fail in each mode, by the rows of docs/modes.md.
var excuses = map[string][]excuse{
	"nested": {
		{pkg: "test/escape", test: "TestEscape_056_HandOutOfReach", row: "proc-list", says: "the command sees more than its own processes"},
		{pkg: "test", test: "TestCLI_10_NoOtherDescriptor", row: "proc-numbers", says: "/proc/$$/fd"},
		{pkg: "test", test: "TestFS_44_PrivilegesInside", row: "proc-numbers", says: "/proc/1/status"},
		{pkg: "test", test: "TestProcessesOfTheHost", row: "proc-list", says: "got ok, want ENOENT"},
		{pkg: "test", test: "TestCRED_35_HoldersAreOutOfReach", row: "proc-list", says: "seen "},
		{pkg: "test", test: "TestFS_case34_FS56_Disabled", row: "proc-list", says: "the host's processes show"},
		{pkg: "test", test: "TestWhyKernelTrees_FS47", row: "proc-write", says: "echo x > /proc/self/comm"},
		{pkg: "test/escape", test: "TestEscape_037_UnfilteredHelper", row: "proc-list", says: "status 2 (ENOENT)"},
	},
	"confined": slices.Concat(each("test/escape", "hide-in-write-root", hidden), each("test", "mask", masked), []excuse{
		{pkg: "test/escape", test: "TestEscape_092_MaskedFile/text", row: "mask", says: "the attack was not made"},
		{pkg: "test/escape", test: "TestEscape_092_MaskedFile/not_text", row: "hide-in-write-root", says: "the attack was not made"},
		{pkg: "test/escape", test: "TestEscape_028_Propagation", row: "hide-in-write-root", says: "ESCAPE: the host's mounts have changed work/during:\n        no file"},
		{pkg: "test/escape", test: "TestEscape_006_NothingLeftOnTheHost", row: "hide-in-write-root", says: "the sandbox does not run: EOF"},
		{pkg: "test/escape", test: "TestEscape_056_HandOutOfReach", row: "proc-list", says: "the command sees more than its own processes"},
		{pkg: "test/escape", test: "TestEscape_068_KernelSurface/interface_down", row: "lookups", says: "status 9 (EBADF)"},
		{pkg: "test/escape", test: "TestEscape_071_ProxyIgnored", row: "direct", says: "the listener was not reached"},
		{pkg: "test/escape", test: "TestEscape_083_AbstractSockets", row: "all-unix-sockets", says: "ESCAPE: the listener of the host was reached"},
		{pkg: "test/escape", test: "TestEscape_086_SomebodyElsesProxy", row: "loopback", says: "ESCAPE: the proxy of a sandbox serves the host"},
		{pkg: "test/escape", test: "TestEscape_034_MaskedProc", row: "proc-list", says: "ESCAPE: another process was seen"},
		{pkg: "test/escape", test: "TestEscape_051_Capabilities", row: "root", says: "CapBnd is"},
		{pkg: "test", test: "TestCRED_9", row: "hide-in-write-root"},
		{pkg: "test", test: "TestCRED_Case28", row: "hide-in-write-root"},
		{pkg: "test", test: "TestCRED_9_UnreadableAndHidden", row: "hide-in-write-root"},
		{pkg: "test", test: "TestCRED_35_NothingInTheSandbox", row: "mask", says: "still, after a long time"},
		{pkg: "test", test: "TestFS_case05_FS30_33_52_NamesThatDoNotExist", row: "write-rules", says: "got EBUSY, want refused"},
		{pkg: "test", test: "TestRoot_KeyringOfTheHost", row: "kernel-state", says: "the host's keys show"},
		{pkg: "test", test: "TestRoot_IPCOfTheHost", row: "ipc", says: "got ENOSYS, want EINVAL"},
	}),
}

// each excuses tests of one package by one row.
func each(pkg, row string, tests []string) []excuse {
	list := make([]excuse, len(tests))
	for i, t := range tests {
		list[i] = excuse{pkg: pkg, test: t, row: row}
	}
	return list
}
