/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks of cgroups that are out of quota wait in a queue of their cgroup, in no entity, until a timer
 * finds that a period has begun.
 *
 * A task is not stopped wherever it is: inside the kernel it may hold locks or be an RCU reader, for which others
 * wait. The kernel's own scheduler stops it on the way to user mode. There we are not called, but a tick may find a
 * task in user mode (interrupts_user()). And a task may be stopped when it wakes from an interruptible sleep: who
 * waits for a timer, a socket or a futex of its own accord, for nobody knows how long, does so without locks but for
 * a few places. One that slept otherwise, is new or exits runs on until a tick finds it in user mode, which is taken
 * off the next quotas. And whatever else there is, none waits for longer than THROTTLE_MAX.
 */
#pragma once

/* The queue of a cgroup's tasks that are out of quota has the cgroup's number, plus this. */
#define QUOTA_DSQ_BASE 0x10000

/* What the kernel calls a quota of `max`. */
#define NO_QUOTA (~0ULL)

/* No task waits for longer, in ns; after that it may run until a tick, whatever its cgroup has had. */
#define THROTTLE_MAX 3000000000ULL

/* The timer is not set to less, in ns. */
#define QUOTA_TIMER_MIN 1000000ULL

struct quota_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct quota_timer);
} quota_timers SEC(".maps");

/* Tasks of ours that are throttled. */
u64 nr_throttled;

/* How often a task was released; see note_released(). */
u64 releases;

/* The registers that the interrupt saved which a CPU is in. */
extern struct pt_regs *const __irq_regs __ksym __weak;

#define TASK_INTERRUPTIBLE 1 /* include/linux/sched.h */

/* Whether a task that is about to sleep may be woken by signals. */
static __always_inline bool sleeps_interruptibly(const struct task_struct *p)
{
	return p->__state & TASK_INTERRUPTIBLE;
}

/* Whether the tick interrupts the user mode of a task: it then leaves its CPU without anything of the kernel's. */
static __always_inline bool interrupts_user(struct task_struct *p)
{
	struct pt_regs *const *saved;

	if (!&__irq_regs || bpf_get_current_task_btf()->pid != p->pid) /* the tick of another CPU */
		return false;
	saved = bpf_this_cpu_ptr(&__irq_regs);
	return (u64)*saved == (u64)bpf_task_pt_regs(p);
}

/* Whether a task that is throttled has waited for as long as one may. */
static __always_inline bool waited_enough(struct task_state *t)
{
	return elapsed(t->waits_since, scx_bpf_now()) >= THROTTLE_MAX;
}

/*
 * Whether a task must wait for a period of its cgroup instead of going on. One that has waited goes on
 * for a slice at least, even if a tick comes just after it has begun: else it would wait and wait for next to nothing.
 */
static __always_inline bool must_wait(struct task_state *t)
{
	if (!t->stoppable || !out_of_quota(t->cgroup))
		return false;
	return t->throttled ? !waited_enough(t) : elapsed(t->released_at, scx_bpf_now()) >= policy.slice_min;
}

/* RCU read sections that a task is in; those of this program's caller do not count. */
static __always_inline bool reads_rcu(struct task_struct *p)
{
	int own = bpf_get_current_task_btf()->pid == p->pid;

	return bpf_core_field_exists(p->rcu_read_lock_nesting) && p->rcu_read_lock_nesting > own;
}

/*
 * A task of a cgroup that is out of quota waits, and competes with nobody. Not one for which others may wait: none
 * that is stoppable should be one, but this is cheap to look at.
 */
static bool throttle(struct task_struct *p, struct task_state *t, u64 enq_flags)
{
	if (reads_rcu(p) || is_migration_disabled(p) || (p->flags & (PF_EXITING | PF_KTHREAD))) {
		t->stoppable = false;
		return false;
	}
	leave_all(t);
	if (!t->throttled) {
		t->throttled = true;
		__sync_fetch_and_add(&nr_throttled, 1);
	}
	/* Whoever has waited for longest comes first: those that ran least in the last period. */
	scx_bpf_dsq_insert_vtime(p, QUOTA_DSQ_BASE + t->cgroup, policy.slice_min, t->waits_since, enq_flags);
	return true;
}

/* A task runs, or is no longer ours. */
static __always_inline void unthrottle(struct task_state *t)
{
	if (!t->throttled)
		return;
	t->throttled = false;
	t->released_at = scx_bpf_now();
	__sync_fetch_and_sub(&nr_throttled, 1);
}

/* The CPU of a task that waits; one that it may run on, if its affinity is just being changed. */
static u32 cpu_of_waiting(struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);

	return bpf_cpumask_test_cpu(cpu, p->cpus_ptr) ? cpu : bpf_cpumask_first(p->cpus_ptr);
}

