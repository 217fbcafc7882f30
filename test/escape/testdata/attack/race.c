// The racer against the broker: tries to make a name that is denied while what a judge has looked at changes under it.
// Run in a directory with the directories d and good, where d/later and later are denied. The argument is a mode:
//
//	open mkdir mknod symlink link rename openat2 creat bind   the path in memory flips between two names
//	how        the flags of openat2 flip between nothing and O_CREAT
//	follow     a link on the way flips between good and d
//	final      a dangling link flips between good/x and d/later
//	cwd        another thread changes the working directory
//	table      another thread changes which directory a descriptor is
//	moved      another thread exchanges a directory for a link to d
//	storm      processes that are killed while their calls are pending
//	fifo N     N threads wait for the other end of a FIFO; a name is made meanwhile
//
// It prints INSIDE first and DONE when it has not been held up.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 700, LENGTH = 16 };

static char path[LENGTH] = "fine0";
static struct sockaddr_un address = {AF_UNIX, "fine0"};
static struct open_how how;
static int good, denied, moving;
static volatile int stop;
static volatile unsigned flips;

// What changes meanwhile.

// flipped lets the other thread run now and then, in either state, where they share a processor.
static void flipped(void) {
	if (++flips % 63 == 0)
		sched_yield();
}

static void *flip(void *at) {
	static const char *names[] = {"fine0", "later"};
	for (unsigned n = 0; !stop; n++, flipped())
		memcpy(at, names[n & 1], 6);
	return NULL;
}

static void *flip_how(void *unused) {
	for (unsigned n = 0; !stop; n++, flipped())
		*(volatile __u64 *)&how.flags = n & 1 ? O_CREAT | O_WRONLY : O_RDONLY;
	return NULL;
}

static void relink(const char *target, const char *name) {
	symlink(target, "t");
	rename("t", name);
}

static void *flip_link(void *unused) {
	for (unsigned n = 0; !stop; n++, flipped())
		relink(n & 1 ? "d" : "good", "l");
	return NULL;
}

static void *flip_final(void *unused) {
	for (unsigned n = 0; !stop; n++, flipped())
		relink(n & 1 ? "d/later" : "good/x", "f");
	return NULL;
}

static void *flip_cwd(void *unused) {
	for (unsigned n = 0; !stop; n++, flipped())
		fchdir(n & 1 ? denied : good);
	return NULL;
}

static void *flip_table(void *unused) {
	for (unsigned n = 0; !stop; n++, flipped())
		dup2(n & 1 ? denied : good, 100);
	return NULL;
}

static void *flip_moved(void *unused) {
	for (; !stop; flipped())
		renameat2(AT_FDCWD, "m1", AT_FDCWD, "m2", RENAME_EXCHANGE);
	return NULL;
}

// What is done meanwhile. Each cleans up what is not denied, so that it can be made again.

static void tidy(int made) {
	if (made >= 0)
		close(made);
	unlink("fine0");
	rmdir("fine0");
}

static void do_open(void) { tidy(open(path, O_CREAT | O_WRONLY, 0644)); }
static void do_mkdir(void) { mkdir(path, 0755); tidy(-1); }
static void do_mknod(void) { mknod(path, S_IFREG | 0644, 0); tidy(-1); }
static void do_symlink(void) { symlink("good", path); tidy(-1); }
static void do_link(void) { link("src", path); tidy(-1); }

static void do_rename(void) {
	close(open("src2", O_CREAT | O_WRONLY, 0644));
	rename("src2", path);
	tidy(-1);
}

static void do_openat2(void) {
	struct open_how h = {.flags = O_CREAT | O_WRONLY, .mode = 0644};
	tidy(syscall(SYS_openat2, AT_FDCWD, path, &h, sizeof h));
}

static void do_creat(void) { tidy(creat(path, 0644)); }

static void do_bind(void) {
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	bind(s, (struct sockaddr *)&address, sizeof address);
	tidy(s);
}

static void do_how(void) {
	how.mode = how.flags & O_CREAT ? 0644 : 0;
	tidy(syscall(SYS_openat2, AT_FDCWD, "later", &how, sizeof how));
}

static void do_in_link(void) { tidy(open("l/later", O_CREAT | O_WRONLY, 0644)); unlink("good/later"); }
static void do_final(void) { tidy(open("f", O_CREAT | O_WRONLY, 0644)); unlink("good/x"); }

static void do_here(void) {
	tidy(open("later", O_CREAT | O_WRONLY, 0644));
	unlinkat(good, "later", 0);
}

