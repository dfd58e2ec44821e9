/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What scx_warmq decides, as arithmetic: no BPF call, no kernel type, no memory but what is handed in.
 *
 * The BPF program includes this file, and so does decide.c, which a C compiler makes into a library for the simulated
 * scheduler of the same name. There is one truth about the policy, and it is here.
 *
 * Units: times are nanoseconds; *positions* and *clocks* are virtual nanoseconds, real time of a task of weight
 * WARMQ_WHOLE. They are compared by difference, so that wrapping does no harm. Weights are in parts of WARMQ_WHOLE, which
 * is nice 0 in a cgroup of its own kind.
 *
 * Three layers:
 *   domain   CPUs that share a last-level cache. Its clock is the virtual time of a perfectly shared cache domain: it
 *            advances by service / weight of everything runnable there, and stays the mean of where all that stands.
 *   entity   what a CPU chooses between: a group (the tasks of one fragment), the unmanaged tasks of a domain, or the
 *            tasks that may run on one CPU only. Its position is in its domain's time, and orders entities. Its clock is
 *            its members' time, and orders them.
 *   task     has a virtual time in its entity's clock. Where it stands in the domain is
 *            entity position + (task's virtual time - entity clock); see warmq_position().
 */
#ifndef WARMQ_DECIDE_H
#define WARMQ_DECIDE_H

#ifndef __VMLINUX_H__
#include <stdbool.h>
#include <stdint.h>
typedef uint64_t u64;
typedef int64_t s64;
typedef uint32_t u32;
typedef int32_t s32;
#endif

#define WARMQ_INLINE static inline __attribute__((always_inline, unused))

/* The weight of a task at nice 0. 64 times sched_ext's 100: parts of a cgroup's share stay above the rounding. */
#define WARMQ_WHOLE 6400ULL

/* How much of a weight is needed to be seen at all. */
#define WARMQ_LEAST_WEIGHT 16ULL

/* How long a debt may keep a task waiting, in ns, while everybody else runs. The kernel throws out who lets one wait for 20 s. */
#define WARMQ_LONGEST_DEBT 4000000000ULL

struct warmq_domain {
	u64 clock;  /* virtual ns */
	u64 weight; /* of everything runnable in the domain */
	u64 cpus;   /* that are online */
};

/* Invariant: position = clock + shift; service moves both, clamping moves the position alone. */
struct warmq_entity {
	u64 clock;  /* virtual ns */
	u64 shift;  /* virtual ns, wraps */
	u64 weight; /* of its runnable members */
};

/* What an administrator may set; see `scx_warmq --help`. */
struct warmq_policy {
	u64 period;           /* ns: everybody runs once in it while few are runnable; sleeps are counted within it */
	u64 slice_max;        /* ns */
	u64 slice_min;        /* ns */
	u64 credit;           /* virtual ns that a sleeper may stand behind its domain's clock */
	u64 limit;            /* virtual ns that anything may stand apart from its domain's clock */
	u64 alpha;            /* ns of granularity for one sleep a second; 0: no granularity of a task's own */
	u64 preempt_interval; /* ns between two wakeup preemptions of one CPU; 0: off */
	u64 min_sleep;        /* ns; shorter sleeps earn neither credit nor preemption; 0: off */
	u64 batch_budget;     /* ns that a group runs in succession on one CPU while others wait */
	u64 imbalance;        /* percent by which a place may be busier than another */
	u64 patience;         /* ns that an imbalance lasts before a group is split */
};

/* ---- virtual time ------------------------------------------------------------------------------------------ */

/* a stands before b. */
WARMQ_INLINE bool warmq_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

/* `value`, kept between `low` and `high` (low before high). */
WARMQ_INLINE u64 warmq_clamp(u64 value, u64 low, u64 high)
{
	if (warmq_before(value, low))
		return low;
	return warmq_before(high, value) ? high : value;
}

/* Virtual ns that `ran` ns are for something of `weight`. */
WARMQ_INLINE u64 warmq_virtual(u64 ran, u64 weight)
{
	if (weight == WARMQ_WHOLE)
		return ran;
	if (weight < WARMQ_LEAST_WEIGHT)
		weight = WARMQ_LEAST_WEIGHT;
	return ran * WARMQ_WHOLE / weight;
}

/* Where an entity stands in its domain. */
WARMQ_INLINE u64 warmq_entity_position(const struct warmq_entity *entity)
{
	return entity->clock + entity->shift;
}

/* Where a member with `vtime` stands in its entity's domain. */
WARMQ_INLINE u64 warmq_position(const struct warmq_entity *entity, u64 vtime)
{
	return vtime + entity->shift;
}

/* A position in one domain, in another: as far from that clock as it was from this one. */
WARMQ_INLINE u64 warmq_emigrate(u64 position, u64 from_clock, u64 to_clock)
{
	return to_clock + (position - from_clock);
}

/*
 * `apart` virtual ns, shrunk as the domain's load grows, so that crossing them takes about as long as it would with one task
 * a CPU: what a task may be owed or owe is bounded in real time, too. Never less than the shortest slice.
 */
WARMQ_INLINE u64 warmq_shrink(const struct warmq_policy *policy, const struct warmq_domain *domain, u64 apart)
{
	u64 capacity = domain->cpus * WARMQ_WHOLE, shrunk = apart;

	if (domain->weight > capacity)
		shrunk = apart * capacity / domain->weight;
	return shrunk < policy->slice_min ? policy->slice_min : shrunk;
}

/*
 * Where a task that becomes runnable stands: where it stood, but at most `credit` behind the clock, so that a long sleep
 * is no claim on the past, and at most `limit` ahead of it, so that an old debt starves nobody. A sleep that was too
 * short (`counts` false) earns nothing: it does not stand before the clock.
 */
WARMQ_INLINE u64 warmq_place(const struct warmq_policy *policy, const struct warmq_domain *domain, u64 position, bool counts)
{
	u64 credit = counts ? warmq_shrink(policy, domain, policy->credit) : 0;

	if (credit > policy->credit)
		credit = policy->credit;
	return warmq_clamp(position, domain->clock - credit, domain->clock + warmq_shrink(policy, domain, policy->limit));
}

/* The virtual ns for which the domain takes WARMQ_LONGEST_DEBT. */
WARMQ_INLINE u64 warmq_longest_debt(const struct warmq_domain *domain)
{
	u64 capacity = domain->cpus * WARMQ_WHOLE;

	return domain->weight > capacity ? WARMQ_LONGEST_DEBT * capacity / domain->weight : WARMQ_LONGEST_DEBT;
}

/*
 * Where a task stands that ran and is to wait: where it stands, but no further ahead than it can pay in time. So the least of
 * weights get more than their share where that would be a slice in a minute, and nobody starves.
 */
WARMQ_INLINE u64 warmq_forgive(const struct warmq_domain *domain, u64 position)
{
	u64 ahead = domain->clock + warmq_longest_debt(domain);

	return warmq_before(ahead, position) ? ahead : position;
}

/*
 * How far ahead of its domain's clock something of `weight` may stand that may just have run for `ran` ns: by a shrunk limit and
 * that, but by no more than can be paid in time.
 */
WARMQ_INLINE u64 warmq_most_debt(const struct warmq_policy *policy, const struct warmq_domain *domain, u64 weight, u64 ran)
{
	u64 debt = warmq_shrink(policy, domain, policy->limit) + warmq_virtual(ran, weight);
	u64 most = warmq_longest_debt(domain);

	return debt < most ? debt : most;
}

/* What a task may have run when its slice is over: that ends at a tick of the kernel's, which may be as long again. */
WARMQ_INLINE u64 warmq_longest_run(const struct warmq_policy *policy)
{
	return 2 * policy->slice_max;
}

/*
 * Where a task stands that goes from one entity to another without having slept: where it stood. Only what no share can explain
 * (it had a CPU to itself while others crowded on another) is cut off.
 */
WARMQ_INLINE u64 warmq_keep_place(const struct warmq_policy *policy, const struct warmq_domain *domain, u64 position,
				  u64 weight)
{
	u64 behind = warmq_shrink(policy, domain, policy->limit);
	u64 ahead = warmq_most_debt(policy, domain, weight, warmq_longest_run(policy));

	return warmq_clamp(position, domain->clock - behind, domain->clock + ahead);
}

/* Where a new task stands: behind everybody who waits, so that a storm of forks makes nobody wait for it. */
WARMQ_INLINE u64 warmq_first_position(const struct warmq_policy *policy, const struct warmq_domain *domain)
{
	return domain->clock + policy->slice_max;
}

/*
 * Admits a task that stands at `position` to an entity; returns its virtual time there. An entity without runnable members
 * takes its first member's position, so that neither changing groups nor a new group is worth anything. Call it before
 * the task's weight is added.
 */
WARMQ_INLINE u64 warmq_join(struct warmq_entity *entity, u64 position)
{
	if (!entity->weight)
		entity->shift = position - entity->clock;
	return position - entity->shift;
}

/*
 * A clock is the mean of where everything stands that it is for, weighted; service moves both alike. Who comes or goes with a
 * debt or a claim must move the mean, or those who stay pay for it: that is how a task that changes its group all the time
 * would gain. These say by how much (virtual ns, may be negative: add it, it wraps).
 */
WARMQ_INLINE u64 warmq_mean_moves(u64 apart, u64 part, u64 whole, u64 most)
{
	bool back = (s64)apart < 0;
	u64 distance = (back ? -apart : apart) * part / whole;

	if (distance > most)
		distance = most;
	return back ? -distance : distance;
}

/* `joining` weight comes that stands `at`; before it, the clock is that of `weight`. */
WARMQ_INLINE u64 warmq_mean_with(const struct warmq_policy *policy, u64 clock, u64 weight, u64 at, u64 joining)
{
	return warmq_mean_moves(at - clock, joining, weight + joining, policy->limit);
}

/* `leaving` weight goes that stands `at`; with it, the clock is that of `weight`. */
WARMQ_INLINE u64 warmq_mean_without(const struct warmq_policy *policy, u64 clock, u64 weight, u64 at, u64 leaving)
{
	return weight <= leaving ? 0 : warmq_mean_moves(clock - at, leaving, weight - leaving, policy->limit);
}

/* ns that the tasks of an entity may run in succession before another is chosen. */
WARMQ_INLINE u64 warmq_succession(const struct warmq_policy *policy, bool group)
{
	return warmq_longest_run(policy) + (group ? policy->batch_budget : 0);
}

/*
 * Keeps an entity's position near its domain's clock: a shrunk `limit` behind it, and ahead by the debt that it may have after
 * what it may run in succession. Members keep their order. Needed where an entity cannot get its share however few stand before
 * it (a group whose home is one busy CPU): an old claim must not make others wait, nor an old debt itself.
 */
WARMQ_INLINE void warmq_bound_entity(const struct warmq_policy *policy, struct warmq_entity *entity,
				     const struct warmq_domain *domain, u64 succession)
{
	u64 position = warmq_entity_position(entity), behind = warmq_shrink(policy, domain, policy->limit);
	u64 ahead = warmq_most_debt(policy, domain, entity->weight, succession);
	u64 bounded = warmq_clamp(position, domain->clock - behind, domain->clock + ahead);

	if (bounded != position)
		entity->shift = bounded - entity->clock;
}

/*
 * Where an entity stands for a CPU that would run its task with `vtime` next, or go on with it: entities are compared by nothing
 * else. Other CPUs may have those that stand before that task, so that it stands behind its entity: its own turn must have come,
 * too, or the light would get as much as the heavy.
 */
WARMQ_INLINE u64 warmq_turn(const struct warmq_policy *policy, struct warmq_entity *entity, const struct warmq_domain *domain,
			    u64 succession, u64 vtime)
{
	u64 position, own;

	warmq_bound_entity(policy, entity, domain, succession);
	position = warmq_entity_position(entity);
	own = warmq_position(entity, vtime);
	return warmq_before(position, own) ? own : position;
}

/* The weight of a task or cgroup within the share of its parent: `active` is all that is active in that parent. */
WARMQ_INLINE u64 warmq_share(u64 weight, u64 parent_weight, u64 active)
{
	u64 share = active ? weight * parent_weight / active : weight;

	return share < WARMQ_LEAST_WEIGHT ? WARMQ_LEAST_WEIGHT : share;
}

/* ---- slices, waits ------------------------------------------------------------------------------------------ */

/* How long a task runs before the next is chosen: its part of the period, within bounds. */
WARMQ_INLINE u64 warmq_slice(const struct warmq_policy *policy, u64 waiting, u64 cpus)
{
	u64 slice = policy->period * (cpus ? cpus : 1) / (waiting + 1);

	if (slice > policy->slice_max)
		return policy->slice_max;
	return slice < policy->slice_min ? policy->slice_min : slice;
}

/*
 * The longest that a runnable task of `weight` waits, in ns. It stands ahead of the clock by its debt after a slice at most, and
 * the clock gets there when everything in the domain has had as much; others may begin a `credit` behind it. A group's batch and
 * the slice that is running come on top. Twice that is the bound, because clocks are read while others move them.
 */
WARMQ_INLINE u64 warmq_wait_bound(const struct warmq_policy *policy, const struct warmq_domain *domain, u64 weight)
{
	u64 owed = warmq_most_debt(policy, domain, weight, policy->slice_max);
	u64 apart = warmq_shrink(policy, domain, policy->credit) + owed;
	u64 cpus = domain->cpus ? domain->cpus : 1;

	return 2 * (apart * (domain->weight / WARMQ_WHOLE + 1) / cpus + policy->batch_budget + policy->slice_max);
}

/* ---- sleepers -------------------------------------------------------------------------------------------- */

/*
 * The granularity of a task's own (Al-Mane' 2009, formula 5-1): alpha * sleeps in the period / (period * weight). alpha is
 * the granularity in ns that one sleep a second is worth at nice 0.
 */
WARMQ_INLINE u64 warmq_granularity(const struct warmq_policy *policy, u64 sleeps, u64 weight)
{
	u64 a_second = sleeps * 1000000000ULL / (policy->period ? policy->period : 1);

	return warmq_virtual(policy->alpha * a_second, weight);
}

/* What came of a wakeup that wants the CPU at once. */
enum warmq_verdict {
	WARMQ_GRANTED = 0,
	WARMQ_NOT_BEHIND = 1,  /* it does not stand before the running task by its granularity */
	WARMQ_TOO_SOON = 2,    /* that CPU was preempted by a wakeup less than preempt_interval ago */
	WARMQ_SHORT_SLEEP = 3, /* it slept less than min_sleep */
};

/* Does a task that woke preempt the one that runs? `since` is the time since that CPU's last wakeup preemption. */
WARMQ_INLINE enum warmq_verdict warmq_preempts(const struct warmq_policy *policy, u64 waking, u64 running, u64 sleeps,
					       u64 weight, u64 slept, u64 since)
{
	if (slept < policy->min_sleep)
		return WARMQ_SHORT_SLEEP;
	if (!warmq_before(waking + warmq_granularity(policy, sleeps, weight), running))
		return WARMQ_NOT_BEHIND;
	return since < policy->preempt_interval ? WARMQ_TOO_SOON : WARMQ_GRANTED;
}

/* ---- groups ------------------------------------------------------------------------------------------------ */

/* Does the group that ran last run on? `used` is what it had in this succession, in ns. */
WARMQ_INLINE bool warmq_batch_goes_on(const struct warmq_policy *policy, u64 used, bool others_wait)
{
	return !others_wait || used < policy->batch_budget;
}

/* Is a place of `weight` on `cpus` CPUs less loaded than the other? Compared as fractions, without dividing. */
WARMQ_INLINE bool warmq_less_loaded(u64 weight, u64 cpus, u64 other_weight, u64 other_cpus)
{
	return weight * other_cpus < other_weight * cpus;
}

/* Is the busy place busier than the calm one by more than the policy allows? Whether it has anything to give is warmq_relieve()'s. */
WARMQ_INLINE bool warmq_imbalanced(const struct warmq_policy *policy, u64 busy, u64 busy_cpus, u64 calm, u64 calm_cpus)
{
	return busy * calm_cpus * 100 > (calm + WARMQ_LEAST_WEIGHT) * busy_cpus * (100 + policy->imbalance);
}

/* The weight whose move makes two places equally loaded. */
WARMQ_INLINE u64 warmq_excess(u64 busy, u64 busy_cpus, u64 calm, u64 calm_cpus)
{
	u64 there = calm * busy_cpus, here = busy * calm_cpus;

	return here <= there ? 0 : (here - there) / (busy_cpus + calm_cpus);
}

/*
 * Is it better to move a group of `weight` than the best so far (0: none yet)? The one that leaves the least imbalance
 * is best, and one that only turns the imbalance round (twice the excess or more) is none.
 */
WARMQ_INLINE bool warmq_better_group(u64 weight, u64 best, u64 excess)
{
	u64 left = weight > excess ? weight - excess : excess - weight;
	u64 left_by_best = best > excess ? best - excess : excess - best;

	if (!weight || weight >= 2 * excess)
		return false;
	return !best || left < left_by_best;
}

/* What relieves a place that is too busy. */
enum warmq_relief {
	WARMQ_LEAVE = 0,
	WARMQ_MOVE_GROUP = 1,
	WARMQ_MOVE_UNMANAGED = 2,
	WARMQ_SPLIT_GROUP = 3,
};

/*
 * Data affinity (the online algorithm): whole groups first where groups are the cause; where none can be moved, unmanaged
 * tasks; a group is split only when nothing else helped for longer than `patience`. `movable` is the weight of the best
 * group (0: each of them runs or is too large), `unmanaged` that of the queued unmanaged tasks, `excess` the cause.
 */
WARMQ_INLINE enum warmq_relief warmq_relieve(const struct warmq_policy *policy, u64 excess, u64 managed, u64 unmanaged,
					     u64 movable, u64 lasted)
{
	if (!excess)
		return WARMQ_LEAVE;
	if (movable && managed >= unmanaged)
		return WARMQ_MOVE_GROUP;
	if (unmanaged)
		return WARMQ_MOVE_UNMANAGED;
	if (movable)
		return WARMQ_MOVE_GROUP;
	return managed && lasted >= policy->patience ? WARMQ_SPLIT_GROUP : WARMQ_LEAVE;
}

/* ---- inference: groups from who wakes whom -------------------------------------------------------------------- */

/* How firmly a task belongs to its group at most. */
#define WARMQ_FIRM 32

/* What comes of a wakeup between two tasks, of which each may have a group. */
enum warmq_kinship {
	WARMQ_STRANGERS = 0,    /* nothing changes */
	WARMQ_FOUND = 1,        /* a new group of both */
	WARMQ_WAKEE_JOINS = 2,  /* the group of the one that wakes it */
	WARMQ_WAKER_JOINS = 3,  /* the group of the one that it wakes */
};

/*
 * Groups spread along wakeups as labels do (label propagation, with inertia): meeting its own group makes a task firmer,
 * meeting another loosens it, and a loose one goes over to the older group, the one with the lower number, so that two
 * groups never swap members for ever. 0 is no group. `firmness` is the wakee's, and changes.
 */
WARMQ_INLINE enum warmq_kinship warmq_meet(u32 wakee, u32 waker, u32 *firmness)
{
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

/* What a period without the group makes of a task's firmness; at 0 it leaves. */
WARMQ_INLINE u32 warmq_fade(u32 firmness)
{
	return firmness / 2;
}

/* The default policy. */
WARMQ_INLINE void warmq_default_policy(struct warmq_policy *policy)
{
	policy->period = 20000000;
	policy->slice_max = 4000000;
	policy->slice_min = 500000;
	policy->credit = 2000000;
	policy->limit = 40000000;
	policy->alpha = 1000;
	policy->preempt_interval = 1000000;
	policy->min_sleep = 0;
	policy->batch_budget = 8000000;
	policy->imbalance = 25;
	policy->patience = 20000000;
}

#endif /* WARMQ_DECIDE_H */