/* Kicks an idle CPU for a task that was released into `entity`. */
static void wake_released(struct task_struct *p, u32 entity)
{
	s32 idle;

	if (entity >= WARMQ_PINNED_BASE && entity < WARMQ_GROUP_BASE) {
		idle = entity - WARMQ_PINNED_BASE;
		idle = scx_bpf_test_and_clear_cpu_idle(idle) ? idle : -1;
	} else if (p->nr_cpus_allowed < nr_cpus) {
		idle = idle_to_kick(p, cpu_of_waiting(p));
	} else {
		idle = idle_near(domain_of_entity(entity), nr_nodes > 1 && gives_far(domain_of_entity(entity)));
	}
	if (idle >= 0)
		scx_bpf_kick_cpu(idle, SCX_KICK_IDLE);
	else
		kick_searching(p, entity);
}

/*
 * Lets the tasks of a cgroup compete again, `all` or those that have waited enough: puts them into the queues of
 * the entities where they belong now, since their affinity may have changed. They join these when they run,
 * without lag: what they could not have is lost. No lock is held: a task may be queued again, or run, at any moment.
 */
static void release(u32 number, bool all)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, QUOTA_DSQ_BASE + number, 0) {
		struct task_state *t = task_of(p);
		u64 mark;
		u32 entity;

		if (!t)
			continue;
		if (!all && !waited_enough(t)) /* nor have those behind it */
			break;
		entity = entity_for(p, t, cpu_of_waiting(p));
		mark = (__sync_fetch_and_add(&releases, 1) + 1) << 32;
		/* Before it moves, since it may run at once. */
		if (!note_released(t, entity, mark, scx_bpf_now()))
			continue;
		scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, slice_in(domain_of_entity(entity)));
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, entity_of(entity)->time.avg_vruntime);
		note_first(entity, entity_of(entity)->time.avg_vruntime);
		if (scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, dsq_of(entity), 0))
			wake_released(p, entity);
		else
			unqueue_noted(t, mark | entity);
	}
}

/* A timer is releasing tasks. One at a time: the first note of a task must not be taken back by a second. */
u64 releasing;

/*
 * Releases the tasks of cgroups that are within their quotas, have none, or are gone, and of the others all that have
 * waited enough.
 */
static void release_due(void)
{
	u32 number;

	if (!nr_throttled || __sync_lock_test_and_set(&releasing, 1))
		return;
	bpf_for(number, 1, MAX_CGROUPS) {
		struct cgroup_state *cgroup = cgroup_of(number);

		if (cgroup->has_queue && scx_bpf_dsq_nr_queued(QUOTA_DSQ_BASE + number) > 0)
			release(number, cgroup->state != CGROUP_USED || !out_of_quota(number));
	}
	__sync_lock_test_and_set(&releasing, 0);
}

static int begin_periods(void *map, int *key, struct bpf_timer *timer)
{
	u64 next = balance_interval, now = bpf_ktime_get_ns();
	u32 number;

	bpf_for(number, 1, MAX_CGROUPS) {
		struct cgroup_state *cgroup = cgroup_of(number);
		u64 left = cgroup->state == CGROUP_USED && cgroup->quota ? refill(cgroup, now) : next;

		if (left < next)
			next = left;
	}
	bpf_rcu_read_lock();
	release_due();
	bpf_rcu_read_unlock();
	if (!nr_quotas) /* who is throttled at this very moment is released by the balance timer */
		return 0;
	bpf_timer_start(timer, next < QUOTA_TIMER_MIN ? QUOTA_TIMER_MIN : next, 0);
	return 0;
}

/* Sets the quota of a cgroup, in us in each period of as many us, and how much of earlier ones it may keep. */
static void set_quota(struct cgroup_state *cgroup, u64 period_us, u64 quota_us, u64 burst_us)
{
	u64 before = cgroup->quota;
	struct quota_timer *value;
	u32 zero = 0;

	cgroup->period = period_us * 1000;
	cgroup->quota = quota_us == NO_QUOTA ? 0 : quota_us * 1000;
	cgroup->ran = 0;
	cgroup->burst = burst_us * 1000;
	cgroup->period_at = bpf_ktime_get_ns();
	if (before && !cgroup->quota) {
		/* A timer expires soon, and releases whoever waits. */
		__sync_fetch_and_sub(&nr_quotas, 1);
		return;
	}
	if (before || !cgroup->quota || __sync_fetch_and_add(&nr_quotas, 1))
		return;
	value = bpf_map_lookup_elem(&quota_timers, &zero);
	if (value)
		bpf_timer_start(&value->timer, QUOTA_TIMER_MIN, 0);
}

static int prepare_quota_timer(void)
{
	u32 zero = 0;
	struct quota_timer *value = bpf_map_lookup_elem(&quota_timers, &zero);

	if (!value)
		return -ESRCH;
	bpf_timer_init(&value->timer, &quota_timers, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&value->timer, begin_periods);
	return 0;
}
