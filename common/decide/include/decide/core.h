/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Cores of several CPUs: when a task that runs beside busy siblings goes to another core. Included by decide.h. */
#ifndef WARMQ_DECIDE_CORE_H
#define WARMQ_DECIDE_CORE_H

/* The most CPUs of a core. */
#define WARMQ_CORE_CPUS 8

/*
 * How much a task gains on an idle CPU whose core has `busy_there` busy CPUs, if its own core has `busy` beside it;
 * 0: nothing, so that it stays. Any CPU under the same last-level cache gains more than one under another of the node, and
 * that more than one of another node.
 *
 * Tasks come to rest, since each move leaves fewer pairs of tasks that slow each other down:
 *
 *	pairs := sum over cores of n * (n - 1) / 2, n := busy CPUs
 *	a move takes busy pairs away and makes busy_there new ones, and busy_there < busy
 */
WARMQ_INLINE u32 warmq_core_gain(u32 busy, u32 busy_there, enum warmq_reach reach)
{
	if (busy_there >= busy)
		return 0;
	return busy - busy_there + (WARMQ_OTHER_NODE - reach) * WARMQ_CORE_CPUS;
}

/*
 * Whether a task goes to a better core. All ticks of its CPU for `lasted` ns have found one, and the last task that
 * left its own core for that reason did so `since` ns ago.
 *
 * A core may be idle for a moment only, since its task sleeps. So one under the same cache, which costs the contents
 * of a core's own caches, must be there for a slice; one elsewhere for as long as any imbalance between caches; and one of
 * another node, where all memory is remote, for ten times that: a task that shares a core does run. One task leaves in a
 * slice: the siblings of a core have their ticks at the same time, and need not all go.
 */
WARMQ_INLINE bool warmq_leaves_core(const struct warmq_policy *policy, enum warmq_reach reach, u64 lasted, u64 since)
{
	if (since < policy->slice_max || lasted < policy->slice_max)
		return false;
	if (reach == WARMQ_OTHER_NODE)
		return lasted >= WARMQ_TURNS * policy->patience;
	return reach == WARMQ_SAME_CACHE || lasted >= policy->patience;
}

/*
 * Whether a group of `weight` may go with the task to a CPU of load `there` from its home of load `here`: the CPU is then no
 * busier than the home was, so that nothing brings the group back.
 */
WARMQ_INLINE bool warmq_group_comes_along(u64 weight, u64 here, u64 there)
{
	return there + weight <= here;
}

#endif /* WARMQ_DECIDE_CORE_H */
