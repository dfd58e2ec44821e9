/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A task's way through entities: it joins one when it becomes runnable, is charged while it runs, changes it when its fragment
 * or its affinity changed, and leaves it when it sleeps. Its callbacks are ordered by its run queue's lock, so its state needs none;
 * what tasks share is added to atomically.
 */
#pragma once

static __always_inline u64 own_weight(struct task_struct *p)
{
	return p->scx.weight * (WARMQ_WHOLE / 100);
}

/*
 * Functions that are not static are verified once and by themselves, and not at each call: what is called from several callbacks
 * makes loading faster that way. They return a number, because they must.
 */

/* `weight` of a task comes to `entity`, which stands at `vtime` there. */
__noinline int add_weight(struct task_state *t __arg_nonnull, u32 entity, u64 vtime, u64 weight)
{
	struct warmq_entity *e = &entity_of(entity)->time;
	struct warmq_domain *d = &domain_of(domain_of_entity(entity))->time;

	__sync_fetch_and_add(&d->clock, warmq_mean_with(&policy, d->clock, d->weight, warmq_position(e, vtime), weight));
	__sync_fetch_and_add(&e->clock, warmq_mean_with(&policy, e->clock, e->weight, vtime, weight));
	__sync_fetch_and_add(&e->weight, weight);
	__sync_fetch_and_add(&d->weight, weight);
	if (is_group(entity)) {
		u32 home = group_of(entity)->home;
		u32 bit = entity - GROUP_BASE;

		__sync_fetch_and_add(&place_of(home)->managed, weight);
		__sync_fetch_and_or(&place_of(home)->groups[within(bit / 64, MAX_GROUPS / 64)], 1ULL << (bit % 64));
	}
	t->weight += weight;
	return 0;
}

__noinline int sub_weight(struct task_state *t __arg_nonnull, u32 entity, u64 vtime, u64 weight)
{
	struct warmq_entity *e = &entity_of(entity)->time;
	struct warmq_domain *d = &domain_of(domain_of_entity(entity))->time;

	__sync_fetch_and_add(&d->clock, warmq_mean_without(&policy, d->clock, d->weight, warmq_position(e, vtime), weight));
	__sync_fetch_and_add(&e->clock, warmq_mean_without(&policy, e->clock, e->weight, vtime, weight));
	__sync_fetch_and_sub(&e->weight, weight);
	__sync_fetch_and_sub(&d->weight, weight);
	if (is_group(entity))
		__sync_fetch_and_sub(&place_of(group_of(entity)->home)->managed, weight);
	t->weight -= weight;
	return 0;
}

/* Makes a task runnable in `entity`; `counts`: its sleep was long enough to earn credit. */
static __always_inline void join(struct task_struct *p, struct task_state *t, u32 entity, bool counts)
{
	u32 domain = domain_of_entity(entity);
	struct warmq_domain *time = &domain_of(domain)->time;
	bool awake = t->own_weight;
	u64 position = t->position, weight;

	if (t->fresh)
		position = warmq_first_position(&policy, time);
	else if (t->domain != domain)
		position = warmq_emigrate(position, domain_of(t->domain)->time.clock, time->clock);
	if (!t->own_weight) {
		t->own_weight = own_weight(p);
		t->counted_cgroup = t->cgroup;
		if (t->cgroup)
			cgroup_add(t->cgroup, t->own_weight);
	}
	weight = t->cgroup ? flat_weight(t->cgroup, t->own_weight) : t->own_weight;
	t->fresh = false;
	t->domain = domain;
	if (awake)
		position = warmq_keep_place(&policy, time, position, weight);
	else
		position = warmq_place(&policy, time, position, counts);
	p->scx.dsq_vtime = warmq_join(&entity_of(entity)->time, position);
	t->entity = entity;
	add_weight(t, entity, p->scx.dsq_vtime, weight);
}

/* Takes it out again; where it stood is remembered. */
static __always_inline void leave(struct task_struct *p, struct task_state *t)
{
	if (!t->weight)
		return;
	t->position = warmq_position(&entity_of(t->entity)->time, p->scx.dsq_vtime);
	t->domain = domain_of_entity(t->entity);
	sub_weight(t, t->entity, p->scx.dsq_vtime, t->weight);
	t->weight = 0;
}

