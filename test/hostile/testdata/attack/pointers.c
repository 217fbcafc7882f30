// Asks for peers and errors of captured and other sockets with pointers of all kinds, and compares what happens with what
// the kernel does for getsockname and for another option, which nobody traps. usage: pointers [protected], to use memory
// that is there and that the program may not write to.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in to(const char *host, int port) {
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
	inet_pton(AF_INET, host, &a.sin_addr);
	return a;
}

static int socket_to(const char *host, int port, int flags) {
	struct sockaddr_in a = to(host, port);
	int s = socket(AF_INET, SOCK_STREAM | flags, 0);
	if (connect(s, (void *)&a, sizeof a) && errno != EINPROGRESS) perror("connect");
	if (flags) poll(&(struct pollfd){.fd = s, .events = POLLOUT}, 1, 30000);
	return s;
}

static char *page(int prot) { return mmap(NULL, 4096, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

int main(int argc, char **argv) {
	char *good = page(PROT_READ | PROT_WRITE), *readable = page(PROT_READ), *none = page(PROT_NONE), *hole = page(PROT_NONE);
	munmap(hole, 4096);
	char *end = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(end + 4096, 4096);
	int shared_fd = open("/etc/hostname", O_RDONLY);
	char *shared = shared_fd < 0 ? readable : mmap(NULL, 4096, PROT_READ, MAP_SHARED, shared_fd, 0);
	char *const protected_at[] = {good, readable, none, shared}, *const wrong_at[] = {good, hole, end + 4090, NULL, (char *)-1, (char *)0xffff800000000000, (char *)0x7ffffffff000};
	char *const *at = argc > 1 ? protected_at : wrong_at;
	unsigned count = argc > 1 ? 4 : 7;
	const int sizes[] = {0, 1, 2, 8, 15, 16, 17, 128, 4096, 0x7fffffff, -1, (int)0x80000000};
	int s = socket_to("10.203.1.1", 7, 0), differences = 0, cases = 0;
	for (unsigned i = 0; i < count; i++) {
		for (unsigned j = 0; j < sizeof sizes / sizeof *sizes; j++) {
			socklen_t n1 = sizes[j], n2 = sizes[j];
			int r1 = getpeername(s, (void *)at[i], &n1) ? errno : 0, r2 = getsockname(s, (void *)at[i], &n2) ? errno : 0;
			cases++;
			if (r1 == r2 && (r1 || n1 == n2)) continue;
			differences++;
			printf("getpeername(%d, %d): %d, %d; the kernel: %d, %d\n", i, sizes[j], r1, n1, r2, n2);
		}
		int r1 = getpeername(s, (void *)good, (void *)at[i]) ? errno : 0, r2 = getsockname(s, (void *)good, (void *)at[i]) ? errno : 0;
		cases++;
		if (r1 != r2) differences++, printf("getpeername with its length at %d: %d; the kernel: %d\n", i, r1, r2);
		memset(good, 0, 4096);
	}
	for (unsigned i = 0; i < count; i++) {
		for (unsigned j = 0; j < sizeof sizes / sizeof *sizes; j++) {
			int dead = socket_to("10.203.1.1", 6, SOCK_NONBLOCK); // nobody listens there
			socklen_t n1 = sizes[j], n2 = sizes[j];
			int r1 = getsockopt(dead, SOL_SOCKET, SO_ERROR, at[i], &n1) ? errno : 0, r2 = getsockopt(dead, SOL_SOCKET, SO_TYPE, at[i], &n2) ? errno : 0;
			cases++;
			close(dead);
			if (r1 == r2 && (r1 || n1 == n2)) continue;
			differences++;
			printf("getsockopt(%d, %d): %d, %d; the kernel: %d, %d\n", i, sizes[j], r1, n1, r2, n2);
		}
	}
	printf("cases %d differences %d\nDONE\n", cases, differences);
	return 0;
}
