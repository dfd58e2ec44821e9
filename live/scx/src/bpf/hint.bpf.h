/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a task names its fragment, in one of these ways:
 *   prctl(WARMQ_PRCTL_HINT, hint)   by itself; acts at once (warmq.h)
 *   a slot                          by itself; a memory write, seen at its next scheduling event or
 *                                   tick (warmq.h)
 *   a map of task hints             by whoever may write to it; seen as a slot is, which wins
 *   a label                         by an administrator; seen within a period, and it wins
 * warmq_abi.h says what a hint and a slot are. In the first two ways a program can only speak of its own
 * tasks.
 */
#pragma once

/* What a task said about itself. It is kept while no scheduler is loaded. */
struct reported {
	u64 hint;
	u64 nonce;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct reported);
} hints SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u64);
} labels SEC(".maps");

/*
 * Hints as programs give them to scx_layered (--task-hint-map), whose struct has this layout: by a pidfd,
 * by whoever may write to the pinned map.
 */
struct task_hint {
	u64 hint; /* 0: none */
	u64 unused[3];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_hint);
} task_hints SEC(".maps");

/*
 * An object of the type, so that BTF has its layout: the kernel needs the size of what a uptr
 * points to.
 */
struct warmq_slot slot_layout;

struct slot_pointer {
	struct warmq_slot __uptr *slot;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct slot_pointer);
} slots SEC(".maps");

enum { SCOPE_PROCESS, SCOPE_USER, SCOPE_SYSTEM };

/* A hint as a program gave it: without what only our own keys have. */
static __always_inline u64 said(u64 hint)
{
	return hint & ~(WARMQ_INFERRED | WARMQ_GROUPED);
}

static __always_inline u32 user_of(const struct task_struct *p)
{
	return BPF_CORE_READ(p, cred, uid.val);
}

/*
 * Puts a task into the group of a hint; it moves when it is next enqueued. Returns whether anything
 * changed.
 */
__noinline int follow(struct task_struct *p __arg_trusted, struct task_state *t __arg_nonnull, u64 hint, bool label, u32 cpu)
{
	struct group_key key = { .hint = hint };
	u64 now = scx_bpf_now();
	u32 number = 0;

	if (hint == t->hint && label == t->labelled)
		return false;
	if (!label && scope != SCOPE_SYSTEM)
		key.uid = user_of(p) + 1;
	if (!label && scope == SCOPE_PROCESS)
		key.tgid = p->tgid;
	if (hint)
		number = find_group(p, &key, cpu, now, ORIGIN_NAMED);
	t->hint = hint;
	t->labelled = label;
	enter_group(t, number, now);
	/* Until it was a member, the group may have been given to another owner. */
	if (number && !same_key(&group_of(number)->key, &key)) {
		enter_group(t, 0, now);
		t->hint = 0;
	} else if (t->hint != hint || t->labelled != label) { /* somebody else followed another meanwhile */
		t->hint = HINT_UNKNOWN;
	}
	return true;
}

/*
 * The group of a task that named nothing (--group-by): that of its cgroup, or of its memory or process
 * if that has several threads. 0: none.
 */
static u32 usual_group(struct task_struct *p, struct task_state *t, u32 cpu, u64 now)
{
	struct group_key key = {};

	if (p->flags & PF_KTHREAD)
		return 0;
	if (group_by == ORIGIN_CGROUP) {
		if (!t->cgroup)
			return 0;
		key.hint = WARMQ_GROUPED | t->cgroup;
	} else {
		if (BPF_CORE_READ(p, signal, nr_threads) < 2)
			return 0;
		key.uid = user_of(p) + 1;
		/* A process has one memory; several processes may share one (CLONE_VM). */
		if (group_by == ORIGIN_MEMORY)
			key.hint = WARMQ_GROUPED | ((u64)BPF_CORE_READ(p, mm) & (WARMQ_GROUPED - 1));
		else
			key.hint = WARMQ_GROUPED | p->tgid;
	}
	return find_group(p, &key, cpu, now, group_by);
}

/* Looks once a period whether a task without a group has got one. */
__noinline int look_for_usual_group(struct task_struct *p __arg_trusted, struct task_state *t __arg_nonnull, u32 cpu, u64 now)
{
	if (group_by && !t->group && !t->hint && !t->labelled)
		enter_unnamed(t, usual_group(p, t, cpu, now), now);
	return 0;
}

/* The cgroup or the memory of a task has changed. */
static void leave_usual_group(struct task_state *t, u64 now)
{
	if (group_by && t->group && !t->hint && !t->labelled)
		enter_unnamed(t, 0, now);
}

/* Reads a task's slot and acknowledges it. */
static void read_slot(struct task_struct *p, struct task_state *t, u32 cpu)
{
	struct slot_pointer *pointer = bpf_task_storage_get(&slots, p, 0, 0);
	struct warmq_slot *slot = pointer ? pointer->slot : NULL;
	u64 hint;

	if (!slot)
		return;
	/*
	 * The thread gave the slot up, or it is not the thread's own: its last hint by prctl
	 * counts.
	 */
	if (slot->nonce != t->nonce) {
		struct reported *reported = bpf_task_storage_get(&hints, p, 0, 0);

		t->nonce = 0;
		count(COUNT_FORGED_SLOTS);
		if (reported)
			follow(p, t, reported->hint, false, cpu);
		return;
	}
	hint = slot->hint;
	if (said(hint) == t->hint)
		return;
	follow(p, t, said(hint), false, cpu);
	slot->acknowledged = hint;
}

