/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tasks and entities: a task joins an entity when it becomes runnable, is charged while it runs,
 * goes to another entity when its fragment or its affinity changes, and leaves when it sleeps. Its
 * own state needs no lock: what wakes it or changes it holds its pi_lock, and while it is queued or
 * runs its callbacks hold the lock of its run queue. Sums that tasks share are changed atomically.
 */
#pragma once

static __always_inline u64 own_weight(struct task_struct *p)
{
	return p->scx.weight * (WARMQ_WEIGHT_NICE_0 / 100);
}

/*
 * The verifier checks a function that is not static once, not at each call. That makes loading
 * faster where several callbacks call it. Such a function must return a number.
 */

/*
 * Adds `weight` of a task with `vtime` to `entity` and its domain, and corrects both V for its lag.
 * `tasks`: 1 for one that joins, 0 for a change of its weight.
 */
__noinline int add_weight(struct task_state *t __arg_nonnull, u32 entity, u64 vtime, u64 weight, u32 tasks)
{
	struct warmq_entity *e = &entity_of(entity)->time;
	struct warmq_domain *d = time_of(domain_of_entity(entity));

	__sync_fetch_and_add(&d->avg_vruntime, warmq_avg_add(&policy, d->avg_vruntime, d->weight, warmq_vruntime(e, vtime), weight));
	__sync_fetch_and_add(&e->avg_vruntime, warmq_avg_add(&policy, e->avg_vruntime, e->weight, vtime, weight));
	__sync_fetch_and_add(&e->weight, weight);
	__sync_fetch_and_add(&d->weight, weight);
	if (tasks) {
		__sync_fetch_and_add(&e->runnable, tasks);
		__sync_fetch_and_add(&d->runnable, tasks);
	}
	if (is_group(entity))
		__sync_fetch_and_add(&place_of(group_of(entity)->home)->managed, weight);
	t->weight += weight;
	return 0;
}

/* The reverse of add_weight(). */
__noinline int sub_weight(struct task_state *t __arg_nonnull, u32 entity, u64 vtime, u64 weight, u32 tasks)
{
	struct warmq_entity *e = &entity_of(entity)->time;
	struct warmq_domain *d = time_of(domain_of_entity(entity));

	__sync_fetch_and_add(&d->avg_vruntime, warmq_avg_sub(&policy, d->avg_vruntime, d->weight, warmq_vruntime(e, vtime), weight));
	__sync_fetch_and_add(&e->avg_vruntime, warmq_avg_sub(&policy, e->avg_vruntime, e->weight, vtime, weight));
	__sync_fetch_and_sub(&e->weight, weight);
	__sync_fetch_and_sub(&d->weight, weight);
	if (tasks) {
		__sync_fetch_and_sub(&e->runnable, tasks);
		__sync_fetch_and_sub(&d->runnable, tasks);
	}
	if (is_group(entity))
		__sync_fetch_and_sub(&place_of(group_of(entity)->home)->managed, weight);
	t->weight -= weight;
	return 0;
}

/*
 * The weight of a task in `entity`, whose domain has `own` of it so far. Tasks that may run on one CPU
 * only compete for that one, so none of them is too heavy.
 */
static __always_inline u64 usable_weight(struct task_struct *p, u32 entity, u64 flat, u64 own)
{
	struct warmq_domain *domain = time_of(domain_of_entity(entity));
	u64 cpus_there = cpus_of_entity(entity);

	if (cpus_there > p->nr_cpus_allowed)
		cpus_there = p->nr_cpus_allowed;
	return warmq_usable_weight(domain, domain->runnable + !own, cpus_there, flat, own);
}

/* The vtime of a task that joins `entity`. `awake`: it comes from another, without having slept. */
__noinline u64 place(struct task_state *t __arg_nonnull, u32 entity, u64 weight, bool awake, bool keeps_lag)
{
	u32 domain = domain_of_entity(entity);
	struct warmq_domain *time = time_of(domain);
	struct warmq_entity *members = &entity_of(entity)->time;
	u64 vruntime = t->vruntime;

	if (members->weight) {
		if (!awake && !t->fresh && t->entity == entity)
			return warmq_place_among(&policy, members, cpus_of_entity(entity), t->vtime, weight, keeps_lag);
		/* Its members may have had CPUs to themselves for long. */
		warmq_clamp_entity(&policy, members, time, warmq_succession(&policy, is_group(entity)));
	}
	if (t->fresh)
		vruntime = time->avg_vruntime;
	else if (t->domain != domain)
		vruntime = warmq_migrate_vruntime(vruntime, time_of(t->domain)->avg_vruntime, time->avg_vruntime);
	if (awake)
		vruntime = warmq_place_awake(&policy, time, vruntime, weight);
	else
		vruntime = warmq_place_wakeup(&policy, time, vruntime, weight, keeps_lag);
	return warmq_join(members, vruntime);
}

