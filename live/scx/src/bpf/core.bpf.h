/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cores of several CPUs: a task that runs beside busy siblings goes to a core where fewer are busy. Nothing else
 * moves a task that runs and does not sleep.
 */
#pragma once

/*
 * How many of the other CPUs of the core of `cpu` are busy. (A global function, so that the verifier does not follow the
 * sum.)
 */
__noinline u32 busy_siblings(u32 cpu)
{
	const struct cpumask *idle = scx_bpf_get_idle_cpumask();
	u32 sibling = cpu_sibling[within(cpu, WARMQ_MAX_CPUS)], busy = 0;
	int i;

	bpf_for(i, 0, WARMQ_CORE_CPUS) {
		if (sibling == cpu)
			break;
		if (!bpf_cpumask_test_cpu(sibling, idle))
			busy++;
		sibling = cpu_sibling[within(sibling, WARMQ_MAX_CPUS)];
	}
	scx_bpf_put_idle_cpumask(idle);
	return busy;
}

static u32 first_of_core(u32 cpu)
{
	u32 sibling = cpu_sibling[within(cpu, WARMQ_MAX_CPUS)], first = cpu;
	int i;

	bpf_for(i, 0, WARMQ_CORE_CPUS) {
		if (sibling < first)
			first = sibling;
		sibling = cpu_sibling[within(sibling, WARMQ_MAX_CPUS)];
	}
	return first;
}

/*
 * Whether a task could go to `cpu`: a member of a group only at its home. Where homes are CPUs, may_take_group() says
 * whether its group comes along.
 */
static bool is_room_for(const struct task_struct *p, struct task_state *t, u32 cpu)
{
	if (t->entity >= WARMQ_PINNED_BASE && !(is_group(t->entity) && place_of_cpu(cpu) == group_of(t->entity)->home))
		return false;
	return bpf_cpumask_test_cpu(cpu, p->cpus_ptr);
}

/* Whether the group of a task that runs `here`, at its home, could live on `cpu` instead. */
static bool may_take_group(struct task_struct *p, struct task_state *t, u32 here, u32 cpu)
{
	struct group_state *group = group_of(t->group);

	return t->entity == WARMQ_GROUP_BASE + group_number(t) && group->home == here && !group->narrow && fits(p, cpu) &&
	       warmq_group_comes_along(entity_of(t->entity)->time.weight, load_of_place(here), load_of_place(cpu));
}

/* Whether any core idles. */
static bool any_idle_core(void)
{
	const struct cpumask *cores = scx_bpf_get_idle_smtmask();
	bool any = !bpf_cpumask_empty(cores);

	scx_bpf_put_idle_cpumask(cores);
	return any;
}

/* The idle CPU where a task that runs on `here` gains most, counted from 1; the first of equals. 0: there is none. */
__noinline u32 find_room(struct task_struct *p __arg_trusted, struct task_state *t __arg_nonnull, u32 here)
{
	u32 busy = busy_siblings(here), cpu, room = 0, most = 0;
	const struct cpumask *idle;

	/* Beside one task, only an idle core is better. */
	if (!busy || (busy == 1 && !any_idle_core()) || !bpf_cpumask_test_cpu(here, p->cpus_ptr))
		return 0;
	idle = scx_bpf_get_idle_cpumask();
	bpf_for(cpu, 0, nr_cpus) {
		u32 gain;

		if (!bpf_cpumask_test_cpu(cpu, idle))
			continue;
		if (place_is_cpu && is_group(t->entity) ? !may_take_group(p, t, here, cpu) : !is_room_for(p, t, cpu))
			continue;
		gain = warmq_core_gain(busy, busy_siblings(cpu), reach_of(domain_of_cpu(cpu), domain_of_cpu(here)));
		if (gain > most) {
			most = gain;
			room = cpu + 1;
		}
	}
	scx_bpf_put_idle_cpumask(idle);
	return room;
}

/*
 * At the tick of a task: whether it gives up `here` for a CPU on a better core, which is noted, or becomes the home of
 * its group. Of siblings whose ticks come at the same time, one changes left_at, and only its task leaves.
 */
static bool leaves_core(struct task_struct *p, struct task_state *t, u32 here, u64 now)
{
	u64 *left_at = &cpu_of(first_of_core(here))->left_at, before = *left_at;
	struct cpu_state *c = cpu_of(here);
	u32 room = find_room(p, t, here);
	enum warmq_reach reach;

	if (!room) {
		c->crowded_since = 0;
		return false;
	}
	if (!c->crowded_since)
		c->crowded_since = now;
	reach = reach_of(domain_of_cpu(room - 1), domain_of_cpu(here));
	if (!warmq_leaves_core(&policy, reach, elapsed(c->crowded_since, now), elapsed(before, now)))
		return false;
	if (__sync_val_compare_and_swap(left_at, before, now) != before)
		return false;
	c->crowded_since = 0;
	if (place_is_cpu && is_group(t->entity))
		rehome(group_number(t), room - 1);
	else
		t->goes_to = room;
	return true;
}

/*
 * Queues a task that gives up its CPU where only the CPU that it goes to takes it, and kicks that. Returns false if that
 * is no longer idle.
 */
static bool go_to_room(struct task_struct *p, struct task_state *t, u64 enq_flags)
{
	u32 cpu = t->goes_to - 1;

	t->goes_to = 0;
	if (!is_room_for(p, t, cpu) || !scx_bpf_test_and_clear_cpu_idle(cpu))
		return false;
	note_found(t, cpu);
	scx_bpf_dsq_insert(p, dsq_of(FOUND_BASE + cpu), slice_in(domain_of_cpu(cpu)), enq_flags);
	scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	count(COUNT_CORE_MOVES);
	return true;
}
