/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Groups: batches, balance between places, and groups that are inferred from who wakes whom. Included by decide.h. */
#ifndef WARMQ_DECIDE_GROUP_H
#define WARMQ_DECIDE_GROUP_H

/*
 * Whether the group that a CPU works on goes on there. `used` is what it ran in this succession, in
 * ns.
 */
WARMQ_INLINE bool warmq_batch_goes_on(const struct warmq_policy *policy, u64 used, bool others_wait)
{
	return !others_wait || used < policy->batch_budget;
}

/*
 * Whether a place of `weight` on `cpus` CPUs is less loaded than the other: w/c < w'/c', without
 * dividing.
 */
WARMQ_INLINE bool warmq_less_loaded(u64 weight, u64 cpus, u64 other_weight, u64 other_cpus)
{
	return weight * other_cpus < other_weight * cpus;
}

/*
 * Whether a place is a better home than the other: less loaded or, of two that are equally loaded, on a core with less load
 * on its other CPUs, which slow down what runs there. `core` := the load of those; 0 where homes are domains.
 */
WARMQ_INLINE bool warmq_calmer(u64 weight, u64 cpus, u64 core, u64 other_weight, u64 other_cpus, u64 other_core)
{
	return warmq_less_loaded(weight, cpus, other_weight, other_cpus) ||
	       (weight * other_cpus == other_weight * cpus && core < other_core);
}

/*
 * How many groups were founded at a place lately: `founded`, the first of them `age` ns ago. After `patience` they are
 * no newcomers any more.
 */
WARMQ_INLINE u64 warmq_newcomers(const struct warmq_policy *policy, u64 founded, u64 age)
{
	return age < policy->patience ? founded : 0;
}

/*
 * The load that a new group must expect at a place of `weight`. A newcomer's tasks have yet to come: it counts as if it
 * kept all CPUs of the place busy. Otherwise groups that are founded together would all go where the load happens to be
 * least. Bounds: 1023 groups and 512 CPUs, so what is added stays below 2^36.
 */
WARMQ_INLINE u64 warmq_expected_load(u64 weight, u64 newcomers, u64 cpus)
{
	return weight + newcomers * cpus * WARMQ_WEIGHT_NICE_0;
}

/*
 * Whether the busy place is busier than the calm one, by CPU, by more than the policy allows.
 * Whether it has anything to give away is decided by warmq_relieve(). The least weight on the calm
 * side makes a nearly empty pair of places even. Bounds: weights < 2^46 (4 million tasks of the
 * largest weight), so the products stay below 2^62.
 */
WARMQ_INLINE bool warmq_imbalanced(const struct warmq_policy *policy, u64 busy, u64 busy_cpus, u64 calm, u64 calm_cpus)
{
	return busy * calm_cpus * 100 > (calm + WARMQ_WEIGHT_MIN) * busy_cpus * (100 + policy->imbalance);
}

/*
 * The weight x whose move makes two places equally loaded, by CPU:
 *
 *	(B - x) / b = (C + x) / c   =>   x = (B * c - C * b) / (b + c)
 *
 *	B, b := busy, busy_cpus   C, c := calm, calm_cpus
 */
WARMQ_INLINE u64 warmq_excess(u64 busy, u64 busy_cpus, u64 calm, u64 calm_cpus)
{
	u64 there = calm * busy_cpus, here = busy * calm_cpus;

	return here <= there ? 0 : (here - there) / (busy_cpus + calm_cpus);
}

/*
 * Whether it is better to move a group of `weight` than the best so far (0: none yet). The best
 * leaves the least imbalance. A group of twice the excess or more would only turn the imbalance
 * round.
 */
WARMQ_INLINE bool warmq_better_group(u64 weight, u64 best, u64 excess)
{
	u64 left = weight > excess ? weight - excess : excess - weight;
	u64 left_by_best = best > excess ? best - excess : excess - best;

	if (!weight || weight >= 2 * excess)
		return false;
	return !best || left < left_by_best;
}

