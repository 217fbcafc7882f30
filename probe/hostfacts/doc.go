// Package hostfacts reads what stands around this process and may refuse it things: a container, a system call filter,
// AppArmor, the limits of namespaces, masks on /proc. From that it derives likely causes, and the one thing to do.
//
// What belongs here: reading those facts ([Look], behind [System]) and the tables from facts to causes and remedies, which are
// pure. What does not: trying things out (probe), and deciding what to do without them (runtime).
//
// Nothing here decides about security: facts can be wrong or forged, and only texts follow from them.
package hostfacts
