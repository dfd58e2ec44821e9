/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Idle CPUs: the previous one if its whole core is idle, then an idle core under its cache, then the
 * previous one beside a busy sibling, then its sibling, then one under its cache, then one under the nearest cache that has
 * one: of its node, then of others, if warmq_crosses_node() says so. Where CPUs of a cache differ in capacity, the fast ones
 * come first. A member of a group looks at its home only.
 */
#pragma once

static __always_inline bool take_idle(const struct task_struct *p, s32 cpu)
{
	return bpf_cpumask_test_cpu(cpu, p->cpus_ptr) && scx_bpf_test_and_clear_cpu_idle(cpu);
}

/* The word of idle_domains with the bit of a domain. */
static __always_inline u64 *idle_word(u32 domain)
{
	return &idle_domains.bits[within(domain / 64, WARMQ_MAX_DOMAINS / 64)];
}

/* Whether a CPU of any domain may idle, but for those of `domain`. */
static __always_inline bool may_idle_elsewhere(u32 domain)
{
	u64 any = *idle_word(domain) & ~(1ULL << domain % 64);
	u32 i;

	for (i = 1; i < WARMQ_MAX_DOMAINS / 64; i++)
		any |= *idle_word(domain + i * 64);
	return any;
}

/* Says that a CPU of a domain may idle, of which it was said before that none does. */
static __noinline void set_may_idle(u32 domain)
{
	u64 before = __sync_lock_test_and_set(&domain_of(domain)->may_idle, 1);

	barrier_var(before);
	add_bits_in_order(idle_word(domain), 1ULL << domain % 64);
}

/*
 * Notes that a CPU goes idle or no longer is. While `may_idle` of a domain is 0, nobody needs to ask the
 * kernel for an idle CPU there. It changes seldom, so that the CPUs of a domain do not take its line from
 * each other: who goes idle sets it if it is not set, and who asks in vain clears it, unless a CPU there still counts as
 * idle (clear_may_idle()). No CPU is forgotten for that: one that goes idle first says so and then looks at
 * `may_idle`; who clears that first does so and then looks once more who is idle.
 *
 * No task waits beside an idle CPU for that:
 *
 * - A CPU that goes idle sets `may_idle` and then looks at `queued` (update_idle). Who queues a task raises
 *   `queued` and then looks at `may_idle`. So one of them sees the other.
 * - If the CPU does, it kicks itself. It may find nothing yet, since the kernel puts a task into a queue once
 *   enqueue has returned. So it kicks itself again as long as a task is about to come: is_coming().
 * - If the other does, it kicks the CPU, which looks after the task is in its queue (kick_cpus_irq_workfn() waits
 *   until the lock is free under which that happens). A CPU that was kicked before, and looks for a task just now, is not
 *   marked idle, and the kernel does not say when it becomes so again: kick_searching().
 *
 * (While the kernel bypasses schedulers, as when it suspends, it does not say who goes
 * idle: such a CPU gets its first task from the timer, and is counted from then on. __scx_update_idle()
 * of kernel/sched/ext_idle.c.)
 */
static __always_inline void note_idle(s32 cpu, bool idle)
{
	struct cpu_state *c = cpu_of(cpu);
	u32 before;

	if (c->idle == idle)
		return;
	before = __sync_lock_test_and_set(&c->idle, idle); /* in order */
	barrier_var(before);
	if (idle && !domain_of(domain_of_cpu(cpu))->may_idle)
		set_may_idle(domain_of_cpu(cpu));
}

/* How long after a task was counted it may still be on its way into its queue, in ns. */
#define COMES_WITHIN 1000000ULL

/*
 * Whether a task is about to come into the queue of an entity. Tasks are counted as well that another CPU has taken and
 * does not run yet, which may last if a real-time task comes first; so not for longer than it takes.
 */
static bool is_coming(u32 entity)
{
	struct entity_state *state = entity_of(entity);

	return state->queued && (u32)(scx_bpf_now() / COMING_UNIT) - state->queued_last < COMES_WITHIN / COMING_UNIT &&
	       (s64)state->queued > scx_bpf_dsq_nr_queued(dsq_of(entity));
}

/* Whether one waits that woke while `cpu` was idle: it may have come after the CPU looked, and the kernel's kick is lost then. */
static __always_inline bool found_waits(u32 cpu)
{
	return cpu_of(cpu)->found && scx_bpf_dsq_nr_queued(dsq_of(FOUND_BASE + cpu)) > 0;
}

