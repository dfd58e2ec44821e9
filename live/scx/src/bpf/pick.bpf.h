/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which task a CPU takes: the next of its batch, else the first of the entity with the least pick key.
 */
#pragma once

/* Whether the kernel says which task is the first of a queue. (7.0 may say that a queue is empty that is not.) */
static __always_inline bool can_peek(void)
{
	return bpf_ksym_exists(scx_bpf_dsq_peek) && LINUX_KERNEL_VERSION >= KERNEL_VERSION(7, 1, 0);
}

/* The deadline of the first task in an entity's queue, or `otherwise` if it is empty. */
__noinline u64 first_deadline(u32 entity, u64 otherwise)
{
	struct task_struct *p = NULL;
	struct bpf_iter_scx_dsq it;

	if (can_peek()) { /* without the queue's lock */
		bpf_rcu_read_lock(); /* the verifier checks a global function as if it had any caller */
		p = scx_bpf_dsq_peek(dsq_of(entity));
		if (p)
			otherwise = p->scx.dsq_vtime;
		bpf_rcu_read_unlock();
		return otherwise;
	}
	if (!bpf_iter_scx_dsq_new(&it, dsq_of(entity), 0))
		p = bpf_iter_scx_dsq_next(&it);
	if (p)
		otherwise = p->scx.dsq_vtime;
	bpf_iter_scx_dsq_destroy(&it);
	return otherwise;
}

/*
 * The deadline of the first task in a group's queue. It is kept, so that of many groups only those are looked into whose
 * queue has changed: a task that leaves makes it unknown (uncount()), and one that comes lowers it. Of two CPUs, one that
 * looks into the queue may miss what the other is just putting there: then the key is too late until the next task leaves.
 */
static __always_inline u64 first_of_group(u32 entity, u64 otherwise)
{
	struct group_state *group = group_of(entity);

	if (!group->first_known) {
		group->first_known = 1;
		group->first = first_deadline(entity, otherwise);
	}
	return group->first;
}

/* The pick key of an entity for a CPU that would run its task with `deadline`. */
static __always_inline u64 pick_key_of(u32 entity, u64 deadline)
{
	struct warmq_domain *domain = time_of(domain_of_entity(entity));

	return warmq_pick_key(&policy, &entity_of(entity)->time, domain, warmq_succession(&policy, is_group(entity)), deadline);
}

/* The same for the first task in its queue. */
__noinline u64 next_pick_key(u32 entity)
{
	u64 otherwise = entity_of(entity)->time.avg_vruntime;

	return pick_key_of(entity, is_group(entity) ? first_of_group(entity, otherwise) : first_deadline(entity, otherwise));
}

/*
 * The entity with the least pick key so far. The key is computed only when there is a second
 * candidate.
 */
struct first {
	u64 key;
	u32 entity;
	bool looked;
};

static void consider(struct first *first, u32 entity)
{
	u64 key;

	if (!entity_of(entity)->queued)
		return;
	if (first->entity == NO_ENTITY) {
		first->entity = entity;
		return;
	}
	if (!first->looked) {
		first->key = next_pick_key(first->entity);
		first->looked = true;
	}
	key = next_pick_key(entity);
	if (warmq_before(key, first->key)) {
		first->entity = entity;
		first->key = key;
	}
}

static void consider_groups(struct first *first, u32 place)
{
	u32 i, number = 0;

	bpf_for(i, 0, WARMQ_MAX_GROUPS) {
		number = group_after(place, number);
		if (!number)
			break;
		if (is_group_there(place, number))
			consider(first, WARMQ_GROUP_BASE + number);
	}
}

/*
 * The entity with the least pick key for a CPU, of those with queued tasks. NO_ENTITY: nothing
 * waits.
 */
static __always_inline u32 first_entity(u32 cpu)
{
	struct first first = { .entity = NO_ENTITY };

	consider(&first, domain_of_cpu(cpu));
	consider(&first, WARMQ_PINNED_BASE + cpu);
	if (groups_used > 1 && place_of(place_of_cpu(cpu))->words)
		consider_groups(&first, place_of_cpu(cpu));
	return first.entity;
}

/*
 * Whether a real-time task is about to run on a CPU that idles. The kernel (up to 6.19, prev_balance()) asks for a task for
 * it all the same, and what it got would wait in the local queue, where nobody else may take it. (Where the CPU comes from
 * a task of ours, the kernel calls cpu_release.) From 7.0 on it asks beside a real-time task only for its server of
 * sched_ext, which gives our tasks some time of that CPU, and which an empty answer stops (__pick_task_dl()).
 */
