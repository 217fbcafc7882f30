// Package model is a plain statement of the filesystem chapter: for a small tree, a policy and one operation it says
// whether the operation is allowed, which errors may refuse it, and what it leaves behind.
//
// What belongs here: rules FS-5 to FS-10, FS-12 to FS-33, FS-35 to FS-42 as said, in the slowest and simplest way that is
// right. It knows no mount, no descriptor and no kernel, and shares no code with what it judges (fsview, runtime/policy).
//
// What does not belong here: drawing trees, policies and operations, and running srt (package differential).
//
// Paths are those of a world whose root is the scratch directory of a case: `/home` is the home, `/home/p` the working
// directory. Where the chapter leaves an answer open, the model accepts every one of them (Want.OK with Want.Errs) or says
// that it has none (Want.Open).
package model
