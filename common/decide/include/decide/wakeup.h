/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Wakeups: who preempts, and who wakes whom in turn. Included by decide.h. */
#ifndef WARMQ_DECIDE_WAKEUP_H
#define WARMQ_DECIDE_WAKEUP_H

/*
 * The wakeup granularity of one task, in virtual ns (Al-Mane' 2009, formula 5-1): the oftener it
 * sleeps, the more its deadline must differ before its wakeup preempts.
 *
 *	g = alpha * sleeps / (period * weight)
 *
 *	sleeps := in this period   period := in seconds   weight := 1 at nice 0
 *	alpha := ns of granularity at nice 0 for one sleep per second
 *
 * Bounds: exact while alpha * sleeps per second * w0 < 2^64: 180 million sleeps per second at the
 * largest alpha, 1 ms.
 */
WARMQ_INLINE u64 warmq_wakeup_granularity(const struct warmq_policy *policy, u64 sleeps, u64 weight)
{
	u64 a_second = sleeps * 1000000000ULL / (policy->period ? policy->period : 1);

	return warmq_delta_vruntime(policy->alpha * a_second, weight);
}

/* What became of a wakeup that wants the CPU at once. */
enum warmq_verdict {
	WARMQ_GRANTED = 0,
	WARMQ_TOO_CLOSE = 1,   /* its deadline is not earlier by its granularity than the running one's */
	WARMQ_TOO_SOON = 2,    /* that CPU had a wakeup preemption less than preempt_interval ago */
	WARMQ_SHORT_SLEEP = 3, /* it slept less than min_sleep */
};

/* A wakeup that wants a CPU at once. */
struct warmq_wakeup {
	u64 waking;  /* the deadline of the task that woke, in the domain's time */
	u64 running; /* that of the running one, from when it was picked */
	u64 sleeps;  /* of the one that woke, in this period */
	u64 weight;  /* its own */
	u64 slept;   /* ns */
	u64 since;   /* ns since that CPU's last wakeup preemption */
	u64 outranks; /* the running one is SCHED_IDLE, and the one that woke is not */
};

/*
 * Whether a task that wakes preempts the running one. SCHED_IDLE is for work that nobody waits for,
 * so it gives way at once.
 */
WARMQ_INLINE enum warmq_verdict warmq_wakeup_preempts(const struct warmq_policy *policy, const struct warmq_wakeup *wakeup)
{
	if (wakeup->outranks)
		return WARMQ_GRANTED;
	if (wakeup->slept < policy->min_sleep)
		return WARMQ_SHORT_SLEEP;
	/* Most need no granularity to be refused. */
	if (!warmq_before(wakeup->waking, wakeup->running) ||
	    !warmq_before(wakeup->waking + warmq_wakeup_granularity(policy, wakeup->sleeps, wakeup->weight), wakeup->running))
		return WARMQ_TOO_CLOSE;
	return wakeup->since < policy->preempt_interval ? WARMQ_TOO_SOON : WARMQ_GRANTED;
}

/* How often in a row two tasks wake each other until they are partners, who belong under one cache. */
#define WARMQ_PARTNERS 4

/*
 * How often in a row a task was woken by one that it had woken itself, once more. `again`: by the same
 * one as before; `woken`: which this task was the last to wake. A server of many clients has another
 * waker each time, so it has no partner.
 */
WARMQ_INLINE u32 warmq_in_turn(u32 turns, bool again, bool woken)
{
	if (!again || !woken)
		return 0;
	return turns < WARMQ_PARTNERS ? turns + 1 : turns;
}

#endif /* WARMQ_DECIDE_WAKEUP_H */
