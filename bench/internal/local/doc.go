// Package local is what the servers of the benchmarks and of the soak listen with.
//
// What belongs here: an address of this host, and the refusal of everybody else. What does not: what the servers say.
package local
