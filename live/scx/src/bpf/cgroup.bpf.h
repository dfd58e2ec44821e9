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

static __always_inline struct cgroup_state *cgroup_of(u32 number)
{
	return &cgroups[within(number, MAX_CGROUPS)];
}

static __always_inline u64 cgroup_id(struct cgroup *cgrp)
{
	return cgrp->kn->id;
}

/* The number of a cgroup: 0, the root's, if it is the root, unknown, or beyond MAX_CGROUPS. */
static u32 number_of_cgroup(struct cgroup *cgrp)
{
	u64 id = cgrp ? cgroup_id(cgrp) : 0;
	u32 *number = bpf_map_lookup_elem(&cgroup_numbers, &id);

	return number ? *number : 0;
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
 */
static __always_inline u64 recount(struct cgroup_state *cgroup)
{
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
static void cgroup_add(u32 number, u64 weight)
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
		weight = recount(cgroup);
		number = cgroup->parent;
		free_if_removed(cgroup);
	}
}

static void cgroup_sub(u32 number, u64 weight)
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
