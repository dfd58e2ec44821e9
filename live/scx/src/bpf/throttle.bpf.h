/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks of cgroups that are out of quota wait in a queue of their cgroup, in no entity, until a timer
 * finds that a period has begun.
 */
#pragma once

/* The queue of a cgroup's tasks that are out of quota has the cgroup's number, plus this. */
#define QUOTA_DSQ_BASE 0x10000

/* What the kernel calls a quota of `max`. */
#define NO_QUOTA (~0ULL)

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

/*
 * Lets the tasks of a cgroup compete again: puts them into the queues of the entities where they were.
 * They join these when they run, without lag: what they could not have is lost.
 */
static void release(u32 number)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, QUOTA_DSQ_BASE + number, 0) {
		struct task_state *t = task_of(p);
		u32 entity;
		s32 idle;

		if (!t)
			continue;
		entity = t->entity;
		scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, slice_of(t));
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, entity_of(entity)->time.avg_vruntime);
		/* Before it moves, since it may run at once. */
		note_queued(t, entity, scx_bpf_now());
		if (!scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, dsq_of(entity), 0)) {
			unqueue(t);
			continue;
		}
		if (entity >= WARMQ_PINNED_BASE && entity < WARMQ_GROUP_BASE) {
			idle = entity - WARMQ_PINNED_BASE;
			idle = scx_bpf_test_and_clear_cpu_idle(idle) ? idle : -1;
		} else {
			idle = idle_near(domain_of_entity(entity));
		}
		if (idle >= 0)
			scx_bpf_kick_cpu(idle, SCX_KICK_IDLE);
	}
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
	bpf_for(number, 1, MAX_CGROUPS) {
		if (cgroup_of(number)->state == CGROUP_USED && !out_of_quota(number) &&
		    scx_bpf_dsq_nr_queued(QUOTA_DSQ_BASE + number) > 0)
			release(number);
	}
	bpf_rcu_read_unlock();
	if (!nr_quotas)
		return 0;
	bpf_timer_start(timer, next < QUOTA_TIMER_MIN ? QUOTA_TIMER_MIN : next, 0);
	return 0;
}

/* Sets the quota of a cgroup, in us in each period of as many us. */
static void set_quota(struct cgroup_state *cgroup, u64 period_us, u64 quota_us)
{
	u64 before = cgroup->quota;
	struct quota_timer *value;
	u32 zero = 0;

	cgroup->period = period_us * 1000;
	cgroup->quota = quota_us == NO_QUOTA ? 0 : quota_us * 1000;
	cgroup->ran = 0;
	cgroup->period_at = bpf_ktime_get_ns();
	if (before && !cgroup->quota) {
		/* The timer expires once more after the last one, and releases whoever waits. */
		__sync_fetch_and_sub(&nr_quotas, 1);
		return;
	}
	if (before || !cgroup->quota || __sync_fetch_and_add(&nr_quotas, 1))
		return;
	value = bpf_map_lookup_elem(&quota_timers, &zero);
	if (value)
		bpf_timer_start(&value->timer, QUOTA_TIMER_MIN, 0);
}

/* A task of a cgroup that is out of quota waits, and competes with nobody. */
static void throttle(struct task_struct *p, struct task_state *t, u64 enq_flags)
{
	leave_all(t);
	t->throttled = true;
	scx_bpf_dsq_insert(p, QUOTA_DSQ_BASE + t->cgroup, policy.slice_min, enq_flags);
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
