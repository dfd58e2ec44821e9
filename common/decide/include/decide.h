/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * What scx_warmq decides, as arithmetic: no BPF call, no kernel type, no memory but what is handed
 * in.
 *
 * The BPF program includes this file, and decide.c compiles it into a library for the simulated
 * scheduler of the same name. So the policy exists once, here.
 *
 * Terms, as kernel/sched/fair.c uses them:
 *   vruntime   run time of a task divided by its weight: at WARMQ_WEIGHT_NICE_0 it grows as fast as
 *              real time.
 *   V          avg_vruntime, the weighted mean of all runnable vruntimes: V = sum(w * v) / sum(w)
 *   lag        V - vruntime of a task. Positive: the task is owed service. Negative: it has had
 *              more than its share. The lags of all runnable tasks, weighted, add up to 0.
 *   request    for how long a task is expected to run once it is picked, in ns: what it usually runs
 *              between two sleeps, or a slice.
 *   deadline   vruntime + request / weight: the vruntime at which the request is served. Whoever has
 *              the earliest runs first, as in weighted fair queueing (finish times; Parekh and
 *              Gallager 1993). Unlike EEVDF, who has negative lag may run, too.
 *
 * Three layers:
 *   domain   CPUs that share a last-level cache. Everything runnable in it has a vruntime in the
 *            domain's virtual time, and the domain keeps V.
 *   entity   what a CPU chooses between: a group (the tasks of one fragment), the unmanaged tasks
 *            of a domain, or the tasks that may run on one CPU only. It keeps the V of its members.
 *            Its own vruntime, in the domain's time, bounds what its members get.
 *   task     has a vtime: its vruntime in its entity's time. Its deadline orders it.
 *
 * A task is compared with what it competes with: one that wakes has its lag among the members of its
 * entity, not among tasks of the domain that have a CPU to themselves.
 *
 * Units: times are nanoseconds. vruntime and lag are virtual nanoseconds: real ones at nice 0. They
 * wrap, and are compared by difference, which must stay below 2^63. Weights are sched_ext's, 1 to
 * 10000, times 1024, so they stay below 2^24.
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

/*
 * The weight of a task at nice 0: 1024 times sched_ext's 100, so that a small share of a cgroup is
 * not lost to rounding.
 */
#define WARMQ_WEIGHT_NICE_0 102400ULL

/* The least weight that counts; anything below is raised to it. */
#define WARMQ_WEIGHT_MIN 16ULL

/*
 * Within what time, in ns, a queued task must be able to work off its negative lag while all others
 * run. The kernel throws a scheduler out that lets a task wait for 20 s.
 */
#define WARMQ_REPAY_MAX 4000000000ULL

struct warmq_domain {
	u64 avg_vruntime; /* V, virtual ns */
	u64 weight;       /* of everything runnable in the domain */
	u64 runnable;     /* tasks */
	u64 cpus;         /* that are online */
};

/*
 * Invariant: the entity's vruntime in its domain is avg_vruntime + shift. Service advances
 * avg_vruntime; placing and clamping the entity change only shift, so its members keep their order.
 */
struct warmq_entity {
	u64 avg_vruntime; /* V of its members, virtual ns */
	u64 shift;        /* from its members' time to the domain's, virtual ns, wraps */
	u64 weight;       /* of its runnable members */
	u64 runnable;     /* members */
};

/* What an administrator may set; see `scx_warmq --help`. */
struct warmq_policy {
	/* ns: while few are runnable, each runs once in it; sleeps are counted within it */
	u64 period;
	u64 slice_max;        /* ns */
	u64 slice_min;        /* ns */
	u64 wakeup_lag_max;   /* virtual ns: a task that wakes keeps at most so much lag */
	u64 lag_max;          /* virtual ns: bound of any lag, applied when queueing and picking */
	u64 alpha;            /* ns of wakeup granularity for one sleep per second; 0: none */
	u64 preempt_interval; /* ns between two wakeup preemptions of one CPU; 0: off */
	u64 min_sleep;        /* ns; a task that slept less keeps no lag and does not preempt */
	u64 batch_budget;     /* ns that a group runs in succession on one CPU while others wait */
	u64 imbalance;        /* percent by which a place may be busier than another */
	u64 patience;         /* ns that an imbalance lasts before a group is split */
};