/*
 * Counts a runnable task in its cgroup with the weight that its nice value has now. Returns its weight among
 * all tasks.
 */
static __always_inline u64 count_own_weight(struct task_struct *p, struct task_state *t)
{
	u64 own = own_weight(p), before = t->own_weight;

	if (own != before && t->cgroup) {
		/* First the new weight, so that a cgroup that stays active is never left. */
		cgroup_add(t->cgroup, own);
		if (before)
			cgroup_sub(t->counted_cgroup, before);
	}
	t->own_weight = own;
	t->counted_cgroup = t->cgroup;
	return t->cgroup ? flat_weight(t->cgroup, own) : own;
}

/*
 * Counts a task in another cgroup from now on. It stays in its entity, where its weight is brought up to date
 * when it is queued again or goes on.
 */
static __always_inline void move_to_cgroup(struct task_state *t, u32 cgroup)
{
	if (t->own_weight) {
		cgroup_add(cgroup, t->own_weight);
		cgroup_sub(t->counted_cgroup, t->own_weight);
		t->counted_cgroup = cgroup;
	}
	t->cgroup = cgroup;
}

/* Makes a task runnable in `entity`. `keeps_lag`: it slept long enough to keep positive lag. */
static __always_inline void join(struct task_struct *p, struct task_state *t, u32 entity, bool keeps_lag)
{
	bool awake = t->own_weight;
	u64 weight = usable_weight(p, entity, count_own_weight(p, t), 0);

	t->vtime = place(t, entity, weight, awake, keeps_lag);
	if (t->fresh) /* what changes seldom is not written */
		t->fresh = false;
	t->entity = entity;
	t->domain = domain_of_entity(entity);
	add_weight(t, entity, t->vtime, weight, 1);
}

/* Takes a task out of its entity, and remembers its vruntime. */
static __always_inline void leave(struct task_state *t)
{
	if (!t->weight)
		return;
	t->vruntime = warmq_vruntime(&entity_of(t->entity)->time, t->vtime);
	t->domain = domain_of_entity(t->entity);
	sub_weight(t, t->entity, t->vtime, t->weight, 1);
	t->weight = 0;
}

/*
 * As leave(), for a task that sleeps or is no longer ours: it no longer counts in its cgroups,
 * either.
 */
static __always_inline void leave_all(struct task_state *t)
{
	leave(t);
	if (t->counted_cgroup)
		cgroup_sub(t->counted_cgroup, t->own_weight);
	t->counted_cgroup = 0;
	t->own_weight = 0;
}

/*
 * Brings the weight of a queued or running task up to date: its nice value or its cgroup's siblings
 * may have changed.
 */
static __always_inline void reweigh(struct task_struct *p, struct task_state *t)
{
	u64 weight;

	if (!t->weight)
		return;
	weight = usable_weight(p, t->entity, count_own_weight(p, t), t->weight);
	if (weight == t->weight)
		return;
	if (weight > t->weight)
		add_weight(t, t->entity, t->vtime, weight - t->weight, 0);
	else
		sub_weight(t, t->entity, t->vtime, t->weight - weight, 0);
}

/* Gives a runnable task an earlier vruntime in its domain, and corrects V for that. */
static __always_inline void set_back(struct task_state *t, u64 vruntime, u64 clamped)
{
	u64 weight = t->weight;

	if (clamped == vruntime)
		return;
	sub_weight(t, t->entity, t->vtime, weight, 0);
	t->vtime -= vruntime - clamped;
	add_weight(t, t->entity, t->vtime, weight, 0);
}

/* Clamps the negative lag of a task that ran and is queued again; see warmq_clamp_queued(). */
static __always_inline void clamp_task(struct task_state *t)
{
	u64 vruntime = warmq_vruntime(&entity_of(t->entity)->time, t->vtime);

	set_back(t, vruntime, warmq_clamp_queued(time_of(domain_of_entity(t->entity)), vruntime));
}

/* For a running task while nobody waits for its CPU; see warmq_forgive(). */
static __always_inline void forgive(struct task_state *t)
{
	u64 vruntime = warmq_vruntime(&entity_of(t->entity)->time, t->vtime);
	struct warmq_domain *domain = time_of(domain_of_entity(t->entity));

	set_back(t, vruntime, warmq_forgive(&policy, domain, vruntime, t->weight));
}

/* The slice of the next task of a domain, in ns. */
static __always_inline u64 slice_in(u32 domain)
{
	struct warmq_domain *time = time_of(domain);

	return warmq_slice(&policy, time->runnable, time->cpus);
}

/* The slice of a runnable task, in ns. */
static __always_inline u64 slice_of(struct task_state *t)
{
	return slice_in(domain_of_entity(t->entity));
}

