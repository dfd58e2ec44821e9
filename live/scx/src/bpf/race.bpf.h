/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether all that is counted is right, for `warmq race` (-DWARMQ_RACE). It runs when nothing else does, and returns what is
 * wrong: 0 is nothing.
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
