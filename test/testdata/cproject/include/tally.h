/* Counts words. */
#ifndef TALLY_H
#define TALLY_H

#include <stddef.h>
#include <stdio.h>

#define TALLY_MAX 128

struct tally {
	size_t used;
	struct {
		char word[32];
		unsigned long count;
	} entry[TALLY_MAX];
};

/* Adds one word; returns 0, or -1 when there is no room. */
int tally_add(struct tally *t, const char *word);

/* Returns how often a word was added. */
unsigned long tally_count(const struct tally *t, const char *word);

/* Adds every word of a stream; returns 0, or -1. */
int tally_read(struct tally *t, FILE *in);

#endif
