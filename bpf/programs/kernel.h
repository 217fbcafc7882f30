/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The few members of the kernel's structures that the programs read. Where they lie is found out when a program is
 * loaded (CO-RE): the kernel compares these declarations with its own types.
 */
#ifndef SRT_KERNEL_H
#define SRT_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum { BPF_F_NO_PREALLOC = 1, BPF_RB_AVAIL_DATA = 0, BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct user_namespace {
	struct user_namespace *parent;
	int level;
	struct ns_common ns;
};

struct cred {
	struct user_namespace *user_ns;
};

struct super_block {
	__u32 s_dev;
	unsigned long s_magic;
	struct user_namespace *s_user_ns;
};

struct inode {
	unsigned short i_mode;
	struct super_block *i_sb;
	unsigned long i_ino;
};

struct qstr {
	__u32 len;
	const unsigned char *name;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	struct inode *f_inode;
	struct path f_path;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct fs_struct {
	struct path root;
	struct path pwd;
};

struct upid {
	int nr;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

/* The registers of a system call, which each architecture names in its own way. */
struct pt_regs___x86 {
	unsigned long di, si, dx, r10, r8, r9, orig_ax;
};

struct pt_regs___arm64 {
	__u64 regs[31];
	__u64 orig_x0;
	__s32 syscallno;
};

struct task_struct {
	const struct cred *real_cred;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	__u32 self_exec_id;
	struct fs_struct *fs;
	struct files_struct *files;
};

#pragma clang attribute pop

#endif