/* Whether a CPU takes tasks of an entity without looking elsewhere. */
static bool serves(u32 cpu, u32 entity)
{
	if (is_group(entity))
		return place_of_cpu(cpu) == group_of(entity)->home;
	return entity == domain_of_cpu(cpu) || entity == WARMQ_PINNED_BASE + cpu;
}

/* Whether any CPU of a domain counts as idle, marked so by the kernel or not. */
static bool counts_any_idle(u32 domain)
{
	u32 cpu;

	bpf_for(cpu, 0, nr_cpus)
		if (domain_of_cpu(cpu) == domain && cpu_of(cpu)->idle)
			return true;
	return false;
}

/* The kernel knew no idle CPU of a domain a moment ago: until one idles there nobody need ask again. */
static void clear_may_idle(u32 domain)
{
	u64 before = __sync_lock_test_and_set(&domain_of(domain)->may_idle, 0); /* in order: see note_idle() */

	barrier_var(before);
	take_bits_in_order(idle_word(domain), 1ULL << domain % 64);
	if (counts_any_idle(domain))
		set_may_idle(domain);
}

/* See kick_searching(). */
__noinline int kick_each_searching(struct task_struct *p __arg_trusted, u32 entity)
{
	u32 domain = domain_of_entity(entity), cpu;

	bpf_rcu_read_lock(); /* the verifier checks a global function as if it had any caller */
	bpf_for(cpu, 0, nr_cpus) {
		if (domain_of_cpu(cpu) != domain || !cpu_of(cpu)->idle)
			continue;
		if (serves(cpu, entity) && bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	}
	bpf_rcu_read_unlock();
	return 0;
}

/* Kicks the CPUs that idle but are not marked so, for a task that is queued in `entity`: each may have looked before. */
static __always_inline void kick_searching(struct task_struct *p, u32 entity)
{
	if (domain_of(domain_of_entity(entity))->may_idle) /* seldom; and a loop costs something even if it ends at once */
		kick_each_searching(p, entity);
}

/* An idle CPU of the core of `cpu`, or -1. */
__noinline s32 idle_in_core(struct task_struct *p __arg_trusted, s32 cpu)
{
	u32 sibling = cpu_sibling[within(cpu, WARMQ_MAX_CPUS)];
	int i;

	bpf_for(i, 0, WARMQ_CORE_CPUS) {
		if (sibling == cpu)
			return -1;
		if (take_idle(p, sibling))
			return sibling;
		sibling = cpu_sibling[within(sibling, WARMQ_MAX_CPUS)];
	}
	return -1;
}

/* An idle CPU of a mask for p, or -1; `flags` may ask for one whose whole core is idle. */
static __always_inline s32 idle_among(struct task_struct *p, struct bpf_cpumask *mask, s32 prev, u64 flags)
{
	if (!mask)
		return -1;
	if (p->nr_cpus_allowed >= nr_cpus)
		return scx_bpf_pick_idle_cpu(cast_mask(mask), flags);
	return scx_bpf_select_cpu_and(p, prev, 0, cast_mask(mask), flags);
}

/* The same of a domain; fast CPUs come first. */
static s32 idle_in_domain(struct task_struct *p, u32 domain, s32 prev, u64 flags)
{
	s32 cpu = unlike_cpus ? idle_among(p, fast_mask_of_domain(domain), prev, flags) : -1;

	return cpu >= 0 ? cpu : idle_among(p, mask_of_domain(domain), prev, flags);
}

/* Takes an idle CPU of a domain for whatever waits; -1 if there is none. */
static s32 take_any_idle(u32 domain)
{
	struct bpf_cpumask *fast = unlike_cpus ? fast_mask_of_domain(domain) : NULL, *mask = mask_of_domain(domain);
	s32 cpu = fast ? scx_bpf_pick_idle_cpu(cast_mask(fast), 0) : -1;

	if (cpu >= 0)
		return cpu;
	return mask ? scx_bpf_pick_idle_cpu(cast_mask(mask), 0) : -1;
}

static __always_inline bool is_fast(s32 cpu)
{
	return !unlike_cpus || cpu_fast[within(cpu, WARMQ_MAX_CPUS)];
}

/* Any idle CPU of a domain for p, or -1. (Who may not run everywhere cannot know whether there is one for others.) */
static s32 any_idle_in(struct task_struct *p, u32 domain, s32 prev)
{
	s32 cpu = idle_in_domain(p, domain, prev, 0);

	if (cpu < 0 && p->nr_cpus_allowed >= nr_cpus)
		clear_may_idle(domain);
	return cpu;
}

/* Whether any CPU of a place is idle, without taking it. */
static bool is_any_idle_at(u32 place)
{
	struct bpf_cpumask *mask = mask_of_domain(domain_of_place(place));
	const struct cpumask *idle;
	bool any;

	if (!mask)
		return false;
	idle = scx_bpf_get_idle_cpumask();
	any = place_is_cpu ? bpf_cpumask_test_cpu(place, idle) : bpf_cpumask_intersects(cast_mask(mask), idle);
	scx_bpf_put_idle_cpumask(idle);
	return any;
}

/* Whether all CPUs of the core of `cpu` are idle. */
static bool is_core_idle(s32 cpu)
{
	const struct cpumask *cores = scx_bpf_get_idle_smtmask();
	bool idle = bpf_cpumask_test_cpu(cpu, cores);

	scx_bpf_put_idle_cpumask(cores);
	return idle;
}

/*
 * An idle CPU of a domain; -1 if there is none. Two tasks on one core slow each other down, so an idle
 * core comes before the warm data of a CPU whose sibling is busy. `how` tells where it was found.
 */
static s32 find_idle_in(struct task_struct *p, u32 domain, s32 prev, enum counter *how)
{
	bool was_here = domain_of_cpu(prev) == domain, whole;
	s32 cpu;

	*how = COUNT_IDLE_PREVIOUS;
	if (!domain_of(domain)->may_idle)
		return -1;
	whole = was_here && (!smt_enabled || is_core_idle(prev));
	if (whole && is_fast(prev) && take_idle(p, prev))
		return prev;
	if (unlike_cpus) {
		*how = COUNT_IDLE_DOMAIN;
		cpu = idle_among(p, fast_mask_of_domain(domain), prev, smt_enabled ? SCX_PICK_IDLE_CORE : 0);
		if (cpu >= 0)
			return cpu;
		*how = COUNT_IDLE_PREVIOUS;
		if (whole && take_idle(p, prev))
			return prev;
	}
	if (smt_enabled) {
		*how = COUNT_IDLE_DOMAIN;
		cpu = idle_in_domain(p, domain, prev, SCX_PICK_IDLE_CORE);
		if (cpu >= 0)
			return cpu;
		*how = COUNT_IDLE_PREVIOUS;
		if (was_here && take_idle(p, prev))
			return prev;
		*how = COUNT_IDLE_CORE;
		cpu = was_here ? idle_in_core(p, prev) : -1;
		if (cpu >= 0)
			return cpu;
	}
	*how = COUNT_IDLE_DOMAIN;
	return any_idle_in(p, domain, prev);
}

/* An idle CPU for an unmanaged task under the cache of `prev`, where it is queued or was last, or -1. */
static s32 find_idle_near(struct task_struct *p, s32 prev, enum counter *how)
{
	return find_idle_in(p, domain_of_cpu(prev), prev, how);
}

/* Whether an idle CPU of another node takes unmanaged tasks that wait in a domain. */
static bool gives_far(u32 domain)
{
	u64 since = domain_of(domain)->beside_idle_since;

	return warmq_crosses_node(&policy, entity_of(domain)->queued, time_of(domain)->cpus,
				  since ? elapsed(since, scx_bpf_now()) : 0);
}

/* Whether an idle CPU of domain `to` takes unmanaged tasks that wait in another. */
static bool gives_to(u32 from, u32 to)
{
	return entity_of(from)->queued && (node_of(from) == node_of(to) || gives_far(from));
}

/* An idle CPU under the nearest other cache that has one, of the node of `domain` or, `far`, of another; or -1. */
static s32 idle_nearest(struct task_struct *p, u32 domain, s32 prev, bool far, u64 flags)
{
	s32 idle = -1;
	u32 i;

	bpf_for(i, 1, nr_domains) {
		u32 other = near_domain(domain, i);

		if (idle >= 0)
			break;
		if (far == (node_of(other) != node_of(domain)) && (*idle_word(other) & 1ULL << other % 64))
			idle = flags ? idle_in_domain(p, other, prev, flags) : any_idle_in(p, other, prev);
	}
	return idle;
}

/*
 * Whether p, which waits or was last in a domain, may go to another node. Who may not run everywhere under its cache waits for
 * less than that has: it goes anywhere, too.
 */
static bool goes_far(struct task_struct *p, u32 domain)
{
	struct bpf_cpumask *mask = mask_of_domain(domain);

	return gives_far(domain) || !mask || !bpf_cpumask_subset(cast_mask(mask), p->cpus_ptr);
}

/* See idle_elsewhere(). */
__noinline s32 look_elsewhere(struct task_struct *p __arg_trusted, s32 cpu, bool far)
{
	u32 domain = domain_of_cpu(cpu);
	s32 idle = -1;
	int i;

	bpf_rcu_read_lock(); /* the verifier checks a global function as if it had any caller */
	bpf_for(i, 0, nr_nodes > 1 ? 4 : 2) {
		bool other_node = i >= 2, whole = i % 2 == 0;

		if (idle >= 0 || (other_node && !far && !goes_far(p, domain)))
			break;
		if (smt_enabled || !whole)
			idle = idle_nearest(p, domain, cpu, other_node, whole ? SCX_PICK_IDLE_CORE : 0);
	}
	bpf_rcu_read_unlock();
	return idle;
}

/*
 * An idle CPU under another cache for p, which waits or was last at `cpu`; or -1. One of another node only if it may be `far`
 * or goes_far().
 */
static __always_inline s32 idle_elsewhere(struct task_struct *p, s32 cpu, bool far)
{
	if (nr_domains == 1 || !may_idle_elsewhere(domain_of_cpu(cpu)))
		return -1;
	return look_elsewhere(p, cpu, far);
}

/* An idle CPU to kick for an unmanaged task that was queued at `cpu`; -1 if there is none. */
static __always_inline s32 idle_to_kick(struct task_struct *p, s32 cpu)
{
	u32 domain = domain_of_cpu(cpu);
	bool there = domain_of(domain)->may_idle;
	s32 idle = there && smt_enabled ? idle_in_domain(p, domain, cpu, SCX_PICK_IDLE_CORE) : -1;

	if (there && idle < 0)
		idle = any_idle_in(p, domain, cpu);
	return idle >= 0 ? idle : idle_elsewhere(p, cpu, false);
}

/* The same as find_idle_near(), under its cache or another; of any node, if p is `new`: it has no memory yet. */
static s32 find_idle(struct task_struct *p, s32 prev, bool new, enum counter *how)
{
	s32 cpu = find_idle_near(p, prev, how);

	if (cpu >= 0)
		return cpu;
	*how = COUNT_IDLE_ELSEWHERE;
	return idle_elsewhere(p, prev, new);
}

/* An idle CPU at a group's home. */
static s32 idle_at_home(struct task_struct *p, u32 home, s32 prev)
{
	enum counter how = COUNT_IDLE_PREVIOUS;
	s32 cpu;

	if (place_is_cpu)
		cpu = take_idle(p, home) ? (s32)home : -1;
	else
		cpu = find_idle_in(p, home, prev, &how);
	if (cpu >= 0)
		count_which(how);
	return cpu;
}

/* Any CPU of a place, to queue at when none there is idle. */
static s32 cpu_of_place(u32 place, s32 prev)
{
	struct bpf_cpumask *mask;
	u32 cpu;

	if (place_of_cpu(prev) == place)
		return prev;
	if (place_is_cpu)
		return place;
	mask = mask_of_domain(place);
	cpu = mask ? bpf_cpumask_any_distribute(cast_mask(mask)) : nr_cpus;
	return cpu < nr_cpus ? (s32)cpu : prev;
}

/*
 * An idle CPU of a domain, else of the nearest that has one, without the mark that it is idle; -1 if there is none. Those of
 * other nodes come last, and only if it may be `far`.
 */
static s32 idle_near(u32 domain, bool far)
{
	s32 idle = take_any_idle(domain);
	u32 i;

	bpf_for(i, 1, nr_domains) {
		u32 other = near_domain(domain, i);

		if (idle >= 0 || (!far && node_of(other) != node_of(domain)))
			break;
		idle = take_any_idle(other);
	}
	return idle;
}
