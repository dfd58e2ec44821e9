/* SPDX-License-Identifier: GPL-2.0-only */
/* Waits for a CPU: how many were how long, and which were longer than promised. */
#pragma once

/* Records a wait that was longer than promised, so that it can be explained. */
static void note_overdue(struct task_struct *p, struct task_state *t, u64 now, u64 bound, u64 domain_weight)
{
	struct overdue_wait *wait = &overdue[within(__sync_fetch_and_add(&nr_overdue, 1), KEPT_OVERDUE)];

	count(COUNT_OVER_BOUND);
	wait->at = now;
	wait->waited = now - t->queued_at;
	wait->bound = bound;
	wait->weight = t->weight;
	wait->domain_weight = domain_weight;
	wait->pid = p->pid;
	wait->cpu = scx_bpf_task_cpu(p);
	wait->entity = t->entity;
	wait->cpus_allowed = p->nr_cpus_allowed;
	bpf_probe_read_kernel_str(wait->comm, sizeof(wait->comm), p->comm);
}

/* The class of a wait; see WARMQ_WAIT_CLASSES. */
static __always_inline u32 wait_class(u64 waited)
{
	u64 units = waited / 1024;
	u32 bits, class = 0;

	/* The number of its bits; most waits are short. */
	if (!units)
		return 0;
	if (units < 4)
		return units == 1 ? 1 : 2;
	for (bits = 16; bits; bits /= 2) {
		if (units >> bits) {
			units >>= bits;
			class += bits;
		}
	}
	class++;
	return class < WARMQ_WAIT_CLASSES ? class : WARMQ_WAIT_CLASSES - 1;
}

/* Compares a wait with the bound that is promised. */
__noinline int judge_long_wait(struct task_struct *p __arg_trusted, struct task_state *t __arg_nonnull, u64 now)
{
	struct cpu_state *c = cpu_of(scx_bpf_task_cpu(p));
	u64 waited = elapsed(t->queued_at, now), bound;
	struct warmq_domain then;

	then = *time_of(t->domain);
	if (then.weight < (u64)t->queued_weight * QUEUED_WEIGHT)
		then.weight = (u64)t->queued_weight * QUEUED_WEIGHT;
	if (then.runnable < t->queued_runnable)
		then.runnable = t->queued_runnable;
	then.cpus = cpus_of_entity(t->entity);
	bound = warmq_wait_bound(&policy, &then, t->weight);
	if (waited > c->counters[COUNT_LONGEST_WAIT_NS]) {
		c->counters[COUNT_LONGEST_WAIT_NS] = waited;
		c->counters[COUNT_LONGEST_BOUND_NS] = bound;
	}
	if (waited > bound)
		note_overdue(p, t, now, bound, then.weight);
	return 0;
}

/* Counts a wait, and computes its bound if it was long. */
static __always_inline void judge_wait(struct task_struct *p, struct task_state *t, struct cpu_state *c, u64 now)
{
	u64 waited = elapsed(t->queued_at, now);
	u32 class = wait_class(waited);

	c->waits[class]++;
	if (is_group(t->entity))
		__sync_fetch_and_add(&group_of(t->entity)->waits[class], 1);
	if (waited > c->counters[COUNT_LONGEST_WAIT_NS] || waited >= policy.period)
		judge_long_wait(p, t, now);
}