/* The deadline of a runnable task that may run for `slice` ns, in its domain's time. */
static __always_inline u64 deadline_of(struct task_state *t, u64 slice)
{
	u64 vruntime = warmq_vruntime(&entity_of(t->entity)->time, t->vtime);
	u64 request = warmq_request(t->expected, t->ran, slice);

	return warmq_deadline(time_of(domain_of_entity(t->entity)), vruntime, t->weight, request);
}

/* V of its domain minus the vruntime of a task; 0 if it is in no entity. */
static __always_inline s64 lag_of(struct task_state *t)
{
	if (!t->weight)
		return 0;
	return time_of(domain_of_entity(t->entity))->avg_vruntime - warmq_vruntime(&entity_of(t->entity)->time, t->vtime);
}

/* A deadline in the time of its domain, as the queue of an entity has it; the reverse of warmq_vruntime(). */
static __always_inline u64 in_entity(u32 entity, u64 deadline)
{
	return deadline - entity_of(entity)->time.shift;
}

/* Notes what a wakeup on this CPU must be earlier than: p runs here. */
static __always_inline void note_deadline(struct task_struct *p, struct task_state *t, struct cpu_state *c)
{
	c->run_deadline = deadline_of(t, p->scx.slice);
}

/* The same for a task that is not counted: as if it had neither lag nor cgroup. */
static __always_inline void note_uncounted(struct task_struct *p, struct task_state *t, struct cpu_state *c, u32 cpu)
{
	struct warmq_domain *domain = time_of(domain_of_cpu(cpu));
	u64 request = warmq_request(t->expected, t->ran, p->scx.slice);

	c->run_deadline = warmq_deadline(domain, domain->avg_vruntime, own_weight(p), request);
}

static __always_inline void count_place(struct task_state *t, struct cpu_state *c, u32 cpu, u64 ran)
{
	struct group_state *group;

	if (!is_group(t->entity)) {
		c->counters[COUNT_RAN_UNMANAGED_NS] += ran;
		return;
	}
	group = group_of(t->entity);
	group->ran_at = scx_bpf_now();
	if (group->home == place_of_cpu(cpu)) {
		c->counters[COUNT_RAN_HOME_NS] += ran;
		__sync_fetch_and_add(&group->ran_home, ran);
	} else {
		c->counters[COUNT_RAN_AWAY_NS] += ran;
		__sync_fetch_and_add(&group->ran_away, ran);
	}
}

/* A task ran for `ran` ns. */
static __always_inline void note_run(struct task_state *t, u32 cpu, u64 ran)
{
	struct cpu_state *c = cpu_of(cpu);

	t->charged += ran;
	t->ran += ran;
	c->batch_used += ran;
	if (sets_speed)
		c->busy += ran;
	charge_quota(t->cgroup, ran);
	count_place(t, c, cpu, ran);
}

/*
 * Charges the running task for what it ran since the last charge: advances its vruntime and the V
 * of its entity and domain. The run time is the kernel's own, which is brought up to date before
 * each callback that charges; so it includes switches.
 */
static __always_inline void charge(struct task_struct *p, struct task_state *t, u32 cpu)
{
	struct warmq_entity *entity;
	struct warmq_domain *domain;
	u64 ran = p->se.sum_exec_runtime - t->charged, weight, of_entity, delta;

	if (!t->running || (s64)ran <= 0)
		return;
	note_run(t, cpu, ran);
	if (!t->weight) /* it was not counted while it ran: see count_late() */
		return;
	if (t->owes) /* as if it had run so long itself */
		ran += __sync_lock_test_and_set(&t->owes, 0);
	entity = &entity_of(t->entity)->time;
	domain = time_of(domain_of_entity(t->entity));
	weight = t->weight;
	t->vtime += warmq_delta_vruntime(ran, weight);
	/*
	 * While a group moves, the sums may be too small for a moment: never less than the task's
	 * own weight.
	 */
	of_entity = entity->weight > weight ? entity->weight : weight;
	delta = warmq_delta_vruntime(ran, of_entity);
	__sync_fetch_and_add(&entity->avg_vruntime, delta);
	weight = domain->weight > of_entity ? domain->weight : of_entity;
	if (weight != of_entity) /* else one division is enough: the entity is alone in its domain */
		delta = warmq_delta_vruntime(ran, weight);
	__sync_fetch_and_add(&domain->avg_vruntime, delta);
}

/*
 * The parent of a task that exits, or the leader of its process if it is another thread, is charged for
 * its debt when it runs next; see warmq_debt(). Not whoever took over an orphan.
 */
