/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Lag: its bounds, and the vruntime of a task that is queued. Included by decide.h. */
#ifndef WARMQ_DECIDE_LAG_H
#define WARMQ_DECIDE_LAG_H

/*
 * The rate at which V advances is the service that the domain gives, over its weight: C / W virtual
 * ns per ns.
 *
 *	C := busy CPUs * w0   W := domain->weight   busy CPUs: as many as there are tasks for
 *
 * So V hurries where weights are small: where they are parts of cgroups' weights, the weights of a
 * whole cgroup may add up to one task's. What is said in real time must be converted.
 */
WARMQ_INLINE u64 warmq_capacity(const struct warmq_domain *domain)
{
	u64 busy = domain->runnable < domain->cpus ? domain->runnable : domain->cpus;

	return busy * WARMQ_WEIGHT_NICE_0;
}

/*
 * The lag that the domain works off in `ns`, but never less than what its mean task gains in the
 * shortest slice. So bounds of lags are bounds of real time, however many tasks there are and
 * whatever they weigh:
 *
 *	scaled = max(ns * C, slice_min * n * w0) / W
 *
 *	C := warmq_capacity()   W := domain->weight   n := domain->runnable
 *
 * With one task of nice 0 on each CPU that is `ns`, as it is in an empty domain.
 * Bounds: C < 2^26 (512 CPUs), so exact for ns < 2^38, 4 minutes, and for slice_min * n < 2^47,
 * 280,000 tasks at half a millisecond.
 */
WARMQ_INLINE u64 warmq_scale_lag(const struct warmq_policy *policy, const struct warmq_domain *domain, u64 ns)
{
	u64 served, least;

	if (!domain->weight || !domain->runnable)
		return ns;
	served = ns * warmq_capacity(domain);
	least = policy->slice_min * domain->runnable * WARMQ_WEIGHT_NICE_0;
	return (served < least ? least : served) / domain->weight;
}

/* The lag that the domain works off in WARMQ_REPAY_MAX. */
WARMQ_INLINE u64 warmq_repayable_lag(const struct warmq_domain *domain)
{
	if (!domain->weight || !domain->runnable)
		return WARMQ_REPAY_MAX;
	return WARMQ_REPAY_MAX * warmq_capacity(domain) / domain->weight;
}

/* As much of a debt as the domain can work off in that time. */
WARMQ_INLINE u64 warmq_repayable_part(const struct warmq_domain *domain, u64 debt)
{
	u64 repayable = warmq_repayable_lag(domain);

	return debt < repayable ? debt : repayable;
}

/*
 * Whether `lag` is so small that the domain can work it off in WARMQ_REPAY_MAX whatever else there is. At 16 tasks of
 * nice 0 a CPU it works off a sixteenth of that, so there is no need to divide. It is true of all that is not positive.
 */
WARMQ_INLINE bool warmq_repays(const struct warmq_domain *domain, u64 lag)
{
	return (s64)lag <= (s64)(WARMQ_REPAY_MAX / 16) && domain->weight <= 16 * warmq_capacity(domain);
}

/*
 * The upper bound of the lag of something of `weight` that may have waited for a run of `ran` ns: the scaled lag_max, and what
 * such a run is worth to it. It waits for that before it may run, so whatever weighs little must keep it. It works the lag off
 * by running: that takes no more than lag_max and `ran` of CPU time, however large the lag is.
 * Bounds: those of warmq_scale_lag(), and a run of 2 s at the least weight is less than 2^44 ns of vruntime.
 */
WARMQ_INLINE u64 warmq_lag_most(const struct warmq_policy *policy, const struct warmq_domain *domain, u64 weight, u64 ran)
{
	return warmq_scale_lag(policy, domain, policy->lag_max) + warmq_delta_vruntime(ran, weight);
}

/*
 * The lower bound of the lag of something of `weight` that may just have run for `ran` ns, without
 * its sign: lag >= -warmq_lag_min(). A run of that length is a legitimate reason for negative lag,
 * so it is added to the scaled lag_max; the sum must still be repayable in time.
 */
WARMQ_INLINE u64 warmq_lag_min(const struct warmq_policy *policy, const struct warmq_domain *domain, u64 weight, u64 ran)
{
	return warmq_repayable_part(domain, warmq_lag_most(policy, domain, weight, ran));
}

/*
 * How long a task may run in one slice, in ns: a slice ends at a tick of the kernel, which may come
 * as late again.
 */
WARMQ_INLINE u64 warmq_longest_run(const struct warmq_policy *policy)
{
	return 2 * policy->slice_max;
}