/* Follows what stands in the map of task hints for a task, if anything does. */
static void read_task_hint(struct task_struct *p, struct task_state *t, u32 cpu)
{
	struct task_hint *given = bpf_task_storage_get(&task_hints, p, 0, 0);

	if (given)
		follow(p, t, said(given->hint), false, cpu);
}

/* Follows a label that was set or removed, or whatever else a task is to follow. Called once a period. */
__noinline int look_for_label(struct task_struct *p __arg_trusted, struct task_state *t __arg_nonnull, u32 cpu)
{
	u64 *label = bpf_task_storage_get(&labels, p, 0, 0);
	struct reported *reported;

	if (label && *label) {
		follow(p, t, said(*label), true, cpu);
	} else if (t->labelled || t->hint == HINT_UNKNOWN) { /* the label was removed: back to the task's own hint */
		reported = bpf_task_storage_get(&hints, p, 0, 0);
		follow(p, t, reported ? reported->hint : 0, false, cpu);
	}
	return 0;
}

/* Follows what a task wrote into its slot, if it has one, or what was written for it. */
static __always_inline void look(struct task_struct *p, struct task_state *t, u32 cpu)
{
	if (is_evicted(t)) {
		leave_given(t);
		look_for_label(p, t, cpu);
	}
	if (t->labelled)
		return;
	if (t->nonce)
		read_slot(p, t, cpu);
	else if (reads_task_hints)
		read_task_hint(p, t, cpu);
}

/* Follows what a task said while another scheduler, or none, was loaded. */
static void remember(struct task_struct *p, struct task_state *t, u32 cpu)
{
	struct reported *reported = bpf_task_storage_get(&hints, p, 0, 0);

	if (reported) {
		t->nonce = reported->nonce;
		follow(p, t, reported->hint, false, cpu);
	}
	look_for_label(p, t, cpu);
}

/*
 * The answer to a hint. A running task whose home is elsewhere is asked to yield. It is not
 * preempted here: it would stop inside this program, and as the kernel runs no second instance of a
 * program on a CPU meanwhile, hints of other tasks would be lost.
 */
static int answer(struct task_struct *p, struct task_state *t, u32 cpu)
{
	u32 home = t->group ? group_of(t->group)->home : 0;

	/* A task that may not run everywhere at the home is unmanaged, and stays. */
	if (!t->group || home == place_of_cpu(cpu) || !fits(p, home))
		return WARMQ_ANSWER_HEARD;
	count(COUNT_PROMPT_MOVES);
	return WARMQ_ANSWER_MOVE;
}

/* Shows in the slot that this hint is known, so that the task need not call prctl for it again. */
static void acknowledge(struct task_struct *p, struct task_state *t, u64 hint)
{
	struct slot_pointer *pointer = bpf_task_storage_get(&slots, p, 0, 0);
	struct warmq_slot *slot = pointer ? pointer->slot : NULL;

	if (slot && slot->nonce == t->nonce)
		slot->acknowledged = hint;
}

static int hear_hint(struct task_struct *p, u64 hint)
{
	struct reported *reported = bpf_task_storage_get(&hints, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	struct task_state *t = task_of(p);
	u32 cpu = bpf_get_smp_processor_id();

	if (!reported)
		return WARMQ_ANSWER_IGNORED;
	reported->hint = said(hint);
	count(COUNT_HINTS);
	if (!t)
		return WARMQ_ANSWER_HEARD;
	if (t->nonce)
		acknowledge(p, t, hint);
	if (t->labelled || !follow(p, t, said(hint), false, cpu))
		return WARMQ_ANSWER_HEARD;
	return answer(p, t, cpu);
}

static int hear_nonce(struct task_struct *p, u64 nonce)
{
	struct reported *reported = bpf_task_storage_get(&hints, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	struct task_state *t = task_of(p);

	if (!reported)
		return WARMQ_ANSWER_IGNORED;
	reported->nonce = nonce;
	if (t)
		t->nonce = nonce;
	return WARMQ_ANSWER_HEARD;
}

/*
 * prctl() asks the security modules about options that it does not know, and a BPF program may
 * answer for them: see WARMQ_ANSWER_IGNORED. Tasks need no privilege for it, and can only speak of
 * themselves.
 */
SEC("fmod_ret/security_task_prctl")
int BPF_PROG(hear, int option, unsigned long value)
{
	if (option == WARMQ_PRCTL_HINT)
		return hear_hint(bpf_get_current_task_btf(), value);
	if (option == WARMQ_PRCTL_NONCE)
		return hear_nonce(bpf_get_current_task_btf(), value);
	return WARMQ_ANSWER_IGNORED;
}

/* After execve() the old program's hint no longer holds, and its slot is gone with its memory. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(forget, struct task_struct *p, pid_t old_pid, struct linux_binprm *bprm)
{
	struct reported *reported = bpf_task_storage_get(&hints, p, 0, 0);
	struct task_state *t = task_of(p);

	if (reported)
		reported->hint = reported->nonce = 0;
	if (t) {
		t->nonce = 0;
		if (!t->labelled)
			follow(p, t, 0, false, bpf_get_smp_processor_id());
		leave_usual_group(t, scx_bpf_now());
	}
	return 0;
}
