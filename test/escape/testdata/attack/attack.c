// The attacker: makes the system calls that its arguments spell out, in one process, in order. Calls are separated by
// the word ",". The first word of a call is its number, the others are arguments:
//
//	123, -100, 0x10   an integer          $2   the result of call 2, counted from 0
//	s:text            a string            x:0a0b   bytes, which the kernel may change
//	f:text            at the place of the number: fork; the child writes text to standard output and waits
//	i:123             at the place of the number: the call goes through int 0x80 (x86)
//
// It prints "INSIDE" first, so that a test can tell that it ran, and ends with the errno of the last call, 0 if that
// succeeded.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static long results[64];

// bytes turns hexadecimal digits into memory that a system call can be pointed to.
static long bytes(const char *hex) {
	size_t n = strlen(hex) / 2;
	unsigned char *p = calloc(1, n + 64);
	for (size_t i = 0; i < n; i++) {
		unsigned v = 0;
		sscanf(hex + 2 * i, "%2x", &v);
		p[i] = v;
	}
	return (long)p;
}

static long value(const char *word) {
	if (!strncmp(word, "s:", 2))
		return (long)(word + 2);
	if (!strncmp(word, "x:", 2))
		return bytes(word + 2);
	if (word[0] == '$')
		return results[atoi(word + 1) & 63];
	return (long)strtoull(word, NULL, 0);
}

static void start_child(const char *text) {
	if (fork() != 0)
		return;
	printf("%s\n", text);
	fflush(stdout);
	for (;;)
		pause();
}

static long int80(long nr, const long *a) {
#ifdef __x86_64__
	long r;
	__asm__ volatile("int $0x80" : "=a"(r) : "a"(nr), "b"(a[0]), "c"(a[1]), "d"(a[2]), "S"(a[3]), "D"(a[4]) : "memory", "r8", "r9", "r10", "r11");
	return r;
#else
	errno = ENOSYS;
	return -1;
#endif
}

static long perform(int argc, char **argv) {
	long a[6] = {0};
	for (int i = 1; i < argc && i <= 6; i++)
		a[i - 1] = value(argv[i]);
	errno = 0;
	if (!strncmp(argv[0], "f:", 2)) {
		start_child(argv[0] + 2);
		return 0;
	}
	if (!strncmp(argv[0], "i:", 2))
		return int80(atol(argv[0] + 2), a);
	return syscall(value(argv[0]), a[0], a[1], a[2], a[3], a[4], a[5]);
}

int main(int argc, char **argv) {
	static const char inside[] = "INSIDE\n";
	if (write(1, inside, sizeof inside - 1) < 0 && write(2, inside, sizeof inside - 1) < 0)
		return 120;
	int last = 0, calls = 0;
	for (int at = 1; at < argc; calls++) {
		int end = at;
		while (end < argc && strcmp(argv[end], ","))
			end++;
		results[calls & 63] = perform(end - at, argv + at);
		last = errno;
		dprintf(2, "call %d: %s = %ld (%s)\n", calls, argv[at], results[calls & 63], strerror(last));
		at = end + 1;
	}
	return last & 127;
}
