// Connects again and again to an address that other threads change meanwhile, with a descriptor for which they put other
// things in place. usage: race MODE blocking|non-blocking TRIES. Whom a connection leads to its first line says.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GOOD "10.203.1.1"
#define BAD "10.203.2.1"
#define GOODPORT 8
#define BADPORT 7

typedef union {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;
	char bytes[128];
} address;

static const char *mode;
static int blocking;
static address *shared; // a page of its own
static volatile int fd = -1, stop;
static int helper = -1, pages, spare_udp, spare_unix, spare_listener;
static long connected, refused, failed;

static address four(const char *host, int port) {
	address a = {0};
	a.in.sin_family = AF_INET, a.in.sin_port = htons(port);
	inet_pton(AF_INET, host, &a.in.sin_addr);
	return a;
}

static address six(const char *host, int port) {
	address a = {0};
	a.in6.sin6_family = AF_INET6, a.in6.sin6_port = htons(port);
	inet_pton(AF_INET6, host, &a.in6.sin6_addr);
	return a;
}

static address local(const char *path) {
	address a = {0};
	a.un.sun_family = AF_UNIX;
	strncpy(a.un.sun_path, path, sizeof a.un.sun_path - 1);
	return a;
}

static int is(const char *what) { return !strcmp(mode, what); }

#define COUNT 14
static address list[COUNT];

static void prepare(void) {
	const char *path = getenv("HOSTSOCKET");
	address all[COUNT] = {four(GOOD, GOODPORT), four(BAD, GOODPORT), four(GOOD, BADPORT), four("127.0.0.1", GOODPORT), four("0.0.0.0", 1081),
		four("127.0.0.1", 1082), six("::ffff:" GOOD, GOODPORT), six("::ffff:" BAD, GOODPORT), six("fd5a:203:1::1", GOODPORT), six("fd5a:203:1::bad", GOODPORT),
		six("::1", 1081), local(path ? path : "/none"), four(GOOD, GOODPORT), four("10.203.255.1", GOODPORT)};
	memcpy(list, all, sizeof all);
	list[12].sa.sa_family = AF_UNSPEC;
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	*shared = list[0];
	pages = memfd_create("pages", 0);
	for (int i = 0; i < 3; i++) pwrite(pages, &list[i & 1], 128, 4096 * i);
	spare_udp = socket(AF_INET, SOCK_DGRAM, 0);
	spare_unix = socket(AF_UNIX, SOCK_STREAM, 0);
	spare_listener = socket(AF_INET, SOCK_STREAM, 0);
	listen(spare_listener, 8);
}

static unsigned next(unsigned *seed) { return *seed = *seed * 1664525 + 1013904223, *seed >> 8; }

// disturb does one thing to what a connect works with.
static void disturb(unsigned r) {
	int f = fd;
	static const int one = 1;
	const struct timeval times[] = {{0, 1}, {0, 50000}};
	address bound = four("127.0.0.1", 0);
	if (is("address")) memcpy(&shared->in.sin_addr, &list[r & 1].in.sin_addr, 4);
	else if (is("port")) shared->in.sin_port = list[r & 1 ? 0 : 2].in.sin_port;
	else if (is("family")) shared->sa.sa_family = (short[]){AF_INET, AF_INET6, AF_UNSPEC, AF_UNIX}[r & 3];
	else if (is("all")) memcpy(shared, &list[r % COUNT], sizeof *shared);
	else if (is("unmap")) mmap(shared, 4096, r % 3 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_FIXED, pages, 4096 * (r % 3));
	else if (f < 0) return;
	else if (is("udp")) { memcpy(shared, &list[r & 1], 16); dup2(spare_udp, f); }
	else if (is("unix")) { memcpy(shared, &list[r & 1 ? 11 : 0], sizeof *shared); dup2(spare_unix, f); }
	else if (is("listener")) dup2(spare_listener, f);
	else if (is("close")) close(f);
	else if (is("undo")) {
		memcpy(&shared->in.sin_addr, &list[r & 1].in.sin_addr, 4);
		switch (r >> 1 & 7) {
		case 0: case 1: connect(f, &list[12].sa, 16); break;
		case 2: shutdown(f, SHUT_RDWR); break;
		case 3: listen(f, 4); break;
		case 4: bind(f, &bound.sa, 16); break;
		case 5: connect(f, &list[1].sa, 16); break;
		case 6: setsockopt(f, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &one, 4); break;
		case 7: send(f, "stolen", 6, MSG_DONTWAIT | MSG_NOSIGNAL); break;
		}
	} else if (is("modes")) {
		memcpy(&shared->in.sin_addr, &list[r & 1].in.sin_addr, 4);
		if (r & 2) setsockopt(f, SOL_SOCKET, SO_SNDTIMEO, &times[r >> 2 & 1], sizeof times[0]);
		else fcntl(f, F_SETFL, r & 4 ? O_NONBLOCK : 0);
	}
}