/* It sleeps, or is no longer ours: its cgroups have it no longer, either. */
static __always_inline void leave_all(struct task_struct *p, struct task_state *t)
{
	leave(p, t);
	if (t->counted_cgroup)
		cgroup_sub(t->counted_cgroup, t->own_weight);
	t->counted_cgroup = 0;
	t->own_weight = 0;
}

/* A task goes on in its entity with the weight that it has now: its nice or its cgroup's siblings may have changed. */
static __always_inline void reweigh(struct task_struct *p, struct task_state *t)
{
	u64 own = own_weight(p), weight = own;

	if (t->cgroup) {
		if (own != t->own_weight) {
			cgroup_add(t->counted_cgroup, own);
			cgroup_sub(t->counted_cgroup, t->own_weight);
		}
		weight = flat_weight(t->cgroup, own);
	}
	t->own_weight = own;
	if (weight == t->weight)
		return;
	if (weight > t->weight)
		add_weight(t, t->entity, p->scx.dsq_vtime, weight - t->weight);
	else
		sub_weight(t, t->entity, p->scx.dsq_vtime, t->weight - weight);
}

/* A task that ran and is to wait owes no more than it can pay in time. */
static __always_inline void forgive(struct task_struct *p, struct task_state *t)
{
	u64 position = warmq_position(&entity_of(t->entity)->time, p->scx.dsq_vtime), weight = t->weight;
	u64 forgiven = warmq_forgive(&domain_of(domain_of_entity(t->entity))->time, position);

	if (forgiven == position)
		return;
	sub_weight(t, t->entity, p->scx.dsq_vtime, weight);
	p->scx.dsq_vtime -= position - forgiven;
	add_weight(t, t->entity, p->scx.dsq_vtime, weight);
}

static __always_inline void count_place(struct task_state *t, struct cpu_state *c, u32 cpu, u64 ran)
{
	struct group_state *group;

	if (!is_group(t->entity)) {
		c->counters[COUNT_RAN_UNMANAGED] += ran;
		return;
	}
	group = group_of(t->entity);
	if (group->home == place_of_cpu(cpu)) {
		c->counters[COUNT_RAN_HOME] += ran;
		__sync_fetch_and_add(&group->ran_home, ran);
	} else {
		c->counters[COUNT_RAN_AWAY] += ran;
		__sync_fetch_and_add(&group->ran_away, ran);
	}
}

/*
 * The running task pays for what it ran since it was last charged; so do its entity and its domain. What it ran is what the
 * kernel says, which has brought it up to date before each callback that charges: so switches are paid for, too.
 */
static __always_inline void charge(struct task_struct *p, struct task_state *t, u32 cpu, u64 now)
{
	struct cpu_state *c = cpu_of(cpu);
	struct warmq_entity *entity;
	struct warmq_domain *domain;
	u64 ran = p->se.sum_exec_runtime - t->charged, weight;

	if (!t->weight || !t->running || (s64)ran <= 0)
		return;
	t->charged += ran;
	entity = &entity_of(t->entity)->time;
	domain = &domain_of(domain_of_entity(t->entity))->time;
	weight = t->weight;
	p->scx.dsq_vtime += warmq_virtual(ran, weight);
	/* The whole is no less than its part, whatever a moving group does to the sums just now. */
	weight = entity->weight > weight ? entity->weight : weight;
	__sync_fetch_and_add(&entity->clock, warmq_virtual(ran, weight));
	weight = domain->weight > weight ? domain->weight : weight;
	__sync_fetch_and_add(&domain->clock, warmq_virtual(ran, weight));
	c->run_position = warmq_position(entity, p->scx.dsq_vtime);
	c->run_charged = now;
	c->batch_used += ran;
	count_place(t, c, cpu, ran);
}

/* It is no longer in a dispatch queue. */
static __always_inline void unqueue(struct task_state *t)
{
	if (t->queued_in == NO_ENTITY)
		return;
	__sync_fetch_and_sub(&entity_of(t->queued_in)->queued, 1);
	if (is_group(t->queued_in))
		__sync_fetch_and_sub(&managed_queued, 1);
	t->queued_in = NO_ENTITY;
}
