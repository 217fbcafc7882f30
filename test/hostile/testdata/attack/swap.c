// Exchanges a socket of its own with one of the host, again and again, while it connects to the name that both have in turn.
// usage: swap HOST OWN TRIES. HOST and OWN are paths in one directory.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static const char *host, *own;
static volatile int stop;

static void *swap(void *arg) {
	while (!stop) syscall(SYS_renameat2, AT_FDCWD, host, AT_FDCWD, own, 2 /* RENAME_EXCHANGE */);
	return NULL;
}

static void *drain(void *arg) {
	for (;;) {
		int c = accept((int)(long)arg, NULL, NULL);
		if (c < 0 && errno != EINTR) return NULL;
		close(c);
	}
}

int main(int argc, char **argv) {
	host = argv[1], own = argv[2];
	struct sockaddr_un a = {AF_UNIX};
	strncpy(a.sun_path, own, sizeof a.sun_path - 1);
	int l = socket(AF_UNIX, SOCK_STREAM, 0);
	if (bind(l, (void *)&a, sizeof a) || listen(l, 100)) return perror("listen"), 1;
	pthread_t t;
	pthread_create(&t, NULL, swap, NULL);
	pthread_create(&t, NULL, drain, (void *)(long)l);
	long connected = 0, refused = 0, failed = 0, tries = atol(argv[3]);
	for (long i = 0; i < tries; i++) {
		int s = socket(AF_UNIX, SOCK_STREAM, 0);
		strncpy(a.sun_path, i & 1 ? host : own, sizeof a.sun_path - 1);
		if (!connect(s, (void *)&a, sizeof a)) connected++;
		else if (errno == EACCES) refused++;
		else failed++;
		close(s);
	}
	stop = 1;
	printf("tries %ld connected %ld refused %ld failed %ld\nDONE\n", tries, connected, refused, failed);
	_exit(fflush(stdout));
}
