#include "tally.h"

int main(void)
{
	static struct tally t;

	if (tally_read(&t, stdin) != 0) {
		fputs("tally: too many words\n", stderr);
		return 1;
	}
	for (size_t i = 0; i < t.used; i++)
		printf("%lu %s\n", t.entry[i].count, t.entry[i].word);
	return 0;
}
