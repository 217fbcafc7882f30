#include "tally.h"

int tally_read(struct tally *t, FILE *in)
{
	char word[32];

	while (fscanf(in, "%31s", word) == 1)
		if (tally_add(t, word) != 0)
			return -1;
	return ferror(in) ? -1 : 0;
}
