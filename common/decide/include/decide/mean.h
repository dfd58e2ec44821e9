/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* V, the weighted mean of vruntimes. Included by decide.h. */
#ifndef WARMQ_DECIDE_MEAN_H
#define WARMQ_DECIDE_MEAN_H

/*
 * How V changes when weight joins or leaves with nonzero lag.
 *
 * Running a task advances its vruntime and the mean consistently (warmq_delta_vruntime). A task
 * that joins or leaves shifts the mean; without that correction the remaining tasks would absorb
 * its lag, and a task that changes its group all the time would gain. With V the mean of weight W,
 * a task of weight w and vruntime v
 *
 *	joins:    V' = (V * W + v * w) / (W + w) = V + (v - V) * w / (W + w)
 *	leaves:   V' = (V * W - v * w) / (W - w) = V + (V - v) * w / (W - w)
 *
 *	V := avg   W := weight   v := vruntime   w := joining, leaving
 *
 * Both return V' - V, in virtual ns, which may be negative: add it, it wraps.
 * Bounds: exact while |V - v| * w < 2^64, which is half an hour of lag at the largest weight. No more
 * than lag_max in any case, so a sum that other CPUs are just changing does no lasting harm.
 */
WARMQ_INLINE u64 warmq_avg_change(u64 difference, u64 part, u64 total, u64 most)
{
	bool negative = (s64)difference < 0;
	u64 distance = negative ? -difference : difference;

	if (part != total)
		distance = distance * part / total;
	if (distance > most)
		distance = most;
	return negative ? -distance : distance;
}

WARMQ_INLINE u64 warmq_avg_add(const struct warmq_policy *policy, u64 avg, u64 weight, u64 vruntime, u64 joining)
{
	return warmq_avg_change(vruntime - avg, joining, weight + joining, policy->lag_max);
}

/* `weight` includes `leaving`. The last one to leave takes no mean with it. */
WARMQ_INLINE u64 warmq_avg_sub(const struct warmq_policy *policy, u64 avg, u64 weight, u64 vruntime, u64 leaving)
{
	return weight <= leaving ? 0 : warmq_avg_change(avg - vruntime, leaving, weight - leaving, policy->lag_max);
}

/*
 * What a task of `weight` that exits leaves to its parent, in ns of run time: its debt. A new task begins
 * without one, so otherwise a program could start one child after another to do its work, and never pay
 * for it. The parent is charged for it as if it had run so long itself.
 * Bounds: a debt of more than WARMQ_REPAY_MAX counts for that.
 */
WARMQ_INLINE u64 warmq_debt(u64 avg, u64 vruntime, u64 weight)
{
	u64 debt = warmq_before(avg, vruntime) ? vruntime - avg : 0;

	if (debt > WARMQ_REPAY_MAX)
		debt = WARMQ_REPAY_MAX;
	return debt * weight / WARMQ_WEIGHT_NICE_0;
}

#endif /* WARMQ_DECIDE_MEAN_H */
