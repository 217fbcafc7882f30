// Lists (modes list DIR...) or takes away (modes take DIR...) the permissions of every file that is not of a process,
// without leaving the file systems of the directories. "modes fresh" lists those of a /proc mounted for this purpose in
// namespaces of its own, which shows what the kernel holds, not what this /proc remembers.
#define _GNU_SOURCE
#include <ctype.h>
#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int take;

static int visit(const char *path, const struct stat *st, int kind, struct FTW *at) {
	(void)kind;
	const char *name = path + at->base;
	if (at->level == 1 && (isdigit((unsigned char)name[0]) || !strcmp(name, "self") || !strcmp(name, "thread-self") || !strcmp(name, "net")))
		return FTW_SKIP_SUBTREE;
	if (S_ISLNK(st->st_mode) || at->level == 0)
		return FTW_CONTINUE;
	if (!take)
		printf("%s %o %d %d\n", path, st->st_mode & 07777, st->st_uid, st->st_gid);
	else if (chmod(path, 0700) == 0)
		fprintf(stderr, "took %s\n", path);
	return FTW_CONTINUE;
}

static int walk(int argc, char **argv) {
	for (int i = 2; i < argc; i++)
		nftw(argv[i], visit, 32, FTW_PHYS | FTW_MOUNT | FTW_ACTIONRETVAL);
	return 0;
}

static int fresh(void) {
	if (unshare(CLONE_NEWNS | CLONE_NEWPID) != 0) {
		perror("unshare");
		return 1;
	}
	pid_t child = fork();
	if (child == 0) {
		char *args[] = {"modes", "fresh", "/proc"};
		if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 || mount("proc", "/proc", "proc", 0, NULL) != 0) {
			perror("mount");
			_exit(1);
		}
		int r = walk(3, args);
		fflush(stdout);
		_exit(r);
	}
	int status = 1;
	return child > 0 && waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv) {
	if (argc > 1 && !strcmp(argv[1], "fresh"))
		return fresh();
	take = argc > 1 && !strcmp(argv[1], "take");
	if (take)
		printf("INSIDE\n");
	fflush(stdout);
	return walk(argc, argv);
}