/*
 * For how long, in times of `patience`, an imbalance lasts that a task would only turn round, until one
 * moves nevertheless: three hogs and two on two CPUs each take turns at being three.
 */
#define WARMQ_TURNS 10

/* What is done about a place that is too busy. */
enum warmq_relief {
	WARMQ_LEAVE = 0,
	WARMQ_MOVE_GROUP = 1,
	WARMQ_MOVE_UNMANAGED = 2,
	WARMQ_SPLIT_GROUP = 3,
};

/*
 * Data affinity (the online algorithm). Whole groups move first where groups weigh more than
 * unmanaged tasks. Where no group can move, unmanaged tasks do. A group is split only if nothing
 * else helped for `patience`. `excess` is the weight that should move, `managed` that of the
 * place's groups, `movable` that of the best group (0: each of them is too large, or runs and has CPUs
 * enough), `unmanaged` that of the queued unmanaged tasks, and `task` that of one of them. One that would
 * only turn the imbalance round stays for a while: a move costs the contents of a cache.
 */
WARMQ_INLINE enum warmq_relief warmq_relieve(const struct warmq_policy *policy, u64 excess, u64 managed, u64 unmanaged,
					     u64 task, u64 movable, u64 lasted)
{
	if (!excess)
		return WARMQ_LEAVE;
	if (movable && managed >= unmanaged)
		return WARMQ_MOVE_GROUP;
	if (unmanaged && (task < 2 * excess || lasted >= WARMQ_TURNS * policy->patience))
		return WARMQ_MOVE_UNMANAGED;
	if (movable)
		return WARMQ_MOVE_GROUP;
	return managed && lasted >= policy->patience ? WARMQ_SPLIT_GROUP : WARMQ_LEAVE;
}

/* The highest firmness: how strongly a task belongs to its inferred group. */
#define WARMQ_FIRM 32

/*
 * How often a task that has no group is woken before it gets one. Whoever lets all tasks of a program begin (by a barrier,
 * a pipe, a condition) wakes each of them once or twice; if that counted, it would bring all of them together, whoever
 * they work with later.
 */
#define WARMQ_FAMILIAR 4

/* What a wakeup between two tasks means for their groups, which each may have. */
enum warmq_kinship {
	WARMQ_STRANGERS = 0,    /* nothing changes */
	WARMQ_FOUND = 1,        /* a new group of both */
	WARMQ_WAKEE_JOINS = 2,  /* the waker's group */
	WARMQ_WAKER_JOINS = 3,  /* the wakee's group */
};

/*
 * Groups spread along wakeups by label propagation with inertia. A wakeup from its own group raises
 * a task's firmness, one from another group lowers it. At firmness 0 the task goes over to the
 * other group if that is older (has the lower number), so that two groups cannot swap members for
 * ever. Group 0 is none. `firmness` is the wakee's, and changes; while it has no group, that counts wakeups.
 */
WARMQ_INLINE enum warmq_kinship warmq_meet(u32 wakee, u32 waker, u32 *firmness)
{
	if (!wakee && *firmness < WARMQ_FAMILIAR) {
		++*firmness;
		return WARMQ_STRANGERS;
	}
	if (!wakee && !waker)
		return WARMQ_FOUND;
	if (wakee == waker) {
		*firmness += *firmness < WARMQ_FIRM;
		return WARMQ_STRANGERS;
	}
	if (!waker)
		return WARMQ_WAKER_JOINS;
	if (!wakee)
		return WARMQ_WAKEE_JOINS;
	if (*firmness) {
		--*firmness;
		return WARMQ_STRANGERS;
	}
	return waker < wakee ? WARMQ_WAKEE_JOINS : WARMQ_STRANGERS;
}

/*
 * The firmness of a task after a period without a wakeup from its group. At 0 the task leaves it.
 */
WARMQ_INLINE u32 warmq_fade(u32 firmness)
{
	return firmness / 2;
}

#endif /* WARMQ_DECIDE_GROUP_H */
