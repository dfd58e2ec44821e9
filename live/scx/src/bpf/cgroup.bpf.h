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

	bpf_for(level, 0, CGROUP_DEPTH) {
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

	bpf_for(level, 0, CGROUP_DEPTH) {
		struct cgroup_state *cgroup = cgroup_of(number);

		if (!number || __sync_fetch_and_sub(&cgroup->active, weight) != weight)
			break;
		weight = cgroup->counted;
		number = cgroup->parent;
	}
}

/* The weight among all tasks of the machine of a task with `weight` in that cgroup. */
static u64 flat_weight(u32 number, u64 weight)
{
	int level;

	bpf_for(level, 0, CGROUP_DEPTH) {
		struct cgroup_state *cgroup = cgroup_of(number);

		if (!number)
			break;
		weight = warmq_share(weight, cgroup->weight, cgroup->active);
		number = cgroup->parent;
	}
	return weight;
}

static u32 free_cgroup(void)
{
	u32 number, found = 0;

	bpf_for(number, 1, MAX_CGROUPS) {
		if (!__sync_val_compare_and_swap(&cgroup_of(number)->used, 0, 1)) {
			found = number;
			break;
		}
	}
	return found;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(warmq_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	u64 id = cgroup_id(cgrp);
	struct cgroup_state *state;
	struct cgroup *parent;
	u32 number;

	if (cgrp->level <= 0)
		return 0;
	number = free_cgroup();
	if (!number) /* no room: its tasks count as the root's */
		return 0;
	state = cgroup_of(number);
	state->id = id;
	state->weight = args->weight * (WARMQ_WEIGHT_NICE_0 / 100);
	state->active = 0;
	state->counted = 0;
	state->parent = 0;
	parent = bpf_cgroup_ancestor(cgrp, cgrp->level - 1);
	if (parent) {
		state->parent = number_of_cgroup(parent);
		bpf_cgroup_release(parent);
	}
	bpf_map_update_elem(&cgroup_numbers, &id, &number, BPF_ANY);
	return 0;
}

void BPF_STRUCT_OPS(warmq_cgroup_exit, struct cgroup *cgrp)
{
	u64 id = cgroup_id(cgrp);
	u32 number = number_of_cgroup(cgrp);

	if (!number)
		return;
	bpf_map_delete_elem(&cgroup_numbers, &id);
	cgroup_of(number)->used = 0;
}

void BPF_STRUCT_OPS(warmq_cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
	struct cgroup_state *state;
	u32 number = number_of_cgroup(cgrp);
	u64 was;

	if (!number)
		return;
	state = cgroup_of(number);
	was = state->counted;
	state->weight = weight * (WARMQ_WEIGHT_NICE_0 / 100);
	if (!state->active)
		return;
	state->counted = state->weight;
	if (state->parent)
		__sync_fetch_and_add(&cgroup_of(state->parent)->active, state->weight - was);
}
