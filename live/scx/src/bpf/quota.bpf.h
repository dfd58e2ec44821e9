/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Quotas of cgroups (cpu.max): what each has, and has had. A cgroup that has had its quota in a period
 * is out of it until the next, with all cgroups in it; throttle.bpf.h keeps its tasks waiting. What it
 * had too much, by a tick on each CPU at most, is taken off the next period's. cpu.max.burst is not
 * heeded.
 */
#pragma once

/* cgroups with a quota. While there is none, nothing of this costs more than a look at it. */
u32 nr_quotas;

/* Begins a cgroup's next period, if it is time. */
static void refill(struct cgroup_state *cgroup, u64 now)
{
	u64 began = cgroup->period_at, passed = elapsed(began, now), period = cgroup->period, periods, refilled, ran;

	if (!period || passed < period)
		return;
	periods = passed / period;
	/* Of several CPUs one begins it. */
	if (__sync_val_compare_and_swap(&cgroup->period_at, began, began + periods * period) != began)
		return;
	refilled = periods * cgroup->quota;
	ran = cgroup->ran;
	__sync_fetch_and_sub(&cgroup->ran, ran < refilled ? ran : refilled);
}

__noinline int look_for_quota(u32 number, u64 now)
{
	int level;

	bpf_for(level, 0, CGROUP_DEPTH) {
		struct cgroup_state *cgroup = cgroup_of(number);

		if (!number)
			break;
		if (cgroup->quota) {
			refill(cgroup, now);
			if (cgroup->ran >= cgroup->quota)
				return 1;
		}
		number = cgroup->parent;
	}
	return 0;
}

/* Whether a cgroup, or one that it is in, has had its quota. */
static __always_inline bool out_of_quota(u32 number)
{
	return nr_quotas && look_for_quota(number, scx_bpf_now());
}

/* A task of a cgroup ran for `ran` ns. */
static __always_inline void charge_quota(u32 number, u64 ran)
{
	int level;

	if (!nr_quotas)
		return;
	bpf_for(level, 0, CGROUP_DEPTH) {
		struct cgroup_state *cgroup = cgroup_of(number);

		if (!number)
			break;
		if (cgroup->quota)
			__sync_fetch_and_add(&cgroup->ran, ran);
		number = cgroup->parent;
	}
}
