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

/*
 * Counts `weight` as active in a cgroup. A cgroup that had nothing active becomes active in its
 * parent.
 */
static void cgroup_add(u32 number, u64 weight)
{
	int level;

	for (level = 0; level < CGROUP_DEPTH; level++) {
		struct cgroup_state *cgroup = cgroup_of(number);

		if (!number || __sync_fetch_and_add(&cgroup->active, weight))
			break;
		weight = cgroup->weight;
		cgroup->counted = weight;
		number = cgroup->parent;
	}
}

static void cgroup_sub(u32 number, u64 weight)
{
	int level;

	for (level = 0; level < CGROUP_DEPTH; level++) {
		struct cgroup_state *cgroup = cgroup_of(number);

		if (!number || __sync_fetch_and_sub(&cgroup->active, weight) != weight)
			break;
		weight = cgroup->counted;
		number = cgroup->parent;
		/* The last task of a cgroup that has been removed is gone. */
		__sync_val_compare_and_swap(&cgroup->state, CGROUP_REMOVED, CGROUP_FREE);
	}
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
