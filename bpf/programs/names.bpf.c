/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The hooks that every creation of a name goes through, whichever call made it: open and creat; mkdir; mknod and bind;
 * symlink; link; rename. The kernel asks after its own checks, so that a name that exists, a read-only mount and missing
 * rights answer as they always do.
 */
#include "judge.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum operation { CREATE = 1, MKDIR, MKNOD, SYMLINK, LINK, RENAME };

/* A hook reads two of its arguments: the directory, and the entry that is to be in it. */
#define HOOK(hook, operation, dir, entry) \
	SEC("lsm/" #hook) \
	int hook(__u64 *args) \
	{ \
		if (judge_entry((struct inode *)args[dir], (struct dentry *)args[entry], operation)) \
			return -EROFS; \
		return 0; \
	}

HOOK(inode_create, CREATE, 0, 1)   /* dir, entry, mode */
HOOK(inode_mkdir, MKDIR, 0, 1)     /* dir, entry, mode */
HOOK(inode_mknod, MKNOD, 0, 1)     /* dir, entry, mode, dev */
HOOK(inode_symlink, SYMLINK, 0, 1) /* dir, entry, target */
HOOK(inode_link, LINK, 1, 2)       /* old entry, dir, entry */
/* old dir, old entry, dir, entry. For RENAME_EXCHANGE the kernel asks in each direction (security_inode_rename). */
HOOK(inode_rename, RENAME, 2, 3)

/* identify says as whom the kernel knows a directory, given as a descriptor of the caller. */
struct identify {
	__u64 fd; /* in */
	__u64 ino;
	__u32 dev;
	__u32 found;
};

SEC("syscall")
int identify(struct identify *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **open = BPF_CORE_READ(table, fd), *file = 0;
	struct inode *inode;

	if (ctx->fd >= BPF_CORE_READ(table, max_fds))
		return 0;
	if (bpf_probe_read_kernel(&file, sizeof(file), open + ctx->fd) || !file)
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	ctx->ino = BPF_CORE_READ(inode, i_ino);
	ctx->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	ctx->found = 1;
	return 0;
}

/* find says by which number the kernel's own type information knows a function: what a hook is loaded with. */
struct find {
	char name[64];
	__s64 id; /* out: the number, or an error below 0 */
};

SEC("syscall")
int find(struct find *ctx)
{
	char name[64];

	__builtin_memcpy(name, ctx->name, sizeof(name));
	ctx->id = bpf_btf_find_by_name_kind(name, sizeof(name), 12 /* BTF_KIND_FUNC */, 0);
	return 0;
}
