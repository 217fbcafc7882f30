/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What trace.bpf.c reads of the kernel: whose call it is, its arguments, and where its paths lead. */
#ifndef SRT_TRACE_H
#define SRT_TRACE_H

#include "kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

/* The kernel makes no user namespace below level 33 (create_user_ns); level 0 belongs to the host. */
#define MAX_LEVELS 34
/* How many directories and mounts a path goes through. */
#define MAX_STEPS 128
#define PATH_SIZE 4096
/* Two ways, each with the name that exceeds this, and two paths fit in the data. */
#define WAY_SIZE 3584
#define MAX_CALLS 512
#define EVENTS_SIZE 524288
#define DATA_MASK 0x3fff
#define TMPFS_MAGIC 0x01021994

enum {
	O_ACCMODE = 3,
	O_CREAT = 0100,
	O_TRUNC = 01000,
	O_PATH = 010000000,
};

/* What a call is. From CALL_OPEN on one that succeeds may count too. */
enum { CALL_WRITE = 1, CALL_READ, CALL_OPEN, CALL_OPEN_HOW };
/* CALL_TWO: it has two paths. CALL_NAMES: it takes names away or moves them. CALL_LINKS: a symbolic link can be where none
 * was. CALL_OTHER: a second path, which the call changes nothing about. */
enum { CALL_TWO = 1, CALL_NAMES = 2, CALL_LINKS = 4, CALL_OTHER = 8 };
enum { NO_ARGUMENT = 7 };

struct call {
	__u8 kind;
	__u8 shape;
	__u8 flags;   /* which argument has the flags, or points to them (CALL_OPEN_HOW) */
	__u8 pad;
	__u8 dir[2];  /* which argument is the descriptor; NO_ARGUMENT: the working directory */
	__u8 path[2]; /* which argument is the path; NO_ARGUMENT: the descriptor itself is meant */
};

/* TRACED_READS: reads count too. TRACED_HIDES: something of the host's is hidden. */
enum { TRACED_READS = 1, TRACED_HIDES = 2 };

struct traced {
	__u64 id;
	__u64 lost; /* records that found no room */
	__u32 flags;
	__u32 level; /* of the pid namespace whose numbers the reader knows */
	__u32 exec;  /* processes with this self_exec_id have not executed a program since they were forked off srt */
	__u32 links; /* how often a symbolic link may have come to be: what was known of paths holds no more */
	__u32 gaps;  /* changes that found no room */
	__u32 pad;
};

/* DEEP: the way to the root is longer than MAX_STEPS or the record. UNREAD: a path could not be read. NOWHERE: it is of
 * something that has no place in any directory, such as a pipe. */
enum { DEEP = 1, UNREAD = 2, NOWHERE = 4 };

struct event {
	__u64 session;
	__u64 time; /* CLOCK_MONOTONIC, nanoseconds */
	__u64 flags;
	__u32 pid;
	__u32 tid;
	__u16 call;
	__u16 error; /* 0: it succeeded, on something that stands in for what is hidden, or in changing a name */
	__u16 problems;
	__u16 used; /* bytes in data */
	__u64 origin; /* where the first path begins, 0: at the root */
	__u32 links;
	__u32 gaps;
	char comm[16];
	/* For each path: where it begins, from the inside to the outside with a slash after each name; then the path as the
	 * caller spelled it. Both lie in data, in this order. */
	__u16 base[2];
	__u16 text[2];
	__u8 data[DATA_MASK + 1 + PATH_SIZE];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct traced);
} traced SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_CALLS);
	__type(key, __u32);
	__type(value, struct call);
} calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct event);
} scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, EVENTS_SIZE);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} quiet SEC(".maps");

/*
 * A search for something that is not there happens all the time, and is a refusal only where a directory is hidden. What the
 * reader has found to be none is kept for a while, so that it is not told again and again.
 */
#define MISS_PATH 128
#define MISS_TIME 2000000000ULL

struct miss {
	__u64 session;
	__u64 origin;
	__u32 links;
	__u32 call;
	char path[MISS_PATH]; /* zeroes after it */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct miss);
	__type(value, __u64); /* when, by CLOCK_MONOTONIC */
} misses SEC(".maps");

