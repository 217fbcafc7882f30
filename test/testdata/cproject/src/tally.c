#include "tally.h"

#include <string.h>

int tally_add(struct tally *t, const char *word)
{
	for (size_t i = 0; i < t->used; i++) {
		if (strcmp(t->entry[i].word, word) == 0) {
			t->entry[i].count++;
			return 0;
		}
	}
	if (t->used == TALLY_MAX || strlen(word) >= sizeof t->entry[0].word)
		return -1;
	strcpy(t->entry[t->used].word, word);
	t->entry[t->used++].count = 1;
	return 0;
}

unsigned long tally_count(const struct tally *t, const char *word)
{
	for (size_t i = 0; i < t->used; i++)
		if (strcmp(t->entry[i].word, word) == 0)
			return t->entry[i].count;
	return 0;
}
