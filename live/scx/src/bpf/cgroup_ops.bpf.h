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

/* What a cgroup with cpu.idle weighs: 3 where one of cpu.weight 100 has 1024 (WEIGHT_IDLEPRIO of kernel/sched/sched.h). */
#define WEIGHT_IDLE_CGROUP (3 * WARMQ_WEIGHT_NICE_0 / 1024)

/* cgroups beyond MAX_CGROUPS for which a quota was set, which is not obeyed. The loader says so. */
u64 quotas_refused SEC(".data");

/* Puts a cgroup's weight in force. */
static void weigh_cgroup(u32 number)
{
	struct cgroup_state *state = cgroup_of(number);

	/* In order: see recount(). */
	__sync_lock_test_and_set(&state->weight, state->idle ? WEIGHT_IDLE_CGROUP : state->given);
	cgroup_add(state->parent, recount(number));
}

static void set_idle(u32 number, bool idle)
{
	struct cgroup_state *state = cgroup_of(number);

	if (state->idle == idle)
		return;
	state->idle = idle;
	__sync_fetch_and_add(&nr_idle_cgroups, idle ? 1 : -1);
	weigh_cgroup(number);
}

/* Whether a cgroup has cpu.idle, of which the kernel says nothing when it tells of the cgroup. */
static bool has_idle(struct cgroup *cgrp)
{
	u32 cpu = bpf_core_enum_value(enum cgroup_subsys_id, cpu_cgrp_id);
	struct task_group *group = NULL;

	/* The css of the controller cpu begins a task_group. */
	bpf_probe_read_kernel(&group, sizeof(group),
			      (void *)cgrp + bpf_core_field_offset(struct cgroup, subsys) + cpu * sizeof(group));
	return group && bpf_core_field_exists(group->idle) && BPF_CORE_READ(group, idle) > 0;
}

static void refuse_quota(u64 quota_us)
{
	if (quota_us != NO_QUOTA)
		__sync_fetch_and_add(&quotas_refused, 1);
}

static u32 number_of_parent(struct cgroup *cgrp)
{
	struct cgroup *parent = bpf_cgroup_ancestor(cgrp, cgrp->level - 1);
	u32 number = parent ? number_of_cgroup(parent) : 0;

	if (parent)
		bpf_cgroup_release(parent);
	return number;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(warmq_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	bool says_quota = bpf_core_field_exists(args->bw_quota_us); /* Linux 6.17 and later */
	u64 id = cgroup_id(cgrp);
	struct cgroup_state *state;
	u32 number;
	s32 error;

	if (cgrp->level <= 0)
		return 0;
	number = free_cgroup();
	if (!number) { /* no room: its tasks count as those of the cgroup that it is in */
		if (says_quota)
			refuse_quota(args->bw_quota_us);
		return 0;
	}
	state = cgroup_of(number);
	if (!state->has_queue) {
		error = scx_bpf_create_dsq(QUOTA_DSQ_BASE + number, -1);
		if (error)
			return error;
		state->has_queue = 1;
	}
	state->id = id;
	state->parent = number_of_parent(cgrp);
	state->given = state->weight = args->weight * (WARMQ_WEIGHT_NICE_0 / 100);
	set_idle(number, has_idle(cgrp));
	bpf_map_update_elem(&cgroup_numbers, &id, &number, BPF_ANY);
	if (says_quota)
		set_quota(state, args->bw_period_us, args->bw_quota_us, args->bw_burst_us);
	return 0;
}

void BPF_STRUCT_OPS(warmq_cgroup_exit, struct cgroup *cgrp)
{
	u64 id = cgroup_id(cgrp);
	u32 number = number_of_id(id);

	if (!number)
		return;
	bpf_map_delete_elem(&cgroup_numbers, &id);
	set_quota(cgroup_of(number), 0, NO_QUOTA, 0);
	set_idle(number, false);
	/* Whoever sees both that it is removed and that nothing of it is active frees it. */
	__sync_lock_test_and_set(&cgroup_of(number)->state, CGROUP_REMOVED);
	free_if_removed(cgroup_of(number));
}

void BPF_STRUCT_OPS(warmq_cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
	u32 number = number_of_id(cgroup_id(cgrp));

	if (!number)
		return;
	cgroup_of(number)->given = weight * (WARMQ_WEIGHT_NICE_0 / 100);
	weigh_cgroup(number);
}

/* Linux 6.19 and later. */
void BPF_STRUCT_OPS(warmq_cgroup_set_idle, struct cgroup *cgrp, bool idle)
{
	u32 number = number_of_id(cgroup_id(cgrp));

	if (number)
		set_idle(number, idle);
}

void BPF_STRUCT_OPS(warmq_cgroup_set_bandwidth, struct cgroup *cgrp, u64 period_us, u64 quota_us, u64 burst_us)
{
	u32 number = number_of_id(cgroup_id(cgrp));

	if (number)
		set_quota(cgroup_of(number), period_us, quota_us, burst_us);
	else
		refuse_quota(quota_us);
}