/*
 * The vruntime of a task of `weight` that wakes: it keeps its lag, but at most wakeup_lag_max
 * (scaled), so that a long sleep does not entitle it to the past. A debt stays: it shrinks as V goes
 * on, and only what no fair share explains is forgiven, or else a nap would be worth more than the
 * work before it. After too short a sleep (`keeps_lag` false) it keeps no positive lag.
 *
 *	v' = clamp(v, V - l, V + m)     l := wakeup_lag_max, scaled, or 0   m := warmq_lag_min()
 */
WARMQ_INLINE u64 warmq_place_wakeup(const struct warmq_policy *policy, const struct warmq_domain *domain, u64 vruntime,
				    u64 weight, bool keeps_lag)
{
	u64 avg = domain->avg_vruntime, bound;

	if (!warmq_before(vruntime, avg)) {
		/* Within the least that warmq_lag_min() can be. */
		if (warmq_repays(domain, vruntime - avg) &&
		    vruntime - avg <= warmq_delta_vruntime(warmq_longest_run(policy), weight))
			return vruntime;
		bound = avg + warmq_lag_min(policy, domain, weight, warmq_longest_run(policy));
		return warmq_before(bound, vruntime) ? bound : vruntime;
	}
	if (!keeps_lag || !policy->wakeup_lag_max)
		return avg;
	/* Within the least that it can be scaled to where there is a CPU for each task of nice 0. */
	if (avg - vruntime <= policy->wakeup_lag_max && domain->weight <= warmq_capacity(domain))
		return vruntime;
	bound = avg - warmq_scale_lag(policy, domain, policy->wakeup_lag_max);
	return warmq_before(vruntime, bound) ? bound : vruntime;
}

/*
 * The same for a task that comes back to an entity with runnable members, in the entity's time.
 * `cpus` are those that the entity has at most.
 *
 * Its lag is that among the members. Where they cannot have their share of the domain, because
 * another task has a CPU of the domain to itself, they lie far behind the domain's V, and whoever
 * were placed by that would wait for all of them.
 */
WARMQ_INLINE u64 warmq_place_among(const struct warmq_policy *policy, const struct warmq_entity *entity, u64 cpus, u64 vtime,
				   u64 weight, bool keeps_lag)
{
	struct warmq_domain members = {
		.avg_vruntime = entity->avg_vruntime,
		.weight = entity->weight,
		.runnable = entity->runnable,
		.cpus = cpus,
	};

	return warmq_place_wakeup(policy, &members, vtime, weight, keeps_lag);
}

/*
 * The vruntime of a task that ran and is queued again: its own, but at most V + the lag that it can
 * work off within WARMQ_REPAY_MAX. So tasks of the least weights get more than their share where
 * that would be one slice in a minute, and nobody starves.
 */
WARMQ_INLINE u64 warmq_clamp_queued(const struct warmq_domain *domain, u64 vruntime)
{
	u64 latest;

	if (warmq_repays(domain, vruntime - domain->avg_vruntime))
		return vruntime;
	latest = domain->avg_vruntime + warmq_repayable_lag(domain);
	return warmq_before(latest, vruntime) ? latest : vruntime;
}

/*
 * The vruntime of a task that runs while nobody waits for its CPU: its own, but no later than V plus
 * what a fair share explains. It takes nothing from anybody, and V must not follow it: or else all who
 * share the other CPUs would seem to be owed as much as can be, and none of them more than another. V is
 * corrected for it as if it had left and come back.
 */
WARMQ_INLINE u64 warmq_forgive(const struct warmq_policy *policy, const struct warmq_domain *domain, u64 vruntime, u64 weight)
{
	u64 latest = domain->avg_vruntime + warmq_lag_min(policy, domain, weight, warmq_longest_run(policy));

	return warmq_before(latest, vruntime) ? latest : vruntime;
}

/*
 * The vruntime of a task that goes from one entity to another without having slept: its own. Only a
 * lag that no fair share explains is clamped (the task had a CPU to itself while others crowded on
 * another). A task of a small weight has waited for its request for longer than lag_max, and still has.
 */
WARMQ_INLINE u64 warmq_place_awake(const struct warmq_policy *policy, const struct warmq_domain *domain, u64 vruntime,
				   u64 weight)
{
	u64 avg = domain->avg_vruntime, lag = warmq_lag_most(policy, domain, weight, warmq_longest_run(policy));

	return warmq_clamp(vruntime, avg - lag, avg + warmq_repayable_part(domain, lag));
}

/*
 * Admits a task with `vruntime` to an entity and returns its vtime there. An entity without
 * runnable members takes its first member's vruntime, so that a task gains nothing by a change of
 * group or by a new group. Call it before the task's weight is added. A new task has the vruntime V:
 * neither lag nor debt.
 */
WARMQ_INLINE u64 warmq_join(struct warmq_entity *entity, u64 vruntime)
{
	if (!entity->weight)
		entity->shift = vruntime - entity->avg_vruntime;
	return vruntime - entity->shift;
}

#endif /* WARMQ_DECIDE_LAG_H */
