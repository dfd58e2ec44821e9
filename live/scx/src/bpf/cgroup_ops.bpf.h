/* SPDX-License-Identifier: GPL-2.0-only */
/* What the kernel tells of cgroups: they come and go, and their weights and quotas change. */
#pragma once

static u32 free_cgroup(void)
{
	u32 number, found = 0;

	bpf_for(number, 1, MAX_CGROUPS) {
		if (!__sync_val_compare_and_swap(&cgroup_of(number)->state, CGROUP_FREE, CGROUP_USED)) {
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
	s32 error;

	if (cgrp->level <= 0)
		return 0;
	number = free_cgroup();
	if (!number) /* no room: its tasks count as the root's */
		return 0;
	state = cgroup_of(number);
	if (!state->has_queue) {
		error = scx_bpf_create_dsq(QUOTA_DSQ_BASE + number, -1);
		if (error)
			return error;
		state->has_queue = 1;
	}
	state->id = id;
	state->weight = args->weight * (WARMQ_WEIGHT_NICE_0 / 100);
	state->parent = 0;
	parent = bpf_cgroup_ancestor(cgrp, cgrp->level - 1);
	if (parent) {
		state->parent = number_of_cgroup(parent);
		bpf_cgroup_release(parent);
	}
	bpf_map_update_elem(&cgroup_numbers, &id, &number, BPF_ANY);
	if (bpf_core_field_exists(args->bw_quota_us)) /* Linux 6.17 and later */
		set_quota(state, args->bw_period_us, args->bw_quota_us);
	return 0;
}

void BPF_STRUCT_OPS(warmq_cgroup_exit, struct cgroup *cgrp)
{
	u64 id = cgroup_id(cgrp);
	u32 number = number_of_cgroup(cgrp);

	if (!number)
		return;
	bpf_map_delete_elem(&cgroup_numbers, &id);
	set_quota(cgroup_of(number), 0, NO_QUOTA);
	/* Whoever sees both that it is removed and that nothing of it is active frees it. */
	__sync_lock_test_and_set(&cgroup_of(number)->state, CGROUP_REMOVED);
	free_if_removed(cgroup_of(number));
}

void BPF_STRUCT_OPS(warmq_cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
	struct cgroup_state *state;
	u32 number = number_of_cgroup(cgrp);

	if (!number)
		return;
	state = cgroup_of(number);
	/* In order: see recount(). */
	__sync_lock_test_and_set(&state->weight, weight * (WARMQ_WEIGHT_NICE_0 / 100));
	cgroup_add(state->parent, recount(state));
}

void BPF_STRUCT_OPS(warmq_cgroup_set_bandwidth, struct cgroup *cgrp, u64 period_us, u64 quota_us, u64 burst_us)
{
	u32 number = number_of_cgroup(cgrp);

	if (number)
		set_quota(cgroup_of(number), period_us, quota_us);
}
