// Package escape is the escape suite: it attacks srt from inside a sandbox with real programs and looks, from outside,
// at what became of the host. It runs with "make escape".
//
// What belongs here: at least one test for every way in which a sandbox or container runtime was once left, numbered
// TestEscape_NNN_Name; a number that cannot apply says why in the table notApplicable. A test states what must hold on
// the host (a file, a listener, the process table, an exit status), never what the attacking program claims. Where the
// attack works outside a sandbox, the test shows that too, so that it cannot pass by attacking nothing.
//
// What does not belong here: tests of single packages, of speed, and of what the command line prints.
//
// The suite needs gcc, python3 and util-linux. Run by root it runs everything twice: as root and as the ordinary user
// named by SRT_TEST_USER (srt-test unless set).
package escape
