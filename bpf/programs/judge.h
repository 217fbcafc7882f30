/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The rules of all sessions, and the question whether one of them refuses a name in a directory (FS-30). Every program
 * that judges includes this file, so that what the tests run is what the hooks run.
 *
 *	sessions  number of a user namespace   -> a session
 *	dirs      session, directory           -> token of the directory, which kinds of names it has
 *	names     token, name, kind            -> rule
 *	refusals  what was refused, for the owner of the sessions
 *	lost      how many refusals found no room there
 */
#ifndef SRT_JUDGE_H
#define SRT_JUDGE_H

#include "kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#define EROFS 30
#define NAME_SIZE 256
/* The kernel makes no user namespace below level 33 (create_user_ns); level 0 belongs to the host. */
#define MAX_LEVELS 34

enum { NAMES_EXACT = 1, NAMES_FOLDED = 2 };

struct session {
	__u64 id;
	__u32 report; /* refusals go to the ring buffer */
	__u32 pad;
};

struct dir_key {
	__u64 session;
	__u64 ino;
	__u32 dev; /* s_dev of the superblock: stat(2) may tell another */
	__u32 pad;
};

struct dir {
	__u32 token;
	__u32 kinds;
};

struct name_key {
	__u8 name[NAME_SIZE]; /* zeroes after the name, which has 255 bytes at most */
	__u32 token;
	__u32 kind;
};

struct refusal {
	__u64 session;
	__u32 rule;
	__u32 pid; /* as the host sees it */
	__u32 tid;
	__u16 operation;
	__u16 length;
	char comm[16];
	__u8 name[NAME_SIZE];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct session);
} sessions SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct dir_key);
	__type(value, struct dir);
} dirs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct name_key);
	__type(value, __u32);
} names SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} refusals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} lost SEC(".maps");

/* What is asked. */
struct question {
	__u64 ino;
	__u32 dev;
	__u32 operation;
	__u32 length;
	const unsigned char *name; /* kernel memory */
};

/* fold makes ASCII letters small, eight bytes at a time. Other letters are the loader's business: it adds a name for
 * each spelling. */
static __always_inline void fold(struct name_key *key)
{
	__u64 *words = (__u64 *)key->name;

#pragma unroll
	for (int i = 0; i < NAME_SIZE / 8; i++) {
		__u64 w = words[i], low = w & 0x7f7f7f7f7f7f7f7fULL;
		__u64 above_z = low + 0x2525252525252525ULL, from_a = low + 0x3f3f3f3f3f3f3f3fULL;
		__u64 upper = ~w & (from_a ^ above_z) & 0x8080808080808080ULL;

		words[i] = w | upper >> 2;
	}
}

static __always_inline void tell(const struct session *s, const struct question *q, __u32 rule)
{
	struct refusal *r;
	__u64 ids, *count;
	__u32 zero = 0, length = q->length;

	if (!s->report)
		return;
	r = bpf_ringbuf_reserve(&refusals, sizeof(*r), 0);
	if (!r) {
		count = bpf_map_lookup_elem(&lost, &zero);
		if (count)
			__sync_fetch_and_add(count, 1);
		return;
	}
	ids = bpf_get_current_pid_tgid();
	r->session = s->id;
	r->rule = rule;
	r->pid = ids >> 32;
	r->tid = ids;
	r->operation = q->operation;
	bpf_get_current_comm(r->comm, sizeof(r->comm));
	if (length >= NAME_SIZE || bpf_probe_read_kernel(r->name, length, q->name))
		length = 0;
	r->length = length;
	bpf_ringbuf_submit(r, 0);
}

/* refuses says whether one session refuses the creation, and tells of it. */
static __always_inline int refuses(const struct session *s, const struct question *q)
{
	struct dir_key place = { .session = s->id, .ino = q->ino, .dev = q->dev };
	struct name_key key = {};
	__u32 length = q->length, *rule;
	struct dir *dir;

	dir = bpf_map_lookup_elem(&dirs, &place);
	if (!dir)
		return 0;
	if (length >= NAME_SIZE)
		return 0; /* no rule has such a name */
	if (bpf_probe_read_kernel(key.name, length, q->name))
		return 1; /* cannot be: the name belongs to a directory that is locked */
	key.token = dir->token;
	key.kind = NAMES_EXACT;
	rule = bpf_map_lookup_elem(&names, &key);
	if (!rule && dir->kinds & NAMES_FOLDED) {
		key.kind = NAMES_FOLDED;
		fold(&key);
		rule = bpf_map_lookup_elem(&names, &key);
	}
	if (!rule)
		return 0;
	tell(s, q, *rule);
	return 1;
}

/*
 * session_of finds the session that the calling process belongs to: through its own user namespace or one that holds it,
 * since nothing inside can enter a user namespace above its own. Sessions do not nest (the loader sees to that). The
 * credentials are those of the process itself (real_cred), not the ones that a stacked file system lends it.
 */
static __always_inline struct session *session_of(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct user_namespace *ns = BPF_CORE_READ(task, real_cred, user_ns);
	struct session *s = 0;

	for (int i = 0; i < MAX_LEVELS; i++) {
		__u32 inum;

		if (!BPF_CORE_READ(ns, level))
			break;
		inum = BPF_CORE_READ(ns, ns.inum);
		s = bpf_map_lookup_elem(&sessions, &inum);
		if (s)
			break;
		ns = BPF_CORE_READ(ns, parent);
	}
	return s;
}

/* judge_entry says whether the session of the calling process, if any, refuses the name of an entry in a directory. */
static __always_inline int judge_entry(const struct inode *dir, const struct dentry *entry, __u32 operation)
{
	struct session *s = session_of();
	struct question q = { .operation = operation };

	if (!s)
		return 0;
	q.ino = BPF_CORE_READ(dir, i_ino);
	q.dev = BPF_CORE_READ(dir, i_sb, s_dev);
	q.length = BPF_CORE_READ(entry, d_name.len);
	q.name = BPF_CORE_READ(entry, d_name.name);
	return refuses(s, &q);
}

#endif
