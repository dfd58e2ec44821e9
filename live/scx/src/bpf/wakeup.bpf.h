/* SPDX-License-Identifier: GPL-2.0-only */
/* Wakeup preemption: how often a task sleeps, and whether its wakeup preempts. */
#pragma once

/* Whether a task that wakes and its waker, the current task, wake each other in turn, and nobody else. */
static __always_inline bool is_partner(struct task_struct *p, struct task_state *t, bool woken)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	struct task_state *w;
	u32 turns;

	if (!woken || bpf_in_interrupt() || waker->pid == p->pid)
		return false;
	w = task_of(waker);
	if (!w)
		return false;
	turns = warmq_in_turn(t->turns, t->waker == waker->pid, w->waker == p->pid);
	if (t->turns != turns) /* what changes seldom is not written */
		t->turns = turns;
	if (t->waker != waker->pid)
		t->waker = waker->pid;
	return t->turns >= WARMQ_PARTNERS && w->turns >= WARMQ_PARTNERS - 1;
}

/* Whether any task waits for a CPU. */
static __always_inline bool waits_at(u32 cpu)
{
	return entity_of(domain_of_cpu(cpu))->queued || entity_of(WARMQ_PINNED_BASE + cpu)->queued ||
	       group_waits(place_of_cpu(cpu));
}

/*
 * The CPU where an unmanaged task that wakes runs at once; -1 if there is none. Partners belong under
 * one cache: such a task looks for an idle CPU beside its waker first. If there is none, and the waker is
 * about to sleep, it takes the waker's place, unless somebody waits for that.
 */
static __always_inline s32 select_unmanaged(struct task_struct *p, struct task_state *t, s32 prev, u64 wake_flags)
{
	s32 here = bpf_get_smp_processor_id(), cpu;
	enum counter how;

	if (nr_domains > 1 && is_partner(p, t, wake_flags & SCX_WAKE_TTWU)) {
		if (domain_of_cpu(here) != domain_of_cpu(prev))
			prev = here;
		cpu = find_idle_near(p, prev, &how);
		if (cpu < 0 && (wake_flags & SCX_WAKE_SYNC) && bpf_cpumask_test_cpu(here, p->cpus_ptr) && !waits_at(here))
			return here;
		if (cpu >= 0) {
			count_which(how);
			return cpu;
		}
	}
	cpu = find_idle(p, prev, wake_flags & SCX_WAKE_FORK, &how);
	if (cpu >= 0)
		count_which(how);
	return cpu;
}

/* How often the firmness of an inferred member is lowered, in ns. */
#define FADES_EVERY 1000000000ULL

/* A task that its inferred group has not woken for long leaves it. */
static void fade(struct task_state *t, u64 now)
{
	t->faded_at = now;
	if (t->firmness)
		t->firmness = warmq_fade(t->firmness);
	else
		enter_unnamed(t, 0, now);
}

/* Begins a new period, if it is time: the count of sleeps starts from 0. */
static __always_inline void begin_period(struct task_struct *p, struct task_state *t, u32 cpu, u64 now)
{
	if (elapsed(t->period_at, now) < policy.period)
		return;
	t->period_at = now;
	t->sleeps = 0;
	look_for_label(p, t, cpu);
	look_for_usual_group(p, t, cpu, now);
	if (is_inferred(t) && elapsed(t->faded_at, now) >= FADES_EVERY)
		fade(t, now);
}

/*
 * Wakeup preemption: preempts what runs on `cpu` if p, which slept for `slept` ns and whose deadline
 * in its domain is `deadline`, may.
 */
static __always_inline void preempt(struct task_struct *p, struct task_state *t, u32 cpu, u64 deadline, u64 slept, u64 now)
{
	struct cpu_state *c = cpu_of(cpu);
	struct warmq_wakeup wakeup = {
		.waking = deadline,
		.running = c->run_deadline,
		.sleeps = t->sleeps,
		.weight = t->weight,
		.slept = slept,
		.since = elapsed(c->preempted_at, now),
		.outranks = c->run_idle && !is_idle_class(p, t),
	};

	if (!c->runs)
		return;
	switch (warmq_wakeup_preempts(&policy, &wakeup)) {
	case WARMQ_GRANTED:
		c->preempted_at = now;
		count(COUNT_GRANTED);
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		break;
	case WARMQ_TOO_CLOSE:
		count(COUNT_TOO_CLOSE);
		break;
	case WARMQ_TOO_SOON:
		count(COUNT_TOO_SOON);
		break;
	case WARMQ_SHORT_SLEEP:
		count(COUNT_SHORT_SLEEP);
		break;
	}
}
