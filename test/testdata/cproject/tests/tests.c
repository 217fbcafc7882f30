#define _GNU_SOURCE
#include "tally.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void expect(int ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "FAILED: %s\n", what);
		exit(1);
	}
}

int main(void)
{
	static struct tally t;
	char name[] = "/tmp/tally-XXXXXX";
	const char *dir = getenv("TMPDIR");
	char path[4096];
	FILE *f;

	expect(tally_add(&t, "a") == 0 && tally_add(&t, "a") == 0, "add");
	expect(tally_count(&t, "a") == 2 && tally_count(&t, "b") == 0, "count");
	snprintf(path, sizeof path, "%s", dir ? dir : "/tmp");
	snprintf(path + strnlen(path, sizeof path - 32), 32, "%s", name + 4);
	expect((f = fdopen(mkstemp(path), "w+")) != NULL, "temporary file");
	expect(fputs("b a\nb\n", f) >= 0 && fseek(f, 0, SEEK_SET) == 0, "write");
	expect(tally_read(&t, f) == 0, "read");
	expect(tally_count(&t, "b") == 2 && tally_count(&t, "a") == 3, "count of a file");
	fclose(f);
	expect(unlink(path) == 0, "unlink");
	puts("all passed");
	return 0;
}