/*
 * ---- vruntime
 * ------------------------------------------------------------------------------------------------
 */

/* a is earlier than b. */
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

/*
 * By how much vruntime grows when something of `weight` runs for `ran` ns.
 *
 *	dv = ran * w0 / w       w0 := WARMQ_WEIGHT_NICE_0   w := weight, at least WARMQ_WEIGHT_MIN
 *
 * With the total weight of a domain or entity the same formula gives the growth of its V: a task of
 * weight w moves the mean by w/W of its own dv, which is ran * w0 / W.
 * Bounds: exact for ran < 2^64 / w0, 50 hours without a charge.
 */
WARMQ_INLINE u64 warmq_delta_vruntime(u64 ran, u64 weight)
{
	if (weight == WARMQ_WEIGHT_NICE_0)
		return ran;
	if (weight < WARMQ_WEIGHT_MIN)
		weight = WARMQ_WEIGHT_MIN;
	return ran * WARMQ_WEIGHT_NICE_0 / weight;
}

/* The vruntime of an entity in its domain. */
WARMQ_INLINE u64 warmq_entity_vruntime(const struct warmq_entity *entity)
{
	return entity->avg_vruntime + entity->shift;
}

/* The vruntime in the domain of a member whose vruntime in the entity is `vtime`. */
WARMQ_INLINE u64 warmq_vruntime(const struct warmq_entity *entity, u64 vtime)
{
	return vtime + entity->shift;
}

/*
 * The vruntime in another domain of something that moves there and keeps its lag: v' = V' - (V -
 * v).
 */
WARMQ_INLINE u64 warmq_migrate_vruntime(u64 vruntime, u64 from_avg, u64 to_avg)
{
	return to_avg + (vruntime - from_avg);
}

/*
 * ---- lag: its bounds
 * ------------------------------------------------------------------------------------------
 */

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
 *	scaled = ns * C / W             floor = slice_min * n * w0 / W
 *
 *	C := warmq_capacity()   W := domain->weight   n := domain->runnable
 *
 * With one task of nice 0 on each CPU that is `ns`, as it is in an empty domain.
 * Bounds: C < 2^26 (512 CPUs), so exact for ns < 2^38, 4 minutes; the floor for slice_min * n < 2^47,
 * 280,000 tasks at half a millisecond.
 */
WARMQ_INLINE u64 warmq_scale_lag(const struct warmq_policy *policy, const struct warmq_domain *domain, u64 ns)
{
	u64 scaled, least;

	if (!domain->weight || !domain->runnable)
		return ns;
	scaled = ns * warmq_capacity(domain) / domain->weight;
	least = policy->slice_min * domain->runnable * WARMQ_WEIGHT_NICE_0 / domain->weight;
	return scaled < least ? least : scaled;
}

/* The lag that the domain works off in WARMQ_REPAY_MAX. */
WARMQ_INLINE u64 warmq_repayable_lag(const struct warmq_domain *domain)
{
	if (!domain->weight || !domain->runnable)
		return WARMQ_REPAY_MAX;
	return WARMQ_REPAY_MAX * warmq_capacity(domain) / domain->weight;
}

/*
 * The lower bound of the lag of something of `weight` that may just have run for `ran` ns, without
 * its sign: lag >= -warmq_lag_min(). A run of that length is a legitimate reason for negative lag,
 * so it is added to the scaled lag_max; the sum must still be repayable in time.
 */
