// The racer: exchanges two names as fast as it can until it is killed (renameat2 with RENAME_EXCHANGE).
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
	if (argc != 3)
		return 2;
	if (renameat2(AT_FDCWD, argv[1], AT_FDCWD, argv[2], RENAME_EXCHANGE) != 0) {
		perror("renameat2");
		return 1;
	}
	printf("INSIDE\n");
	fflush(stdout);
	for (;;)
		renameat2(AT_FDCWD, argv[1], AT_FDCWD, argv[2], RENAME_EXCHANGE);
}
