/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * For tests alone: the judgement of the hooks, run where a kernel refuses hooks, and the finding of what a hook cannot be
 * attached without.
 */
#include "judge.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct ask {
	__u64 session;
	__u64 ino;
	__u32 dev;
	__u32 length;
	__u32 refused; /* out */
	__u32 report;
	__u8 name[NAME_SIZE];
};

/* ask puts a question to one session. */
SEC("syscall")
int ask(struct ask *ctx)
{
	struct session s = { .id = ctx->session, .report = ctx->report };
	struct question q = { .ino = ctx->ino, .dev = ctx->dev, .length = ctx->length, .name = ctx->name };

	ctx->refused = refuses(&s, &q);
	return 0;
}

/*
 * renamed judges, whenever a process changes its own name, the creation of that name in its working directory: the way
 * of a hook from the calling process to the ring buffer.
 */
SEC("raw_tp/task_rename")
int renamed(__u64 *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct inode *dir = BPF_CORE_READ(task, fs, pwd.dentry, d_inode);
	const unsigned char *name = (const unsigned char *)ctx[1];
	struct question q = { .ino = BPF_CORE_READ(dir, i_ino), .dev = BPF_CORE_READ(dir, i_sb, s_dev), .name = name };
	struct session *s = session_of();
	char copy[16] = {};
	long length = bpf_probe_read_kernel_str(copy, sizeof(copy), name);

	if (!s || length <= 1)
		return 0;
	q.length = length - 1;
	refuses(s, &q);
	return 0;
}

/* entered judges the entry that is the working directory itself in the directory above it: the reading of an entry. */
SEC("raw_tp/task_newtask")
int entered(void *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct dentry *entry = BPF_CORE_READ(task, fs, pwd.dentry);

	(void)ctx;
	judge_entry(BPF_CORE_READ(entry, d_parent, d_inode), entry, 2);
	return 0;
}
