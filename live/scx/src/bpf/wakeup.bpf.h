/* SPDX-License-Identifier: GPL-2.0-only */
/* Wakeup preemption: how often a task sleeps, and whether its wakeup preempts. */
#pragma once

/* How often the firmness of an inferred member is lowered, in ns. */
#define FADES_EVERY 1000000000ULL

/* A task that its inferred group has not woken for long leaves it. */
static void fade(struct task_state *t, u64 now)
{
	t->faded_at = now;
	if (t->firmness)
		t->firmness = warmq_fade(t->firmness);
	else
		enter_group(t, 0, now);
}

/* Begins a new period, if it is time: the count of sleeps starts from 0. */
static __always_inline void begin_period(struct task_struct *p, struct task_state *t, u32 cpu, u64 now)
{
	if (now - t->period_at < policy.period)
		return;
	t->period_at = now;
	t->sleeps = 0;
	look_for_label(p, t, cpu);
	if (t->inferred && now - t->faded_at >= FADES_EVERY)
		fade(t, now);
}

/* Wakeup preemption: preempts what runs on `cpu` if p, which slept for `slept` ns, may. */
static __always_inline void preempt(struct task_struct *p, struct task_state *t, u32 cpu, u64 slept, u64 now)
{
	struct cpu_state *c = cpu_of(cpu);
	u64 weight = c->run_weight, waking, running;

	if (!weight)
		return;
	waking = warmq_vruntime(&entity_of(t->entity)->time, p->scx.dsq_vtime);
	running = c->run_vruntime + warmq_delta_vruntime(now - c->run_charged, weight);
	switch (warmq_wakeup_preempts(&policy, waking, running, t->sleeps, t->weight, slept,
			       now - c->preempted_at)) {
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
