/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* How trace.bpf.c writes where the paths of a call lead, into its record. */
#ifndef SRT_WALK_H
#define SRT_WALK_H

#include "trace.h"

/* How much of data is in use lies in the record, not in a register: what the verifier knows of a number there is forgotten
 * each time, so that it need not go through every length of every way. */
static __always_inline __u32 used(struct event *e)
{
	return *(volatile __u16 *)&e->used & DATA_MASK;
}

/* name_of appends one name and a slash. */
static __always_inline void name_of(struct event *e, struct dentry *dentry)
{
	__u32 off = used(e), length = BPF_CORE_READ(dentry, d_name.len) & 0xff;

	if (bpf_probe_read_kernel(e->data + off, length, BPF_CORE_READ(dentry, d_name.name)))
		e->problems |= UNREAD;
	off = (off + length) & DATA_MASK;
	e->data[off] = '/';
	e->used = off + 1;
}

/* walk is where the way to the root has come to. */
struct walk {
	struct event *e;
	struct vfsmount *mnt;
	struct dentry *dentry;
	__u32 limit;
	__u32 done;
};

/* step goes on to the next directory, or through a mount. It gives 1 at the root. */
static long step(__u32 index, struct walk *w)
{
	struct vfsmount *mnt = w->mnt; /* BPF_CORE_READ would have the kernel look for struct walk */
	struct dentry *dentry = w->dentry, *parent;

	(void)index;
	if (dentry == BPF_CORE_READ(mnt, mnt_root)) {
		struct mount *m = (void *)mnt - bpf_core_field_offset(struct mount, mnt), *over = BPF_CORE_READ(m, mnt_parent);

		if (over == m) {
			w->done = 1;
			return 1;
		}
		w->dentry = BPF_CORE_READ(m, mnt_mountpoint);
		w->mnt = (void *)over + bpf_core_field_offset(struct mount, mnt);
		return 0;
	}
	parent = BPF_CORE_READ(dentry, d_parent);
	if (parent == dentry) {
		w->e->problems |= NOWHERE;
		w->done = 1;
		return 1;
	}
	if (used(w->e) > w->limit)
		return 1;
	name_of(w->e, dentry);
	w->dentry = parent;
	return 0;
}

/* way appends the names from a directory to the root of the mount namespace. */
static __always_inline void way(struct event *e, struct vfsmount *mnt, struct dentry *dentry)
{
	struct walk w = { .e = e, .mnt = mnt, .dentry = dentry, .limit = used(e) + WAY_SIZE };

	bpf_loop(MAX_STEPS, step, &w, 0);
	if (!w.done)
		e->problems |= DEEP;
}

/* origin is where a path begins: at the root, at a descriptor, or at the working directory. It gives 0 for the first. */
static __always_inline struct dentry *origin(struct task_struct *task, const __u64 *args, __u32 dir, char first, struct vfsmount **mnt)
{
	struct fs_struct *fs = BPF_CORE_READ(task, fs);

	if (first == '/') {
		*mnt = BPF_CORE_READ(fs, root.mnt);
		return BPF_CORE_READ(fs, root.dentry);
	}
	if (dir < 6 && (__s32)args[dir & 7] != -100 /* AT_FDCWD */) {
		struct file *file = file_of(task, args[dir & 7]);

		*mnt = BPF_CORE_READ(file, f_path.mnt);
		return BPF_CORE_READ(file, f_path.dentry);
	}
	*mnt = BPF_CORE_READ(fs, pwd.mnt);
	return BPF_CORE_READ(fs, pwd.dentry);
}

/* place appends where a path begins, and the path; opened: that of an open file. */
static __always_inline void place(struct event *e, int which, struct task_struct *task, const __u64 *args, __u32 dir, __u32 path,
				  struct file *opened)
{
	struct vfsmount *mnt;
	struct dentry *dentry;
	const void *text = 0;
	__u32 start = used(e);
	char first = 0;
	long length;

	if (path < 6 && !opened)
		text = (const void *)args[path & 7];
	if (text && bpf_probe_read_user(&first, 1, text))
		e->problems |= UNREAD;
	if (opened) {
		mnt = BPF_CORE_READ(opened, f_path.mnt);
		dentry = BPF_CORE_READ(opened, f_path.dentry);
	} else {
		dentry = origin(task, args, dir, first, &mnt);
	}
	if (!dentry)
		e->problems |= UNREAD; /* the descriptor is closed meanwhile */
	if (!which && first != '/')
		e->origin = (__u64)dentry;
	way(e, mnt, dentry);
	e->base[which] = used(e) - start;
	e->text[which] = 0;
	if (!text)
		return;
	length = bpf_probe_read_user_str(e->data + used(e), PATH_SIZE, text);
	if (length <= 0) {
		e->problems |= UNREAD;
		return;
	}
	e->text[which] = length - 1;
	e->used = used(e) + length - 1;
}

/* missed says whether it is known that what was not found is nothing hidden. */
static __always_inline int missed(const struct traced *s, const struct call *call, const __u64 *args, __u32 nr)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct miss key = {};
	struct vfsmount *mnt;
	__u64 *when;
	long length;

	if (call->path[0] >= 6 || call->shape & CALL_TWO)
		return 0;
	length = bpf_probe_read_user_str(key.path, sizeof(key.path), (const void *)args[call->path[0] & 7]);
	if (length <= 1 || length >= MISS_PATH)
		return 0;
	key.session = s->id;
	key.links = s->links;
	key.call = nr;
	if (key.path[0] != '/')
		key.origin = (__u64)origin(task, args, call->dir[0], 0, &mnt);
	when = bpf_map_lookup_elem(&misses, &key);
	return when && bpf_ktime_get_ns() - *when < MISS_TIME;
}

#endif
