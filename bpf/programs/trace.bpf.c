/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The system calls of sandboxes that the kernel refused, as they return. Whether a rule of the sandbox is behind a refusal
 * is not decided here: the reader does that, who knows the rules. And those that took a name away or gave one to something
 * that a path can lead through: the reader, who comes later, knows by them where a path led when the call was refused.
 *
 *	traced   number of a user namespace -> who is told of its refusals
 *	calls    number of a system call    -> what it is about; the loader fills it for its architecture
 *	misses   what was looked for in vain, and is known to be no refusal
 *	scratch  where a record is written, before its length is known
 *	events   the records, for the owner of the maps alone
 *	quiet    whether records wait that nobody was woken up for
 */
#include "walk.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum { EPERM = 1, ENOENT = 2, EACCES = 13, EBUSY = 16, EXDEV = 18, EROFS = 30 };

/* refusal says whether a call that returned this may have been refused for a rule. */
static __always_inline int refusal(long ret, const struct call *call, const struct traced *s)
{
	switch (ret) {
	case -EACCES:
	case -EPERM:
	case -EROFS:
		return 1;
	case -EBUSY: /* a name that a mount holds in place */
	case -EXDEV: /* the way out of or into a part that is a mount */
		return call->shape & CALL_NAMES;
	case -ENOENT: /* what a hidden directory hides */
		return s->flags & TRACED_HIDES;
	}
	return 0;
}

/* waiting is how much waits to be read. */
static __always_inline __u64 waiting(void)
{
	return bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);
}

/*
 * put gives a record to the reader. A change is of use once a refusal is told, and wakes nobody up before there are many. The
 * kernel wakes nobody for a record that others wait before, so the next refusal has to ask for it.
 */
static __always_inline long put(struct event *e, int change)
{
	__u64 flags = 0;
	__u32 zero = 0, *asleep = bpf_map_lookup_elem(&quiet, &zero);
	long failed;

	if (!asleep)
		return -1;
	if (change && waiting() < EVENTS_SIZE / 8) {
		flags = BPF_RB_NO_WAKEUP;
	} else if (change || *asleep) {
		flags = BPF_RB_FORCE_WAKEUP;
		*asleep = 0;
	}
	failed = bpf_ringbuf_output(&events, e, offsetof(struct event, data) + used(e), flags);
	if (flags == BPF_RB_NO_WAKEUP)
		*asleep = 1;
	return failed;
}

/*
 * tell writes the record of one call. What it says of paths is what the caller's memory and the directories say now: for a
 * report that is enough, and for nothing else. A file that was opened is told as it is.
 */
static __always_inline void tell(struct traced *s, const struct call *call, const __u64 *args, __u32 nr, long ret, __u64 flags,
				 int change)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct event *e;
	__u32 zero = 0;

	e = bpf_map_lookup_elem(&scratch, &zero);
	if (!e)
		return;
	e->session = s->id;
	e->time = bpf_ktime_get_ns();
	e->flags = flags;
	e->pid = number(BPF_CORE_READ(task, group_leader), s->level);
	e->tid = number(task, s->level);
	e->call = nr;
	e->error = ret < 0 ? -ret : 0;
	e->problems = e->used = 0;
	e->origin = 0;
	e->links = s->links;
	e->gaps = s->gaps;
	bpf_get_current_comm(e->comm, sizeof(e->comm));
	place(e, 0, task, args, call->dir[0], call->path[0], ret >= 0 && !change ? file_of(task, ret) : 0);
	e->base[1] = e->text[1] = 0;
	if (call->shape & (CALL_TWO | CALL_OTHER))
		place(e, 1, task, args, call->dir[1], call->path[1], 0);
	if (put(e, change)) {
		if (change)
			__sync_fetch_and_add(&s->gaps, 1);
		else
			__sync_fetch_and_add(&s->lost, 1);
	}
}

/*
 * finished looks at each system call of the host as it returns: the cheapest question first. A process outside of every
 * sandbox costs three loads.
 */
SEC("tp_btf/sys_exit")
int finished(__u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	long ret = ctx[1];
	__u64 args[6], flags = 0;
	struct traced *s;
	struct call *call;
	int change;
	__u32 nr;

	if (ret < 0 && ret != -EACCES && ret != -EPERM && ret != -EROFS && ret != -ENOENT && ret != -EBUSY && ret != -EXDEV)
		return 0;
	if (!task->real_cred->user_ns->level)
		return 0;
	nr = call_number((void *)ctx[0]);
	call = bpf_map_lookup_elem(&calls, &nr);
	if (!call || !call->kind)
		return 0;
	change = ret >= 0 && call->kind < CALL_OPEN;
	if (change && !(call->shape & (CALL_NAMES | CALL_LINKS)))
		return 0;
	s = session_of((struct task_struct *)bpf_get_current_task());
	if (!s || task->self_exec_id == s->exec)
		return 0; /* the latter: not the command yet, or a helper of srt's */
	if (change && call->shape & CALL_LINKS)
		__sync_fetch_and_add(&s->links, 1);
	if (change && waiting() > EVENTS_SIZE / 2) { /* the rest is kept for refusals */
		__sync_fetch_and_add(&s->gaps, 1);
		return 0;
	}
	call_arguments((void *)ctx[0], args);
	if (call->flags < 6)
		flags = args[call->flags & 7];
	if (call->kind == CALL_OPEN_HOW && bpf_probe_read_user(&flags, sizeof(flags), (void *)args[call->flags & 7]))
		return 0; /* the kernel could not read it either: EFAULT */
	if (!change) {
		if (reads(call, flags) && !(s->flags & TRACED_READS))
			return 0;
		if (ret >= 0 ? !substituted(s, ret, flags) : !refusal(ret, call, s))
			return 0;
		if (ret == -ENOENT && missed(s, call, args, nr))
			return 0;
	}
	tell(s, call, args, nr, ret, flags, change);
	return 0;
}

/* self says how the kernel numbers the caller's processes, and how it tells the caller's program from the next one. */
struct self {
	__u32 level; /* out: depth of the pid namespace */
	__u32 exec;
};

SEC("syscall")
int self(struct self *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	ctx->level = BPF_CORE_READ(task, thread_pid, level);
	ctx->exec = BPF_CORE_READ(task, self_exec_id);
	return 0;
}

/* find says by which number the kernel's own type information knows a tracepoint: what a program is loaded with. */
struct find {
	char name[64];
	__s64 id; /* out: the number, or an error below 0 */
};

SEC("syscall")
int find_type(struct find *ctx)
{
	char name[64];

	__builtin_memcpy(name, ctx->name, sizeof(name));
	ctx->id = bpf_btf_find_by_name_kind(name, sizeof(name), 8 /* BTF_KIND_TYPEDEF */, 0);
	return 0;
}