static void do_table(void) {
	tidy(openat(100, "later", O_CREAT | O_WRONLY, 0644));
	unlinkat(good, "later", 0);
}

static void do_moved(void) {
	tidy(open("m1/later", O_CREAT | O_WRONLY, 0644));
	unlinkat(moving, "later", 0);
}

static const struct race {
	const char *name;
	void *(*flipper)(void *);
	void *at;
	void (*act)(void);
} races[] = {
	{"open", flip, path, do_open},       {"mkdir", flip, path, do_mkdir},     {"mknod", flip, path, do_mknod},
	{"symlink", flip, path, do_symlink}, {"link", flip, path, do_link},       {"rename", flip, path, do_rename},
	{"openat2", flip, path, do_openat2}, {"creat", flip, path, do_creat},     {"bind", flip, address.sun_path, do_bind},
	{"how", flip_how, NULL, do_how},     {"follow", flip_link, NULL, do_in_link}, {"final", flip_final, NULL, do_final},
	{"cwd", flip_cwd, NULL, do_here},    {"table", flip_table, NULL, do_table},   {"moved", flip_moved, NULL, do_moved},
};

static void run(const struct race *r) {
	pthread_t other;
	if (pthread_create(&other, NULL, r->flipper, r->at) != 0)
		exit(3);
	while (flips == 0)
		sched_yield();
	for (int n = 0; n < ROUNDS || flips < ROUNDS; n++) {
		r->act();
		if (n % 16 == 0)
			sched_yield();
	}
	stop = 1;
	pthread_join(other, NULL);
}

// storm

static void *restless(void *unused) {
	for (;;) {
		do_open();
		close(open("d/later", O_CREAT | O_WRONLY, 0644));
		rename("good", "d/later");
		mkdir("d/later", 0755);
	}
	return unused;
}

static void storm(void) {
	enum { WAVES = 12, AT_ONCE = 16 };
	for (int wave = 0; wave < WAVES; wave++) {
		pid_t pids[AT_ONCE];
		for (int i = 0; i < AT_ONCE; i++) {
			if ((pids[i] = fork()) != 0)
				continue;
			pthread_t t;
			pthread_create(&t, NULL, restless, NULL);
			pthread_create(&t, NULL, flip, path);
			if (i % 4 == 0)
				_exit(0); // with calls of its threads pending
			restless(NULL);
		}
		usleep(1000 * (wave % 6));
		for (int i = 0; i < AT_ONCE; i++)
			kill(pids[i], SIGKILL);
		for (int i = 0; i < AT_ONCE; i++)
			waitpid(pids[i], NULL, 0);
	}
}

// fifo

static void *wait_for_reader(void *name) {
	open(name, O_CREAT | O_WRONLY, 0644);
	return NULL;
}

static void fifos(int count) {
	for (int i = 0; i < count; i++) {
		char *name = malloc(LENGTH);
		snprintf(name, LENGTH, "fifo%d", i);
		if (mkfifo(name, 0600) != 0)
			perror(name);
		pthread_t t;
		if (pthread_create(&t, NULL, wait_for_reader, name) != 0)
			perror("thread");
	}
	usleep(200000);
	for (int i = 0; i < 20; i++) {
		char name[LENGTH];
		snprintf(name, LENGTH, "d/alive%d", i);
		int fd = open(name, O_CREAT | O_WRONLY, 0644);
		if (fd < 0)
			perror(name);
		close(fd);
		close(open("d/later", O_CREAT | O_WRONLY, 0644));
	}
}

int main(int argc, char **argv) {
	printf("INSIDE\n");
	fflush(stdout);
	close(open("src", O_CREAT | O_WRONLY, 0644));
	symlink("d", "m2");
	mkdir("m1", 0755);
	good = open("good", O_PATH | O_DIRECTORY);
	moving = open("m1", O_PATH | O_DIRECTORY | O_NOFOLLOW);
	if (moving < 0) // an earlier run has left them exchanged
		moving = open("m2", O_PATH | O_DIRECTORY | O_NOFOLLOW);
	denied = open("d", O_PATH | O_DIRECTORY);
	if (argc < 2 || good < 0 || denied < 0)
		return 2;
	for (size_t i = 0; i < sizeof races / sizeof *races; i++)
		if (!strcmp(argv[1], races[i].name))
			run(&races[i]);
	if (!strcmp(argv[1], "storm"))
		storm();
	if (!strcmp(argv[1], "fifo"))
		fifos(argc > 2 ? atoi(argv[2]) : 1);
	printf("DONE\n");
	fflush(stdout);
	_exit(0);
}
