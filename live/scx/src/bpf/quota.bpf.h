/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Quotas of cgroups (cpu.max): what each has, and has had. A cgroup that has had its quota in a period
 * is out of it until the next, with all cgroups in it; throttle.bpf.h keeps its tasks waiting. What it
 * had too much, by a tick on each CPU at most, is taken off the next period's. What it had too little it
 * keeps, up to cpu.max.burst.
 */
#pragma once

/* cgroups with a quota. While there is none, nothing of this costs more than a look at it. */
u32 nr_quotas;

/* Begins a cgroup's next period, if it is time. Returns the ns that are left of the present one. */
static u64 refill(struct cgroup_state *cgroup, u64 now)
{
	u64 passed = elapsed(cgroup->period_at, now), periods, refilled, most = cgroup->ran + cgroup->burst;

	if (passed < cgroup->period)
		return cgroup->period - passed;
	periods = passed / cgroup->period;
	cgroup->period_at += periods * cgroup->period;
	refilled = periods * cgroup->quota;
	__sync_fetch_and_sub(&cgroup->ran, most < refilled ? most : refilled);
	return cgroup->period - elapsed(cgroup->period_at, now);
}

__noinline int look_for_quota(u32 number)
{
	int level;

	for (level = 0; level < CGROUP_DEPTH; level++) {
		struct cgroup_state *cgroup = cgroup_of(number);

		if (!number)
			break;
		if (cgroup->quota && cgroup->ran >= (s64)cgroup->quota)
			return 1;
		number = cgroup->parent;
	}
	return 0;
}

/* Whether a cgroup, or one that it is in, has had its quota. */
static __always_inline bool out_of_quota(u32 number)
{
	return nr_quotas && look_for_quota(number);
}

/* A task of a cgroup ran for `ran` ns. */
static __always_inline void charge_quota(u32 number, u64 ran)
{
	int level;

	if (!nr_quotas)
		return;
	for (level = 0; level < CGROUP_DEPTH; level++) {
		struct cgroup_state *cgroup = cgroup_of(number);

		if (!number)
			break;
		if (cgroup->quota)
			__sync_fetch_and_add(&cgroup->ran, ran);
		number = cgroup->parent;
	}
}
