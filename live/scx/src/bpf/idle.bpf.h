/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Idle CPUs: the previous one if its whole core is idle, then an idle core under its cache, then the
 * previous one beside a busy sibling, then its sibling, then one under its cache, then any. A member of a
 * group looks at its home only.
 */
#pragma once

static __always_inline bool take_idle(const struct task_struct *p, s32 cpu)
{
	return bpf_cpumask_test_cpu(cpu, p->cpus_ptr) && scx_bpf_test_and_clear_cpu_idle(cpu);
}

/*
 * Notes that a CPU goes idle or no longer is. While `may_idle` of a domain is 0, nobody needs to ask the
 * kernel for an idle CPU there. It changes seldom, so that the CPUs of a domain do not take its line from
 * each other: who goes idle sets it if it is not set, and who asks in vain clears it (none_idle()). A CPU is
 * not forgotten for that: one that goes idle is first in the kernel's mask, and then looks at `may_idle`
 * (update_idle); who asked in vain first clears `may_idle`, and then looks at the mask once more.
 *
 * Nor is a task: a CPU that goes idle first sets `may_idle` and then looks for queued tasks; who queues a task
 * first raises `queued` and then looks at `may_idle`.
 *
 * The kernel does not say so of a CPU that was woken, found nothing to run, and idles on: see
 * idles_on(). Nor does it while it bypasses schedulers, as when it suspends. What is missed is seen at the next
 * round of the balance timer. (__scx_update_idle() of kernel/sched/ext_idle.c)
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
		domain_of(domain_of_cpu(cpu))->may_idle = 1;
}

/* A CPU that idled found no task. */
static __always_inline void idles_on(s32 cpu)
{
	if (!domain_of(domain_of_cpu(cpu))->may_idle)
		domain_of(domain_of_cpu(cpu))->may_idle = 1;
}

/* An idle CPU of the core of `cpu`, or -1. */
static s32 idle_in_core(const struct task_struct *p, s32 cpu)
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

/* An idle CPU of a domain, or -1; `flags` may ask for one whose whole core is idle. */
static s32 idle_in_domain(struct task_struct *p, u32 domain, s32 prev, u64 flags)
{
	struct bpf_cpumask *mask = mask_of_domain(domain);

	if (!mask)
		return -1;
	if (p->nr_cpus_allowed >= nr_cpus)
		return scx_bpf_pick_idle_cpu(cast_mask(mask), flags);
	return scx_bpf_select_cpu_and(p, prev, 0, cast_mask(mask), flags);
}

/*
 * An idle CPU of a domain after all, or -1: the kernel knew none a moment ago. Until one idles there nobody need ask
 * again. (Who may not run everywhere cannot know.)
 */
static s32 none_idle(struct task_struct *p, u32 domain, s32 prev)
{
	u64 before;
	s32 cpu;

	if (p->nr_cpus_allowed < nr_cpus)
		return -1;
	before = __sync_lock_test_and_set(&domain_of(domain)->may_idle, 0); /* in order: see note_idle() */
	barrier_var(before);
	cpu = idle_in_domain(p, domain, prev, 0);
	if (cpu >= 0)
		domain_of(domain)->may_idle = 1;
	return cpu;
}

/* Any idle CPU of a domain for p, or -1. */
static s32 any_idle_in(struct task_struct *p, u32 domain, s32 prev)
{
	s32 cpu = idle_in_domain(p, domain, prev, 0);

	return cpu >= 0 ? cpu : none_idle(p, domain, prev);
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
	bool was_here = domain_of_cpu(prev) == domain;
	s32 cpu;

	*how = COUNT_IDLE_PREVIOUS;
	if (!domain_of(domain)->may_idle)
		return -1;
	if (was_here && (!smt_enabled || is_core_idle(prev)) && take_idle(p, prev))
		return prev;
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

/* An idle CPU to kick for an unmanaged task that was queued at `cpu`; -1 if there is none. */
static s32 idle_to_kick(struct task_struct *p, s32 cpu)
{
	u32 domain = domain_of_cpu(cpu);
	bool there = domain_of(domain)->may_idle;
	s32 idle = there && smt_enabled ? idle_in_domain(p, domain, cpu, SCX_PICK_IDLE_CORE) : -1;

	if (there && idle < 0)
		idle = any_idle_in(p, domain, cpu);
	if (idle < 0 && nr_domains > 1)
		idle = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	return idle;
}

/* The same as find_idle_near(), under its cache or any other. */
static s32 find_idle(struct task_struct *p, s32 prev, enum counter *how)
{
	s32 cpu = find_idle_near(p, prev, how);

	if (cpu >= 0 || nr_domains == 1)
		return cpu;
	*how = COUNT_IDLE_ELSEWHERE;
	return scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
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

/* An idle CPU of a domain, else of any, without the mark that it is idle; -1 if there is none. */
static s32 idle_near(u32 domain)
{
	struct bpf_cpumask *mask = mask_of_domain(domain);
	s32 idle = mask ? scx_bpf_pick_idle_cpu(cast_mask(mask), 0) : -1;
	u32 i;

	bpf_for(i, 1, nr_domains) {
		if (idle >= 0)
			break;
		mask = mask_of_domain((domain + i) % nr_domains);
		idle = mask ? scx_bpf_pick_idle_cpu(cast_mask(mask), 0) : -1;
	}
	return idle;
}
