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
	u32 runnable;     /* tasks */
	u32 cpus;         /* that are online */
};

/*
 * Invariant: the entity's vruntime in its domain is avg_vruntime + shift. Service advances
 * avg_vruntime; placing and clamping the entity change only shift, so its members keep their order.
 */
struct warmq_entity {
	u64 avg_vruntime; /* V of its members, virtual ns */
	u64 shift;        /* from its members' time to the domain's, virtual ns, wraps */
	u64 weight;       /* of its runnable members */
	u32 runnable;     /* members */
};

/* What an administrator may set; see `scx_warmq --help`. */
struct warmq_policy {
	/* ns: while few are runnable, each runs once in it; sleeps are counted within it */
	u64 period;
	u64 slice_max;        /* ns; also for how long a better core is there before a task goes to it */
	u64 slice_min;        /* ns */
	u64 wakeup_lag_max;   /* virtual ns: a task that wakes keeps at most so much lag */
	u64 lag_max;          /* virtual ns: bound of any lag, applied when queueing and picking */
	u64 alpha;            /* ns of wakeup granularity for one sleep per second; 0: none */
	u64 preempt_interval; /* ns between two wakeup preemptions of one CPU; 0: off */
	u64 min_sleep;        /* ns; a task that slept less keeps no lag and does not preempt */
	u64 batch_budget;     /* ns that a group runs in succession on one CPU while others wait */
	u64 imbalance;        /* percent by which a place may be busier than another */
	u64 patience;         /* ns that an imbalance lasts before a group is split, or a task leaves its cache for a core */
};

#include "decide/vruntime.h"
#include "decide/lag.h"
#include "decide/mean.h"
#include "decide/pick.h"
#include "decide/slice.h"
#include "decide/wakeup.h"
#include "decide/power.h"
#include "decide/group.h"
#include "decide/node.h"
#include "decide/core.h"

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
