/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Slices, deadlines, and how long a task may wait. Included by decide.h. */
#ifndef WARMQ_DECIDE_SLICE_H
#define WARMQ_DECIDE_SLICE_H

/*
 * How long a task runs before the next is chosen: its part of the period, period * cpus / runnable,
 * within bounds. Tasks are counted, not weighed: weights that are parts of cgroups' say nothing about
 * how many wait.
 */
WARMQ_INLINE u64 warmq_slice(const struct warmq_policy *policy, u64 runnable, u64 cpus)
{
	u64 period = policy->period * (cpus ? cpus : 1), tasks = runnable ? runnable : 1, slice;

	/* Where few are runnable there is no need to divide. */
	if (period >= policy->slice_max * tasks)
		return policy->slice_max;
	slice = period / tasks;
	return slice < policy->slice_min ? policy->slice_min : slice;
}

/* The longest that a tick of the kernel's timer can be away from the next, in ns: 1 s / 100. */
#define WARMQ_TICK_MAX 10000000ULL

/*
 * The length of a tick, in ns, from the time since a CPU's last one. Idle CPUs have none, so a longer time
 * says nothing.
 */
WARMQ_INLINE u64 warmq_tick_length(u64 tick, u64 since)
{
	return since && since <= WARMQ_TICK_MAX + WARMQ_TICK_MAX / 4 ? since : tick;
}

/*
 * Whether a slice of which `left` ns are left ends at this tick: it ends at the one that is nearest to
 * its end, not at the first one after it, or else a slice of a tick would often take two.
 */
WARMQ_INLINE bool warmq_slice_ends(u64 left, u64 tick)
{
	return 2 * left < tick;
}

/*
 * What a task is expected to run between two sleeps, after it `ran` so long: the mean of that and of
 * what was expected before. 0: nothing is known.
 */
WARMQ_INLINE u64 warmq_expect(u64 expected, u64 ran)
{
	return expected ? (expected + ran + 1) / 2 : ran;
}

/*
 * For how long a task is expected to run when it is picked next: the rest of what it runs between two
 * sleeps, if it has not had that already, but no more than a slice. `ran` is what it had since it
 * woke. Who runs on beyond it gains nothing: its vruntime has grown by all that it ran. A new task,
 * which may be short, requests half a slice (as in EEVDF, PLACE_DEADLINE_INITIAL of kernel/sched/fair.c).
 */
WARMQ_INLINE u64 warmq_request(u64 expected, u64 ran, u64 slice)
{
	u64 rest = expected > ran ? expected - ran : slice;

	if (!expected && !ran)
		return slice / 2;
	return rest < slice ? rest : slice;
}

/*
 * The deadline of something of `weight` with `vruntime` that requests `request` ns. So a task that
 * needs little is served soon as long as its vruntime does not run ahead, and a task of a small
 * weight waits for its turn. No later than what the domain works off in WARMQ_REPAY_MAX.
 */
WARMQ_INLINE u64 warmq_deadline(const struct warmq_domain *domain, u64 vruntime, u64 weight, u64 request)
{
	return warmq_clamp_queued(domain, vruntime + warmq_delta_vruntime(request, weight));
}

/*
 * The longest that a runnable task of `weight` waits, in ns.
 *
 * When the task is queued, its deadline is at most V + m. Others run first until their deadlines are
 * later, and some of them start with a lag of l at most. So all in the domain together get at most (l
 * + m) * W / w0 of service before it, on the busy CPUs; then come a batch and the slice that is
 * running:
 *
 *	wait = 2 * ((l + m) * W / C + batch_budget + slice_max)
 *
 *	m := warmq_lag_min() after two slices, of which one is the request
 *	l := wakeup_lag_max, scaled   C := warmq_capacity()   W := domain->weight
 *
 * The factor 2: V is read while other CPUs change it.
 * Bounds: l * W and m * W are at most WARMQ_REPAY_MAX * C, below 2^58.
 */
WARMQ_INLINE u64 warmq_wait_bound(const struct warmq_policy *policy, const struct warmq_domain *domain, u64 weight)
{
	u64 lag_min = warmq_lag_min(policy, domain, weight, 2 * policy->slice_max);
	u64 lag = warmq_scale_lag(policy, domain, policy->wakeup_lag_max) + lag_min;
	u64 capacity = warmq_capacity(domain), served = lag;

	if (domain->weight && capacity)
		served = lag * domain->weight / capacity;
	return 2 * (served + policy->batch_budget + policy->slice_max);
}

/*
 * How long a task waits at most until it comes before all others of its domain, unless everybody waits longer: so that it
 * runs within 5 s also where real-time tasks leave 50 ms of each second.
 */
#define WARMQ_LATE_MAX 3000000000ULL

/*
 * How long a task of `weight` waits until it comes before all others of its domain, in ns: as long as promised, but no longer
 * than WARMQ_LATE_MAX, unless everybody waits that long because there are so many. (Half of the bound is what they wait where
 * V is exact, and WARMQ_REPAY_MAX of that is for weights alone.)
 *
 * Virtual time alone does not bound a wait: deadlines of tasks that wait move with the lag of their entity, whatever clamps it.
 */
WARMQ_INLINE u64 warmq_late_after(const struct warmq_policy *policy, const struct warmq_domain *domain, u64 weight)
{
	u64 bound = warmq_wait_bound(policy, domain, weight), most = bound / 2;

	most = most < WARMQ_REPAY_MAX + WARMQ_LATE_MAX ? WARMQ_LATE_MAX : most - WARMQ_REPAY_MAX;
	return bound < most ? bound : most;
}

#endif /* WARMQ_DECIDE_SLICE_H */