/* session_of finds whose process this is: by its user namespace or one that holds it (judge.h). */
static __always_inline struct traced *session_of(struct task_struct *task)
{
	struct user_namespace *ns = BPF_CORE_READ(task, real_cred, user_ns);
	struct traced *s = 0;

	for (int i = 0; i < MAX_LEVELS; i++) {
		__u32 inum;

		if (!BPF_CORE_READ(ns, level))
			break;
		inum = BPF_CORE_READ(ns, ns.inum);
		s = bpf_map_lookup_elem(&traced, &inum);
		if (s)
			break;
		ns = BPF_CORE_READ(ns, parent);
	}
	return s;
}

/* call_number and call_arguments read the registers of a call that returns: on arm64 the first argument has made way for
 * the result. Where a member lies, and that the other architecture's is not there, is found out when this is loaded. */
static __always_inline __u32 call_number(void *regs)
{
	struct pt_regs___x86 *x86 = regs;
	struct pt_regs___arm64 *arm64 = regs;

	if (bpf_core_field_exists(x86->orig_ax))
		return x86->orig_ax;
	if (bpf_core_field_exists(arm64->syscallno))
		return arm64->syscallno;
	return MAX_CALLS;
}

static __always_inline void call_arguments(void *regs, __u64 *args)
{
	struct pt_regs___x86 *x86 = regs;
	struct pt_regs___arm64 *arm64 = regs;

	for (int i = 0; i < 6; i++)
		args[i] = 0;
	if (bpf_core_field_exists(x86->orig_ax)) {
		args[0] = x86->di;
		args[1] = x86->si;
		args[2] = x86->dx;
		args[3] = x86->r10;
		args[4] = x86->r8;
		args[5] = x86->r9;
	} else if (bpf_core_field_exists(arm64->syscallno)) {
		args[0] = arm64->orig_x0;
		args[1] = arm64->regs[1];
		args[2] = arm64->regs[2];
		args[3] = arm64->regs[3];
		args[4] = arm64->regs[4];
		args[5] = arm64->regs[5];
	}
}

/* number is the number of a thread in the pid namespace of a depth that holds its own. */
static __always_inline __u32 number(struct task_struct *task, __u32 level)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	__u32 nr = 0;

	if (level > BPF_CORE_READ(pid, level) || level > MAX_LEVELS)
		return 0;
	bpf_core_read(&nr, sizeof(nr), (void *)pid + bpf_core_field_offset(struct pid, numbers) + level * bpf_core_type_size(struct upid) +
		bpf_core_field_offset(struct upid, nr));
	return nr;
}

/* reads says whether a call is one of those that change nothing. */
static __always_inline int reads(const struct call *call, __u64 flags)
{
	if (call->kind == CALL_READ)
		return 1;
	return call->kind >= CALL_OPEN && !(flags & (O_ACCMODE | O_CREAT | O_TRUNC));
}

static __always_inline struct file *file_of(struct task_struct *task, __u64 fd)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **open = BPF_CORE_READ(table, fd), *file = 0;

	fd &= 0xffffffff;
	if (fd >= BPF_CORE_READ(table, max_fds) || bpf_probe_read_kernel(&file, sizeof(file), open + fd))
		return 0;
	return file;
}

/*
 * substituted says whether a descriptor is of something that stands in for what is hidden: the root of a mount, in a file
 * system in memory that the sandbox made, a directory or a file of mode 0000. (A process of a sandbox mounts nothing, and
 * root there may open that file.) It may be another mount of that kind: the reader knows.
 */
static __always_inline int substituted(const struct traced *s, long fd, __u64 flags)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct file *file;
	struct dentry *dentry;
	struct super_block *sb;
	struct inode *inode;
	__u16 mode;

	if (!(s->flags & TRACED_HIDES) || !(s->flags & TRACED_READS) || flags & O_PATH)
		return 0;
	file = file_of(task, fd);
	if (!file)
		return 0;
	dentry = BPF_CORE_READ(file, f_path.dentry);
	if (dentry != BPF_CORE_READ(file, f_path.mnt, mnt_root))
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	sb = BPF_CORE_READ(inode, i_sb);
	if (BPF_CORE_READ(sb, s_magic) != TMPFS_MAGIC || !BPF_CORE_READ(sb, s_user_ns, level))
		return 0;
	mode = BPF_CORE_READ(inode, i_mode);
	return (mode & 0170000) == 0040000 || mode == 0100000;
}

#endif