WARMQ_INLINE u64 warmq_lag_min(const struct warmq_policy *policy, const struct warmq_domain *domain, u64 weight, u64 ran)
{
	u64 lag = warmq_scale_lag(policy, domain, policy->lag_max) + warmq_delta_vruntime(ran, weight);
	u64 repayable = warmq_repayable_lag(domain);

	return lag < repayable ? lag : repayable;
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
 * ---- placing: the vruntime of a task that is queued
 * -------------------------------------------------------------
 */

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
		bound = avg + warmq_lag_min(policy, domain, weight, warmq_longest_run(policy));
		return warmq_before(bound, vruntime) ? bound : vruntime;
	}
	if (!keeps_lag || !policy->wakeup_lag_max)
		return avg;
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

	/* At 16 tasks of nice 0 a CPU a sixteenth of it can be repaid: no need to divide. */
	if (domain->weight <= 16 * warmq_capacity(domain) &&
	    !warmq_before(domain->avg_vruntime + WARMQ_REPAY_MAX / 16, vruntime))
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
 * another).
 */
WARMQ_INLINE u64 warmq_place_awake(const struct warmq_policy *policy, const struct warmq_domain *domain, u64 vruntime,
				   u64 weight)
{
	u64 lag_max = warmq_scale_lag(policy, domain, policy->lag_max);
	u64 lag_min = warmq_lag_min(policy, domain, weight, warmq_longest_run(policy));

	return warmq_clamp(vruntime, domain->avg_vruntime - lag_max, domain->avg_vruntime + lag_min);
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

/*
 * ---- V: the weighted mean
 * -------------------------------------------------------------------------------------
 */

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
	u64 distance = (negative ? -difference : difference) * part / total;

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
 * What a task of `weight` that exits leaves to its parent, in ns of run time: its debt. Otherwise a
 * program that works in ever new children would never have had its share, since each of them begins
 * without a debt. The parent is charged for it as if it had run so long itself.
 * Bounds: a debt of more than WARMQ_REPAY_MAX counts for that.
 */
WARMQ_INLINE u64 warmq_debt(u64 avg, u64 vruntime, u64 weight)
{
	u64 debt = warmq_before(avg, vruntime) ? vruntime - avg : 0;

	if (debt > WARMQ_REPAY_MAX)
		debt = WARMQ_REPAY_MAX;
	return debt * weight / WARMQ_WEIGHT_NICE_0;
}

/*
 * ---- picking
 * --------------------------------------------------------------------------------------------------
 */

/* ns that the tasks of an entity may run in succession before another is chosen. */
WARMQ_INLINE u64 warmq_succession(const struct warmq_policy *policy, bool group)
{
	return warmq_longest_run(policy) + (group ? policy->batch_budget : 0);
}

/*
 * Clamps an entity's lag while it is queued: to lag_max (scaled) from above, and from below to what
 * a succession explains. Needed where an entity cannot get its share however small its vruntime is
 * (a group whose home is one busy CPU): old lag must neither delay others nor the entity itself.
 * Only `shift` changes, so members keep their order.
 */
WARMQ_INLINE void warmq_clamp_entity(const struct warmq_policy *policy, struct warmq_entity *entity,
				     const struct warmq_domain *domain, u64 succession)
{
	u64 vruntime = warmq_entity_vruntime(entity), lag_max = warmq_scale_lag(policy, domain, policy->lag_max);
	u64 lag_min = warmq_lag_min(policy, domain, entity->weight, succession);
	u64 clamped = warmq_clamp(vruntime, domain->avg_vruntime - lag_max, domain->avg_vruntime + lag_min);

	if (clamped != vruntime)
		entity->shift = clamped - entity->avg_vruntime;
}

/*
 * The key by which a CPU compares entities; the least is picked. `deadline` is that of the task that
 * the CPU would run next, or go on with, in the entity's time.
 *
 * The key is the later of the entity's vruntime (clamped) and that task's deadline. The first counts
 * where a member has much positive lag among members who had more than their share.
 */
WARMQ_INLINE u64 warmq_pick_key(const struct warmq_policy *policy, struct warmq_entity *entity,
				const struct warmq_domain *domain, u64 succession, u64 deadline)
{
	u64 vruntime, own;

	warmq_clamp_entity(policy, entity, domain, succession);
	vruntime = warmq_entity_vruntime(entity);
	own = warmq_vruntime(entity, deadline);
	return warmq_before(vruntime, own) ? own : vruntime;
}

/*
 * The weight of a task or cgroup within the share of its parent: weight * parent_weight / active,
 * where `active` is the sum of all weights that are active in that parent.
 */
WARMQ_INLINE u64 warmq_share(u64 weight, u64 parent_weight, u64 active)
{
	u64 share = active ? weight * parent_weight / active : weight;

	return share < WARMQ_WEIGHT_MIN ? WARMQ_WEIGHT_MIN : share;
}

/*
 * The part of a task's `weight` that it can use. A task has one CPU at most, so with c CPUs a weight
 * above 1/c of all is worth no more than 1/c:
 *
 *	w' = min(w, (W - own) / (c - 1))    W := domain->weight   own := what W has of this task
 *
 * More would not give it more, but would hold V back, by which the others are judged: they would all
 * seem to have had too much, and have the same. Where there are no more tasks than CPUs nobody
 * competes, and weights stay as they are. Others that are too heavy, too, come down in their turn.
 * `runnable` and `cpus` are those that the task competes with, itself included, and for.
 */
WARMQ_INLINE u64 warmq_usable_weight(const struct warmq_domain *domain, u64 runnable, u64 cpus, u64 weight, u64 own)
{
	u64 others = domain->weight > own ? domain->weight - own : 0, most;

	if (cpus < 2 || runnable <= cpus || !others)
		return weight;
	most = others / (cpus - 1);
	if (most < WARMQ_WEIGHT_MIN)
		most = WARMQ_WEIGHT_MIN;
	return weight < most ? weight : most;
}

/*
 * ---- slices, waits
 * --------------------------------------------------------------------------------------------
 */

/*
 * How long a task runs before the next is chosen: its part of the period, period * cpus / runnable,
 * within bounds. Tasks are counted, not weighed: weights that are parts of cgroups' say nothing about
 * how many wait.
 */
WARMQ_INLINE u64 warmq_slice(const struct warmq_policy *policy, u64 runnable, u64 cpus)
{
	u64 slice = policy->period * (cpus ? cpus : 1) / (runnable ? runnable : 1);

	if (slice > policy->slice_max)
		return policy->slice_max;
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
 * ---- wakeup preemption
 * ----------------------------------------------------------------------------------------
 */

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
	if (!warmq_before(wakeup->waking + warmq_wakeup_granularity(policy, wakeup->sleeps, wakeup->weight), wakeup->running))
		return WARMQ_TOO_CLOSE;
	return wakeup->since < policy->preempt_interval ? WARMQ_TOO_SOON : WARMQ_GRANTED;
}

/*
 * ---- groups
 * ------------------------------------------------------------------------------------------------
 */

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
 * place's groups, `movable` that of the best group (0: each of them runs or is too large),
 * `unmanaged` that of the queued unmanaged tasks, and `task` that of one of them. One that would only
 * turn the imbalance round stays for a while: a move costs the contents of a cache.
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

/*
 * ---- partners
 * --------------------------------------------------------------------------------------------------
 */

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

/*
 * ---- inference: groups from who wakes whom
 * --------------------------------------------------------------------
 */

/* The highest firmness: how strongly a task belongs to its inferred group. */
#define WARMQ_FIRM 32

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
 * ever. Group 0 is none. `firmness` is the wakee's, and changes.
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

/*
 * The firmness of a task after a period without a wakeup from its group. At 0 the task leaves it.
 */
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
	policy->wakeup_lag_max = 2000000;
	policy->lag_max = 40000000;
	policy->alpha = 1000;
	policy->preempt_interval = 1000000;
	policy->min_sleep = 0;
	policy->batch_budget = 8000000;
	policy->imbalance = 25;
	policy->patience = 20000000;
}

#endif /* WARMQ_DECIDE_H */