static __always_inline void leave_debt(struct task_struct *p, struct task_state *t)
{
	bool leads = p->pid == p->tgid;
	struct task_struct *debtor = leads ? p->real_parent : p->group_leader;
	struct task_state *state;
	u64 debt;

	if (!t->weight || !debtor)
		return;
	debt = warmq_debt(entity_of(t->entity)->time.avg_vruntime, t->vtime, t->weight);
	if (!debt || (leads && debtor->pid != t->parent))
		return;
	state = task_of(debtor);
	if (state)
		__sync_fetch_and_add(&state->owes, debt);
}

/* What `was` noted of a dispatch queue no longer holds. */
static __always_inline void uncount(u64 was)
{
	if ((u32)was == NO_ENTITY)
		return;
	__sync_fetch_and_sub(&entity_of((u32)was)->queued, 1);
	if (is_group((u32)was))
		group_of((u32)was)->first_known = 0;
}

/* Notes that a group may have queued tasks at `place`. */
static void mark_group(u32 place, u32 number)
{
	struct place_state *there = place_of(place);
	u32 word = within(number / 64, WARMQ_MAX_GROUPS / 64);
	u64 bit = 1ULL << (number % 64);

	if (!(there->groups[word] & bit))
		add_bits_in_order(&there->groups[word], bit);
	if (!(there->words >> word & 1))
		add_bits_in_order(&there->words, 1ULL << word);
}

/* Notes that a group has none there. Who clears a bit looks once more whether it should be set: see is_group_there(). */
static void unmark_group(u32 place, u32 number)
{
	struct place_state *there = place_of(place);
	u32 word = within(number / 64, WARMQ_MAX_GROUPS / 64);

	take_bits_in_order(&there->groups[word], 1ULL << (number % 64));
	if (there->groups[word])
		return;
	take_bits_in_order(&there->words, 1ULL << word);
	if (there->groups[word])
		add_bits_in_order(&there->words, 1ULL << word);
}

/* Counts a task that is about to be put into the dispatch queue of `entity`. */
static __always_inline void count_queued(u32 entity, u64 now)
{
	struct entity_state *state = entity_of(entity);
	u32 before;

	state->queued_last = now / COMING_UNIT;
	before = __sync_fetch_and_add(&state->queued, 1); /* in order: see note_idle() */
	barrier_var(before);
	if (!is_group(entity))
		return;
	if (!before)
		group_of(entity)->queued_since = now;
	mark_group(group_of(entity)->home, entity - WARMQ_GROUP_BASE);
}

/*
 * Notes that enqueue is about to put a task into the dispatch queue of `entity`. Who changes the note takes the one
 * before back, so that each that was counted is taken back once, also where release() and enqueue meet.
 */
static __always_inline void note_queued(struct task_state *t, u32 entity, u64 now)
{
	count_queued(entity, now);
	uncount(__sync_lock_test_and_set(&t->queued_in, (u64)entity));
}

/*
 * The same for release(), whose note differs from those of enqueue by `mark`. Returns false if the task is queued already:
 * enqueue was faster.
 */
static __always_inline bool note_released(struct task_state *t, u32 entity, u64 mark, u64 now)
{
	count_queued(entity, now);
	if (__sync_val_compare_and_swap(&t->queued_in, (u64)NO_ENTITY, mark | entity) == NO_ENTITY)
		return true;
	uncount(entity);
	return false;
}

/* Notes that a task with that deadline comes into the queue of an entity; see first_of_group(). */
static __always_inline void note_first(u32 entity, u64 deadline)
{
	struct group_state *group = group_of(entity);

	if (is_group(entity) && group->first_known && warmq_before(deadline, group->first))
		group->first = deadline;
}

/* Notes that a task is no longer in a dispatch queue. */
static __always_inline void unqueue(struct task_state *t)
{
	if ((u32)t->queued_in != NO_ENTITY)
		uncount(__sync_lock_test_and_set(&t->queued_in, (u64)NO_ENTITY));
}

/* The same, unless somebody has changed the note since. */
static __always_inline void unqueue_noted(struct task_state *t, u64 note)
{
	if (__sync_val_compare_and_swap(&t->queued_in, note, (u64)NO_ENTITY) == note)
		uncount(note);
}

/* Notes that a task is no longer in the queue of a CPU that idled. */
static __always_inline void leave_found(struct task_state *t)
{
	if (!t->found_by)
		return;
	__sync_fetch_and_sub(&cpu_of(t->found_by - 1)->found, 1);
	t->found_by = 0;
}

/* Notes that a task is about to be put into the queue of `cpu`, which idles. It leaves that when it runs, or is queued elsewhere. */
static __always_inline void note_found(struct task_state *t, u32 cpu)
{
	leave_found(t);
	__sync_fetch_and_add(&cpu_of(cpu)->found, 1);
	t->found_by = cpu + 1;
}

/* A task is in no dispatch queue any more, of whatever kind. */
static __always_inline void leave_queues(struct task_state *t)
{
	unqueue(t);
	leave_found(t);
}