static __always_inline bool is_realtime_next(u32 cpu)
{
	const struct rq *rq = bpf_per_cpu_ptr(&runqueues, cpu);

	return rq && !bpf_core_field_exists(rq->ext_server) && rq->rt.rt_nr_running;
}

/* Whether the task that ran so far comes before the next one of `entity`, and keeps the CPU. */
static __always_inline bool goes_first(struct task_state *t, u32 entity)
{
	u64 deadline;

	if (t->yields || !t->weight)
		return false;
	deadline = in_entity(t->entity, deadline_of(t, slice_of(t)));
	if (t->entity == entity)
		return warmq_before(deadline, first_deadline(entity, deadline));
	return warmq_before(pick_key_of(t->entity, deadline), next_pick_key(entity));
}

static __always_inline void go_on(struct task_struct *prev, struct task_state *t, struct cpu_state *c)
{
	t->yields = false;
	t->stoppable = false;
	if (!t->weight) {
		scx_bpf_task_set_slice(prev, policy.slice_max);
		return;
	}
	scx_bpf_task_set_slice(prev, slice_of(t));
	note_deadline(prev, t, c);
}

static __always_inline void note_batch(struct cpu_state *c, u32 entity)
{
	if (c->batch_entity != entity) {
		c->batch_entity = entity;
		c->batch_runs = 0;
		c->batch_used = 0;
		if (is_group(entity)) {
			count(COUNT_BATCHES);
			__sync_fetch_and_add(&group_of(entity)->batches, 1);
		}
	}
	c->batch_runs++;
	if (is_group(entity)) {
		count(COUNT_BATCHED_RUNS);
		__sync_fetch_and_add(&group_of(entity)->runs, 1);
	}
}

/* Whether the group that this CPU works on goes on. */
static __always_inline bool batch_goes_on(struct cpu_state *c, u32 cpu)
{
	u32 entity = c->batch_entity;

	return is_group(entity) && entity_of(entity)->queued && group_of(entity)->home == place_of_cpu(cpu) &&
	       warmq_batch_goes_on(&policy, c->batch_used, true);
}

static __always_inline bool take(struct cpu_state *c, u32 entity)
{
	if (!scx_bpf_dsq_move_to_local(dsq_of(entity), 0))
		return false;
	if (c->batch_entity == entity && is_group(entity) && c->batch_used >= policy.batch_budget)
		c->batch_entity = NO_ENTITY; /* it was picked again: a new batch */
	note_batch(c, entity);
	c->counters[COUNT_DISPATCHED]++;
	return true;
}

/* Takes a task that woke while `cpu` was idle; another CPU may do that. */
static __always_inline bool take_found(u32 cpu)
{
	return cpu_of(cpu)->found && scx_bpf_dsq_move_to_local(dsq_of(FOUND_BASE + cpu), 0);
}

/* Takes a task that has waited for too long. Who finds the queue empty says so; if one comes just then, the timer says so again. */
static __always_inline bool take_late(u32 domain)
{
	struct domain_state *state = domain_of(domain);

	if (!state->late)
		return false;
	if (scx_bpf_dsq_move_to_local(dsq_of(LATE_BASE + domain), 0))
		return true;
	if (!scx_bpf_dsq_nr_queued(dsq_of(LATE_BASE + domain)))
		state->late = 0;
	return false;
}

/* The timer found a queue that another domain or CPU does not serve soon: takes one of its unmanaged tasks. */
static __always_inline bool pull_requested(u32 domain)
{
	u32 from = domain_of(domain)->pull_from;

	if (!from)
		return false;
	domain_of(domain)->pull_from = 0;
	if (from > FOUND_BASE ? !take_found(from - 1 - FOUND_BASE) : !scx_bpf_dsq_move_to_local(dsq_of(from - 1), 0))
		return false;
	count(COUNT_UNMANAGED_MOVES);
	return true;
}

/* The same, and notes whether a task is about to come. In this order: one that comes in between is taken. */
static bool take_or_note(struct cpu_state *c, u32 entity, bool *comes)
{
	*comes |= is_coming(entity);
	return take(c, entity);
}

/*
 * The picked entity had no task for this CPU: another CPU was faster, or its tasks may not run
 * here. Takes any other.
 */
static bool take_any(struct cpu_state *c, u32 cpu, bool *comes)
{
	u32 place = place_of_cpu(cpu), i, number = 0;

	if (take(c, WARMQ_PINNED_BASE + cpu) || take_or_note(c, domain_of_cpu(cpu), comes))
		return true;
	bpf_for(i, 0, WARMQ_MAX_GROUPS) {
		number = group_after(place, number);
		if (!number)
			break;
		if (entity_of(WARMQ_GROUP_BASE + number)->queued && take_or_note(c, WARMQ_GROUP_BASE + number, comes))
			return true;
	}
	return false;
}
