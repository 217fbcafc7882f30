// Package modetable says what each setting, and each thing that no setting is about, is worth in each mode (docs/modes.md).
//
// What belongs here: the table, as data, and its rendering. It is the one list: the page for people is generated from it, what a start
// refuses in a mode has a row here (fsview.RefusalKind), and a test that cannot pass in a mode excuses itself by a row (Excused).
//
// What does not belong here: which mode there is (package runtime), and the refusing itself (fsview.Confine).
package modetable

//go:generate go test -count=1 -run TestPage -update
