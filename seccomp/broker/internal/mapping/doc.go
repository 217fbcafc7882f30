// Package mapping asks the kernel about one mapping of a process's memory (PROCMAP_QUERY, linux/fs.h).
//
// What belongs here: that request. What does not: what the answer is good for.
package mapping
