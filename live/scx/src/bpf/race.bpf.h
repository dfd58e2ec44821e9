/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For `warmq race` and for tests (-DWARMQ_RACE). race_check() says whether all that is counted is right: it runs when nothing
 * else does, and returns what is wrong; 0 is nothing. What comes after it tests ask, or do in the place of programs.
 */
#pragma once

/* Which tasks there are: so many, by their pids. */
struct race_tasks {
	u64 first_pid;
	u64 count;
};

enum {
	RACE_QUEUES = 1, /* entities count other tasks than are in their queues */
	RACE_FOUND,      /* a CPU counts other tasks than are in its queue of FOUND_BASE */
	RACE_GROUPS,     /* a group counts others than its members */
	RACE_CGROUPS,    /* a cgroup counts other weights than are active in it */
};

u64 race_members[WARMQ_MAX_GROUPS];
u64 race_active[MAX_CGROUPS];

/* By how many an entity counts more than are in its queue. */
static s64 race_too_many(u32 entity)
{
	s32 queued = scx_bpf_dsq_nr_queued(dsq_of(entity));

	return queued < 0 ? 0 : (s64)entity_of(entity)->queued - queued;
}

/* Of a domain, tasks that are late are in a queue of their own, of whatever entity they are. */
static bool race_queues_are_right(void)
{
	s64 late = 0, more = 0;
	u32 i;

	bpf_for(i, 0, nr_domains) {
		late += scx_bpf_dsq_nr_queued(dsq_of(LATE_BASE + i));
		more += race_too_many(i);
	}
	bpf_for(i, 0, nr_cpus)
		more += race_too_many(WARMQ_PINNED_BASE + i);
	bpf_for(i, 1, nr_groups)
		more += race_too_many(WARMQ_GROUP_BASE + i);
	return more == late;
}

static bool race_found_is_right(void)
{
	u32 i;

	bpf_for(i, 0, nr_cpus)
		if (cpu_of(i)->found != scx_bpf_dsq_nr_queued(dsq_of(FOUND_BASE + i)))
			return false;
	return true;
}

/* What tasks say of their groups and cgroups. */
static void race_sum(struct race_tasks *tasks)
{
	u32 i;

	bpf_for(i, 0, WARMQ_MAX_GROUPS)
		race_members[within(i, WARMQ_MAX_GROUPS)] = 0;
	bpf_for(i, 0, MAX_CGROUPS)
		race_active[within(i, MAX_CGROUPS)] = 0;
	bpf_for(i, 0, tasks->count) {
		struct task_struct *p = bpf_task_from_pid(tasks->first_pid + i);
		struct task_state *t = p ? task_of(p) : NULL;

		if (t && !is_evicted(t))
			race_members[within(group_number(t), WARMQ_MAX_GROUPS)]++;
		if (t)
			race_active[within(t->counted_cgroup, MAX_CGROUPS)] += t->own_weight;
		if (p)
			bpf_task_release(p);
	}
	bpf_for(i, 1, MAX_CGROUPS)
		race_active[within(cgroup_of(i)->parent, MAX_CGROUPS)] += cgroup_of(i)->counted;
}

static bool race_groups_are_right(void)
{
	u32 i;

	bpf_for(i, 1, nr_groups)
		if (members_of(group_of(i)) != race_members[within(i, WARMQ_MAX_GROUPS)])
			return false;
	return true;
}

static bool race_cgroups_are_right(void)
{
	u32 i;

	bpf_for(i, 1, MAX_CGROUPS) {
		struct cgroup_state *cgroup = cgroup_of(i);
		u64 active = race_active[within(i, MAX_CGROUPS)];

		if (cgroup->active != active || cgroup->counted != (active ? cgroup->weight : 0))
			return false;
	}
	return true;
}

SEC("syscall")
int race_check(struct race_tasks *tasks)
{
	race_sum(tasks);
	if (!race_queues_are_right())
		return RACE_QUEUES;
	if (!race_found_is_right())
		return RACE_FOUND;
	if (!race_groups_are_right())
		return RACE_GROUPS;
	return race_cgroups_are_right() ? 0 : RACE_CGROUPS;
}

/* Whom a test asks about, by the process id of a task or the number of a cgroup, and another number. */
struct race_of {
	u64 id;
	u64 value;
};

/* The slots of tasks of tests, by their pids. */
#define RACE_SLOTS 64

struct warmq_slot race_slots[RACE_SLOTS];

/* The hint that a task's group is of; 0: it is in none; -1: the hint is large. */
SEC("syscall")
int race_hint_of(struct race_of *of)
{
	struct task_struct *p = bpf_task_from_pid(of->id);
	struct task_state *t = p ? task_of(p) : NULL;
	u64 hint = t && !is_evicted(t) ? group_of(t->group)->key.hint : 0;

	if (p)
		bpf_task_release(p);
	return hint >> 31 ? -1 : (int)hint;
}

/* A task writes a hint into its slot, which it has from then on. */
SEC("syscall")
int race_write_slot(struct race_of *of)
{
	struct task_struct *p = bpf_task_from_pid(of->id);
	struct slot_pointer *pointer;
	struct task_state *t;

	if (!p)
		return -ESRCH;
	pointer = bpf_task_storage_get(&slots, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	t = task_of(p);
	if (pointer && t) {
		pointer->slot = &race_slots[of->id % RACE_SLOTS];
		pointer->slot->hint = of->value;
		t->nonce = pointer->slot->nonce = of->id;
	}
	bpf_task_release(p);
	return 0;
}

/* Credentials and a user namespace, as large as any kernel's are at most. */
struct race_user {
	u8 cred[1024];
	u8 namespace[4096];
};

struct race_user race_users[RACE_SLOTS];

/* A task is of a user in a user namespace that user `value` has made. */
SEC("syscall")
int race_enter_namespace(struct race_of *of)
{
	struct race_user *user = &race_users[of->id % RACE_SLOTS];
	struct user_namespace *namespace = (void *)user->namespace;
	struct task_struct *p = bpf_task_from_pid(of->id);
	struct cred *cred = (void *)user->cred;

	if (!p)
		return -ESRCH;
	namespace->level = 1;
	namespace->owner.val = of->value;
	namespace->parent = p->cred->user_ns;
	cred->uid.val = of->id;
	cred->user_ns = namespace;
	p->cred = cred;
	bpf_task_release(p);
	return 0;
}

/* The number behind that of the last group that is in use, or was so lately. */
SEC("syscall")
int race_groups_used(void *unused)
{
	return groups_used;
}

/* For how many cgroups without a number a quota was set. */
SEC("syscall")
int race_quotas_refused(void *unused)
{
	return quotas_refused;
}

/* A cgroup is removed. */
SEC("syscall")
int race_cgroup_exit(struct race_of *of)
{
	struct cgroup *cgrp = bpf_cgroup_from_id(of->id);

	if (!cgrp)
		return -ESRCH;
	____warmq_cgroup_exit(NULL, cgrp);
	bpf_cgroup_release(cgrp);
	return 0;
}

/* Whether a task comes before another where they may not share a core. */
SEC("syscall")
int race_core_sched_before(struct race_of *of)
{
	struct task_struct *a = bpf_task_from_pid(of->id), *b = bpf_task_from_pid(of->value);
	int before = a && b ? ____warmq_core_sched_before(NULL, a, b) : -ESRCH;

	if (a)
		bpf_task_release(a);
	if (b)
		bpf_task_release(b);
	return before;
}
