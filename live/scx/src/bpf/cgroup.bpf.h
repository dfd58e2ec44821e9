/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cgroup weights, flattened: a task gets its part of its cgroup's weight, weight * cgroup weight /
 * everything active in that cgroup, level by level. So cgroups need no queues, and groups and
 * domains know nothing of them.
 */
#pragma once

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_CGROUPS);
	__type(key, u64);
	__type(value, u32);
} cgroup_numbers SEC(".maps");

/* cgroup_state.state: an entry is free again once no task is counted in it any more. */
enum {
	CGROUP_FREE = 0,
	CGROUP_USED = 1,
	CGROUP_REMOVED = 2,
};

/* How many levels of cgroups are looked at for one that is known. */
#define MAX_LEVELS 64

static __always_inline struct cgroup_state *cgroup_of(u32 number)
{
	return &cgroups[within(number, MAX_CGROUPS)];
}

static __always_inline u64 cgroup_id(struct cgroup *cgrp)
{
	return cgrp->kn->id;
}

/* The number of the cgroup with an id; 0: it has none, as the root, or one beyond MAX_CGROUPS. */
static u32 number_of_id(u64 id)
{
	u32 *number = bpf_map_lookup_elem(&cgroup_numbers, &id);

	return number ? *number : 0;
}

/* The id of the cgroup at that level above (and in) which another is. */
static u64 id_of_ancestor(struct cgroup *cgrp, u32 level)
{
	struct cgroup *above = NULL;

	bpf_probe_read_kernel(&above, sizeof(above),
			      (void *)cgrp + bpf_core_field_offset(struct cgroup, ancestors) + level * sizeof(above));
	return above ? BPF_CORE_READ(above, kn, id) : 0;
}

/* The number of the nearest cgroup that another is in and that has one; 0: the root's. */
static u32 number_of_ancestor(struct cgroup *cgrp)
{
	u32 number = 0, i;

	bpf_for(i, 1, MAX_LEVELS) {
		s32 level = cgrp->level - (s32)i;

		barrier_var(level); /* or else clang counts down a pointer, which the verifier does not follow */
		if (level <= 0 || number)
			break;
		number = number_of_id(id_of_ancestor(cgrp, level));
	}
	return number;
}

/* The number of a cgroup, or that of the nearest one that it is in and that has one. */
static u32 number_of_cgroup(struct cgroup *cgrp)
{
	return cgrp ? number_of_id(cgroup_id(cgrp)) ?: number_of_ancestor(cgrp) : 0;
}

/* How often recount() tries: as often as others change the same cgroup at the same time, which each count it, too. */
#define RECOUNTS 4

/* What a cgroup counts for in its parent: its weight while anything in it is active. */
static __always_inline u64 counts_for(struct cgroup_state *cgroup)
{
	return cgroup->active ? cgroup->weight : 0;
}

/*
 * Brings `counted` of a cgroup up to date, and returns by how much its parent's `active` must change for that. Whoever
 * changes `active` or `weight` does so first and then calls this. Of several at a time each adds to the parent what it
 * changed itself, so that nothing is counted twice, and the last one sees what all did.
 *
 * Like cgroup_add() a global function, which the verifier looks at once: the loops of callers would multiply it.
 */
__noinline u64 recount(u32 number)
{
	struct cgroup_state *cgroup = cgroup_of(number);
	u64 change = 0, now;
	int i;

	for (i = 0; i < RECOUNTS; i++) {
		now = counts_for(cgroup);
		change += now - __sync_lock_test_and_set(&cgroup->counted, now);
		if (now == counts_for(cgroup))
			break;
	}
	return change;
}

/* Frees a cgroup that has been removed, once nothing in it is active. */
static __always_inline void free_if_removed(struct cgroup_state *cgroup)
{
	if (cgroup->state == CGROUP_REMOVED && !cgroup->active)
		__sync_val_compare_and_swap(&cgroup->state, CGROUP_REMOVED, CGROUP_FREE);
}

/* Adds to what is active in a cgroup, and in those that it is in where it becomes active or no longer is. */
__noinline int cgroup_add(u32 number, u64 weight)
{
	int level;

	for (level = 0; level < CGROUP_DEPTH; level++) {
		struct cgroup_state *cgroup = cgroup_of(number);
		u64 before;

		if (!number || !weight)
			break;
		before = __sync_fetch_and_add(&cgroup->active, weight);
		if (before && before + weight)
			break;
		weight = recount(number);
		number = cgroup->parent;
		free_if_removed(cgroup);
	}
	return 0;
}

static __always_inline void cgroup_sub(u32 number, u64 weight)
{
	cgroup_add(number, -weight);
}

/* The weight among all tasks of the machine of a task with `weight` in that cgroup. */
__noinline u64 flat_weight(u32 number, u64 weight)
{
	int level;

	for (level = 0; level < CGROUP_DEPTH; level++) {
		struct cgroup_state *cgroup = cgroup_of(number);

		if (!number)
			break;
		weight = warmq_share(weight, cgroup->weight, cgroup->active);
		number = cgroup->parent;
	}
	return weight;
}

/* cgroups with cpu.idle. While there is none, nothing of this costs more than a look at it. */
u32 nr_idle_cgroups;

__noinline int look_for_idle_cgroup(u32 number)
{
	int level;

	for (level = 0; level < CGROUP_DEPTH; level++) {
		if (!number)
			break;
		if (cgroup_of(number)->idle)
			return 1;
		number = cgroup_of(number)->parent;
	}
	return 0;
}

/* Whether anything else comes before a task: it is of SCHED_IDLE, or in a cgroup with cpu.idle. */
static __always_inline bool is_idle_class(const struct task_struct *p, const struct task_state *t)
{
	return p->policy == SCHED_IDLE || (nr_idle_cgroups && look_for_idle_cgroup(t->cgroup));
}