// pass gives a process of its own the descriptors that it is sent, to do to them what the racers of "undo" do.
static int pass(void) {
	int pair[2];
	socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair);
	if (fork()) return close(pair[1]), pair[0];
	close(pair[0]);
	unsigned seed = getpid();
	mode = "undo";
	for (;;) {
		char byte, space[CMSG_SPACE(sizeof(int))];
		struct iovec iov = {&byte, 1};
		struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
		if (recvmsg(pair[1], &m, 0) <= 0) _exit(0);
		if (!CMSG_FIRSTHDR(&m)) continue;
		memcpy((int *)&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(int));
		for (unsigned n = next(&seed) % 4; n; n--) disturb(next(&seed));
		close(fd);
	}
}

static void send_to_helper(int s) {
	char byte = 0, space[CMSG_SPACE(sizeof s)] = {0};
	struct iovec iov = {&byte, 1};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof s);
	memcpy(CMSG_DATA(c), &s, sizeof s);
	sendmsg(helper, &m, 0);
}

static void *racer(void *arg) {
	unsigned seed = (unsigned)(long)arg * 7919 + getpid();
	while (!stop) disturb(next(&seed));
	return NULL;
}

// patience is for what must come in the end, in milliseconds: always, if the socket is still the one that was connected.
static int patience(void) {
	return is("address") || is("port") || is("family") || is("all") || is("unmap") || is("length") ? 30000 : 20;
}

// whose reads the line with which a server tells where a connection came to.
static void whose(int s) {
	char line[64] = {0};
	struct pollfd p = {.fd = s, .events = POLLIN};
	if (poll(&p, 1, patience()) <= 0) return;
	if (recv(s, line, sizeof line - 1, MSG_DONTWAIT) <= 0) return;
	if (strcmp(line, GOOD ":8\n") && strcmp(line, "fd5a:203:1::1:8\n")) {
		printf("LEAK %s\n", line);
		exit(1);
	}
	connected++;
}

static void attempt(unsigned r) {
	int family = is("all") && r & 1 ? AF_INET6 : AF_INET;
	int s = socket(family, SOCK_STREAM | (blocking ? 0 : SOCK_NONBLOCK), 0);
	struct timeval limit = {0, 50000}; // whatever else the socket is made by then
	if (patience() < 1000) setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	socklen_t size = is("length") ? (socklen_t)(r % 140) - 4 : sizeof shared->in;
	if (is("unix")) size = sizeof shared->un; // the longest that both families take
	if (is("all")) size = r & 2 ? 28 : 16;
	if (helper >= 0) send_to_helper(s);
	fd = s;
	int e = connect(s, &shared->sa, size) ? errno : 0;
	if (e == EINPROGRESS) {
		struct pollfd p = {.fd = s, .events = POLLOUT};
		socklen_t n = sizeof e;
		if (poll(&p, 1, patience()) <= 0 || getsockopt(s, SOL_SOCKET, SO_ERROR, &e, &n)) e = ETIMEDOUT;
	}
	fd = -1;
	if (e == 0) {
		send(s, "stolen", 6, MSG_DONTWAIT | MSG_NOSIGNAL);
		whose(s);
	} else if (e == EACCES) refused++;
	else failed++;
	close(s);
}

// child connects while the process ends, or becomes another program.
static void *connector(void *arg) {
	attempt(*(unsigned *)arg);
	return NULL;
}

static void child(unsigned r) {
	pthread_t t;
	pthread_create(&t, NULL, connector, &r);
	for (volatile unsigned i = r % 200000; i; i--) ;
	if (is("exec")) execl("/bin/true", "true", NULL);
	_exit(0);
}

int main(int argc, char **argv) {
	mode = argv[1], blocking = !strcmp(argv[2], "blocking");
	long tries = atol(argv[3]);
	unsigned seed = 42;
	int dying = is("exec") || is("exit");
	prepare();
	if (is("passed")) helper = pass();
	pthread_t racers[2];
	for (long i = 0; i < 2 && !dying; i++) pthread_create(&racers[i], NULL, racer, (void *)i);
	for (long i = 0; i < tries; i++) {
		unsigned r = next(&seed);
		if (!dying) { attempt(r); continue; }
		*shared = list[r >> 4 & 1];
		pid_t pid = fork();
		if (!pid) child(r);
		if (r & 1) kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	stop = 1;
	for (long i = 0; i < 2 && !dying; i++) pthread_join(racers[i], NULL);
	if (helper >= 0) close(helper), wait(NULL);
	int s = socket(AF_INET, SOCK_STREAM, 0); // what is allowed still is
	long before = connected;
	if (connect(s, &list[0].sa, sizeof list[0].in)) perror("connect afterwards");
	mode = "address", whose(s);
	if (connected != before + 1) return printf("nothing is reached afterwards\n"), 1;
	connected = before;
	printf("tries %ld connected %ld refused %ld failed %ld\nDONE\n", tries, connected, refused, failed);
	return 0;
}
