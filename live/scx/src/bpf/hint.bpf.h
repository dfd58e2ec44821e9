/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a task names its fragment. Three ways in, one meaning:
 *   prctl(PRCTL_HINT, hint)   its own, at once (warmq.h)
 *   a slot                    its own, a memory write, seen at its next scheduling event or tick (warmq.h)
 *   a label                   an administrator's, seen within a period; it wins
 * A hint is 0 (none) or (app << 32 | fragment) + 1. Whatever a program says here, it says about itself.
 */
#pragma once

#define PRCTL_HINT 0x57415251
#define PRCTL_SLOT 0x57415252
#define NOT_HEARD 0 /* the kernel goes on and answers EINVAL, as it does without us */
#define HEARD 1
#define HEARD_MOVE 2 /* and its home is elsewhere: it should yield, to be moved before it runs on */

/* What a task told, kept while schedulers come and go. */
struct told {
	u64 hint;
	u64 nonce;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct told);
} hints SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u64);
} labels SEC(".maps");

struct warmq_slot {
	u64 hint;
	u64 acknowledged;
	u64 nonce;
};

/* An object of the type, so that BTF holds all of it and not its name alone: the kernel pins what a uptr points to by its size. */
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

static __always_inline u32 user_of(const struct task_struct *p)
{
	return BPF_CORE_READ(p, cred, uid.val);
}

/* Follows a hint: its group is the task's from now on; the task moves when it is next enqueued. Returns whether it changed. */
static bool follow(struct task_struct *p, struct task_state *t, u64 hint, bool label, u32 cpu)
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
		number = find_group(p, &key, cpu, now);
	t->hint = hint;
	t->labelled = label;
	enter_group(t, number, now);
	return true;
}

/* Reads a task's slot and acknowledges it. */
static void read_slot(struct task_struct *p, struct task_state *t, u32 cpu)
{
	struct slot_pointer *pointer = bpf_task_storage_get(&slots, p, 0, 0);
	struct warmq_slot *slot = pointer ? pointer->slot : NULL;
	u64 hint;

	if (!slot)
		return;
	if (slot->nonce != t->nonce) { /* given up, or not its own: what it last said itself holds */
		struct told *told = bpf_task_storage_get(&hints, p, 0, 0);

		t->nonce = 0;
		count(COUNT_FORGED_SLOTS);
		if (told)
			follow(p, t, told->hint, false, cpu);
		return;
	}
	hint = slot->hint;
	if (hint == t->hint)
		return;
	follow(p, t, hint, false, cpu);
	slot->acknowledged = hint;
}

/* Looks whether a task has a new fragment. Cheap where it has no slot. */
static __always_inline void look(struct task_struct *p, struct task_state *t, u32 cpu)
{
	if (t->nonce && !t->labelled)
		read_slot(p, t, cpu);
}

/* Looks for a label, once a period. */
static void look_for_label(struct task_struct *p, struct task_state *t, u32 cpu)
{
	u64 *label = bpf_task_storage_get(&labels, p, 0, 0);
	struct told *told;

	if (label && *label) {
		follow(p, t, *label, true, cpu);
	} else if (t->labelled) { /* it was taken away: back to what the task says itself */
		told = bpf_task_storage_get(&hints, p, 0, 0);
		follow(p, t, told ? told->hint : 0, false, cpu);
	}
}

/* A scheduler that is loaded anew finds what tasks told its predecessor. */
static void remember(struct task_struct *p, struct task_state *t, u32 cpu)
{
	struct told *told = bpf_task_storage_get(&hints, p, 0, 0);

	if (told) {
		t->nonce = told->nonce;
		follow(p, t, told->hint, false, cpu);
	}
	look_for_label(p, t, cpu);
}

/*
 * Does a running task belong elsewhere now? It is told so and yields. Preempting it here would be simpler for it, but it would
 * be preempted inside this program, and the kernel runs no second instance of a program on a CPU meanwhile: others' hints would
 * be lost.
 */
static int answer(struct task_state *t, u32 cpu)
{
	if (!t->group || group_of(t->group)->home == place_of_cpu(cpu))
		return HEARD;
	count(COUNT_PROMPT_MOVES);
	return HEARD_MOVE;
}

/* A task that knocked has a slot: it need not knock for this hint again. */
static void acknowledge(struct task_struct *p, struct task_state *t, u64 hint)
{
	struct slot_pointer *pointer = bpf_task_storage_get(&slots, p, 0, 0);
	struct warmq_slot *slot = pointer ? pointer->slot : NULL;

	if (slot && slot->nonce == t->nonce)
		slot->acknowledged = hint;
}

static int hear_hint(struct task_struct *p, u64 hint)
{
	struct told *told = bpf_task_storage_get(&hints, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	struct task_state *t = task_of(p);
	u32 cpu = bpf_get_smp_processor_id();

	if (!told)
		return NOT_HEARD;
	told->hint = hint;
	count(COUNT_HINTS);
	if (!t)
		return HEARD;
	if (t->nonce)
		acknowledge(p, t, hint);
	if (t->labelled || !follow(p, t, hint, false, cpu))
		return HEARD;
	return answer(t, cpu);
}

static int hear_nonce(struct task_struct *p, u64 nonce)
{
	struct told *told = bpf_task_storage_get(&hints, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	struct task_state *t = task_of(p);

	if (!told)
		return NOT_HEARD;
	told->nonce = nonce;
	if (t)
		t->nonce = nonce;
	return HEARD;
}

/*
 * prctl() asks the security modules about options that it does not know, which is a place where a program may listen. A
 * positive answer is prctl's result; without us it is EINVAL. No privilege is needed, and a task can only speak of itself.
 */
SEC("fmod_ret/security_task_prctl")
int BPF_PROG(hear, int option, unsigned long value)
{
	if (option == PRCTL_HINT)
		return hear_hint(bpf_get_current_task_btf(), value);
	if (option == PRCTL_SLOT)
		return hear_nonce(bpf_get_current_task_btf(), value);
	return NOT_HEARD;
}

/* Another program has begun: what the one before it said is void, and its slot is gone with its memory. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(forget, struct task_struct *p, pid_t old_pid, struct linux_binprm *bprm)
{
	struct told *told = bpf_task_storage_get(&hints, p, 0, 0);
	struct task_state *t = task_of(p);

	if (told)
		told->hint = told->nonce = 0;
	if (t) {
		t->nonce = 0;
		if (!t->labelled)
			follow(p, t, 0, false, bpf_get_smp_processor_id());
	}
	return 0;
}
