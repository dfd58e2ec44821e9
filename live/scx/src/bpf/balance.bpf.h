/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Balance: whole groups move, at first none that runs. Where no group can move, unmanaged tasks do. If the
 * queue of a group has not been empty for long, it moves although it runs, or is split if it is too large.
 * A CPU that would go idle balances for itself; a timer balances among busy places.
 */
#pragma once

struct balance_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct balance_timer);
} balance_timers SEC(".maps");

/* The timer is armed, or about to be. */
u32 balancing;

/* Arms the timer, which stopped because nothing ran and nothing waited. */
__noinline int resume_balance(void)
{
	u32 zero = 0;
	struct balance_timer *value = bpf_map_lookup_elem(&balance_timers, &zero);

	if (value && !__sync_lock_test_and_set(&balancing, 1))
		bpf_timer_start(&value->timer, balance_interval, 0);
	return 0;
}

/*
 * Called once a task is counted in a queue, and at its ticks. (In order: the timer first says that it stops, and then looks for
 * such tasks.)
 */
static __always_inline void keep_balancing(void)
{
	if (!balancing)
		resume_balance();
}

/* Whether anything waits at `place` that could go to `calm`. */
static bool has_to_give(u32 place, u32 calm)
{
	u32 domain = domain_of_place(place);

	return (domain != domain_of_place(calm) && gives_to(domain, domain_of_place(calm))) || group_waits(place);
}

/*
 * The busiest of the places of the node of `calm` or, `far`, of the others that have something to give; `calm` itself if
 * there is none.
 */
__noinline u32 busiest_place(u32 calm, bool far)
{
	u32 place, best = calm;

	bpf_for(place, 0, nr_places) {
		if (place == calm || is_far(place, calm) != far || !place_cpus(place))
			continue;
		if (best != calm &&
		    !warmq_less_loaded(load_of_place(best), place_cpus(best), load_of_place(place), place_cpus(place)))
			continue;
		if (has_to_give(place, calm))
			best = place;
	}
	return best;
}

/* Whether a place is a better home than another. */
static bool is_calmer(u32 place, u32 than, u64 now)
{
	return warmq_calmer(load_of_place(place), place_cpus(place), core_load(place, now), load_of_place(than),
			    place_cpus(than), core_load(than, now));
}

/* The best home of a node. */
__noinline u32 calmest_place(u32 node, u64 now)
{
	u32 place, best = 0;
	bool found = false;

	bpf_for(place, 0, nr_places) {
		if (node_of(domain_of_place(place)) != node || !place_cpus(place))
			continue;
		if (!found || is_calmer(place, best, now))
			best = place;
		found = true;
	}
	return best;
}

/*
 * Whether a group is too much for its home: its queue has not been empty for `patience`. One whose tasks
 * wait for moments only is best left where its data is.
 */
static bool is_short_of_cpus(u32 number, u64 now)
{
	return elapsed(group_of(number)->queued_since, now) >= policy.patience;
}

/* Whether a group leaves its node. */
static bool group_gives_far(u32 number, u64 now)
{
	u32 entity = WARMQ_GROUP_BASE + number;

	return warmq_crosses_node(&policy, entity_of(entity)->queued, cpus_of_entity(entity),
				  elapsed(group_of(number)->queued_since, now));
}

/*
 * A group with queued tasks at `place`: the one whose move, `far` to another node, corrects `excess` best, of those that do
 * not run or are short of CPUs; or, `to_split`, the heaviest that is short of CPUs. 0: there is none.
 */
__noinline u32 best_group(u32 place, u64 excess, bool to_split, bool far, u64 now)
{
	u32 i, number = 0, best = 0;
	u64 best_weight = 0;

	bpf_for(i, 0, WARMQ_MAX_GROUPS) {
		struct group_state *group;
		u64 weight;

		number = group_after(place, number);
		if (!number)
			break;
		group = group_of(number);
		weight = entity_of(WARMQ_GROUP_BASE + number)->time.weight;
		if (group->home != place || !entity_of(WARMQ_GROUP_BASE + number)->queued)
			continue;
		if (to_split ? weight <= best_weight : group->narrow || !warmq_better_group(weight, best_weight, excess))
			continue;
		if ((to_split || group->running) && !is_short_of_cpus(number, now))
			continue;
		if (far && !group_gives_far(number, now))
			continue;
		best = number;
		best_weight = weight;
	}
	return best;
}

/*
 * Moves `runnable` tasks of `weight` with `vruntime` to another domain, with their lag. Returns their
 * vruntime there.
 */
static u64 migrate_weight(struct warmq_domain *from, struct warmq_domain *to, u64 vruntime, u64 weight, u64 runnable)
{
	u64 there = warmq_migrate_vruntime(vruntime, from->avg_vruntime, to->avg_vruntime);

	__sync_fetch_and_add(&from->avg_vruntime, warmq_avg_sub(&policy, from->avg_vruntime, from->weight, vruntime, weight));
	__sync_fetch_and_add(&to->avg_vruntime, warmq_avg_add(&policy, to->avg_vruntime, to->weight, there, weight));
	__sync_fetch_and_sub(&from->weight, weight);
	__sync_fetch_and_add(&to->weight, weight);
	__sync_fetch_and_sub(&from->runnable, runnable);
	__sync_fetch_and_add(&to->runnable, runnable);
	return there;
}

/* Gives a group another home. Its tasks are in its own queue, so none of them is touched. */
static void rehome(u32 number, u32 to)
{
	struct group_state *group = group_of(number);
	struct warmq_entity *entity = &entity_of(WARMQ_GROUP_BASE + number)->time;
	u32 from = group->home, from_domain = domain_of_place(from), to_domain = domain_of_place(to);
	u64 weight = entity->weight, runnable = entity->runnable, vruntime = warmq_entity_vruntime(entity);

	__sync_fetch_and_sub(&place_of(from)->managed, weight);
	__sync_fetch_and_add(&place_of(to)->managed, weight);
	if (from_domain != to_domain)
		entity->shift += migrate_weight(time_of(from_domain), time_of(to_domain), vruntime, weight,
						runnable) - vruntime;
	group->home = to & (WARMQ_MAX_CPUS - 1);
	mark_group(to, number);
	__sync_fetch_and_add(&group->moves, 1);
	count(COUNT_GROUP_MOVES);
}

/*
 * What should be done for `calm`, and (`what`) with which group, or with which domain's unmanaged
 * tasks; of its node or, `far`, of the others. `idle`: for a CPU of it that has no work, so that what the others there do
 * does not count.
 */
__noinline enum warmq_relief relief_for(u32 calm, bool idle, bool far, u32 *what __arg_nonnull, u64 now)
{
	u64 *imbalanced_since = &place_of(calm)->imbalanced_since[within(far, 2)];
	u32 busy = busiest_place(calm, far), group, domain;
	u64 load, least, few, excess = 0, managed = 0, unmanaged = 0, task = 0, movable = 0, lasted;
	enum warmq_relief relief;

	load = load_of_place(busy);
	least = idle ? 0 : load_of_place(calm);
	few = idle ? 1 : place_cpus(calm);
	if (busy == calm || !warmq_imbalanced(&policy, load, place_cpus(busy), least, few)) {
		*imbalanced_since = 0;
		return WARMQ_LEAVE;
	}
	if (!*imbalanced_since)
		*imbalanced_since = now;
	domain = domain_of_place(busy);
	excess = warmq_excess(load, place_cpus(busy), least, few);
	managed = place_of(busy)->managed;
	if (domain != domain_of_place(calm) && gives_to(domain, domain_of_place(calm)))
		unmanaged = entity_of(domain)->time.weight;
	if (entity_of(domain)->time.runnable)
		task = unmanaged / entity_of(domain)->time.runnable;
	group = managed ? best_group(busy, excess, false, far, now) : 0;
	if (group)
		movable = entity_of(WARMQ_GROUP_BASE + group)->time.weight;
	lasted = elapsed(*imbalanced_since, now);
	relief = warmq_relieve(&policy, excess, managed, unmanaged, task, movable, lasted);
	*what = relief == WARMQ_MOVE_UNMANAGED ? domain : group;
	if (relief == WARMQ_SPLIT_GROUP) {
		*what = best_group(busy, excess, true, far, now);
		if (!*what)
			relief = WARMQ_LEAVE;
	}
	return relief;
}

/* Kicks an idle CPU of a domain, else of the nearest that has one; see idle_near(). */
static void wake_near(u32 domain, bool far)
{
	s32 idle = idle_near(domain, far);

	if (idle >= 0)
		scx_bpf_kick_cpu(idle, SCX_KICK_IDLE);
}

/* Kicks an idle CPU of a place. Returns whether there was one. */
static bool wake_at(u32 place)
{
	s32 idle;

	if (place_is_cpu)
		idle = scx_bpf_test_and_clear_cpu_idle(place) ? (s32)place : -1;
	else
		idle = take_any_idle(place);
	if (idle < 0)
		return false;
	scx_bpf_kick_cpu(idle, SCX_KICK_IDLE);
	return true;
}

/*
 * Kicks idle CPUs at the home of a group that has just come there, one for each task that waits, but for those that are
 * `taken`.
 */
static void wake_for(u32 number, u64 taken)
{
	u64 waiting = entity_of(WARMQ_GROUP_BASE + number)->queued;
	u32 i;

	bpf_for(i, 0, WARMQ_MAX_CPUS)
		if (i + taken >= waiting || !wake_at(group_of(number)->home))
			break;
}

/*
 * Whether another place is a better home for a group than `place`, a CPU of which idles: the tasks of the
 * groups that live here may only sleep for a moment. An idle CPU there is kicked, which then takes the group.
 */
static bool leaves_it_to_another(u32 place, u64 now)
{
	u32 calm = calmest_place(node_of(domain_of_place(place)), now);

	return is_calmer(calm, place, now) && wake_at(calm);
}

/* Takes work from a busier place for a CPU without any. Returns whether it got a task. */
static bool pull_for_place(u32 cpu, bool far, u64 now)
{
	u32 what = 0;
	bool took;

	switch (relief_for(place_of_cpu(cpu), true, far, &what, now)) {
	case WARMQ_MOVE_GROUP:
		if (leaves_it_to_another(place_of_cpu(cpu), now))
			return false;
		rehome(what, place_of_cpu(cpu));
		took = scx_bpf_dsq_move_to_local(dsq_of(WARMQ_GROUP_BASE + what), 0);
		wake_for(what, took);
		return took;
	case WARMQ_MOVE_UNMANAGED:
		if (!scx_bpf_dsq_move_to_local(dsq_of(what), 0))
			return false;
		count(COUNT_UNMANAGED_MOVES);
		return true;
	case WARMQ_SPLIT_GROUP:
		if (!scx_bpf_dsq_move_to_local(dsq_of(WARMQ_GROUP_BASE + what), 0))
			return false;
		__sync_fetch_and_add(&group_of(what)->splits, 1);
		count(COUNT_GROUP_SPLITS);
		return true;
	default:
		return false;
	}
}

/* Takes a waiting unmanaged task of the nearest other domain of the node or, `far`, of another for a CPU without work. */
static bool pull_unmanaged(u32 domain, bool far)
{
	u32 i;

	bpf_for(i, 1, nr_domains) {
		u32 other = near_domain(domain, i);

		if (far != (node_of(other) != node_of(domain)))
			continue;
		if (gives_to(other, domain) && scx_bpf_dsq_move_to_local(dsq_of(other), 0)) {
			count(COUNT_UNMANAGED_MOVES);
			return true;
		}
	}
	return false;
}

__noinline int pull_from(u32 cpu, bool far)
{
	if (groups_used > 1 && pull_for_place(cpu, far, scx_bpf_now()))
		return true;
	return nr_domains > 1 && pull_unmanaged(domain_of_cpu(cpu), far);
}

/* Whatever waits in the own node comes before all that waits in others. */
static bool pull(u32 cpu)
{
	return pull_from(cpu, false) || (nr_nodes > 1 && pull_from(cpu, true));
}

/* A difference that was seen so often in a row is not due to a task that just joined or left. */
#define ERROR_IS_REAL 8

/*
 * A sum that was made anew, and by how much the kept one differs from it; used by correct_sums()
 * only.
 */
struct sum_error {
	u64 sum;
	u64 error; /* wraps */
	u64 seen;  /* how often in a row */
};

struct sum_error domain_errors[WARMQ_MAX_DOMAINS];
struct sum_error runnable_errors[WARMQ_MAX_DOMAINS];
struct sum_error place_errors[WARMQ_MAX_CPUS];

/* What must be added to a sum; 0 if it is right, or the error may not be real. */
static u64 correction(struct sum_error *error, u64 kept)
{
	u64 difference = error->sum - kept;

	error->seen = difference == error->error ? error->seen + 1 : 0;
	error->error = difference;
	error->sum = 0;
	if (error->seen < ERROR_IS_REAL)
		return 0;
	error->seen = 0;
	return difference;
}

static void correct(struct sum_error *error, u64 *kept)
{
	u64 difference = correction(error, *kept);

	if (difference)
		__sync_fetch_and_add(kept, difference);
}

/* Adds what an entity has to the new sums of a domain. */
static void sum_up(u32 entity, u32 domain)
{
	struct warmq_entity *time = &entity_of(entity)->time;

	domain_errors[within(domain, WARMQ_MAX_DOMAINS)].sum += time->weight;
	runnable_errors[within(domain, WARMQ_MAX_DOMAINS)].sum += time->runnable;
}

/*
 * A group that moves while its members join and leave may leave some weight behind in a sum. So
 * they are summed anew, and a difference is corrected once it has been the same for several rounds. A
 * new sum alone is no proof: tasks join and leave while it is made.
 */
__noinline int correct_sums(void)
{
	u32 domain, place, number, cpu;

	bpf_for(domain, 0, nr_domains)
		sum_up(domain, domain);
	bpf_for(cpu, 0, nr_cpus)
		sum_up(WARMQ_PINNED_BASE + cpu, domain_of_cpu(cpu));
	bpf_for(number, 1, groups_used) {
		u32 home = group_of(number)->home;

		place_errors[within(home, WARMQ_MAX_CPUS)].sum += entity_of(WARMQ_GROUP_BASE + number)->time.weight;
		sum_up(WARMQ_GROUP_BASE + number, domain_of_place(home));
	}
	bpf_for(domain, 0, nr_domains) {
		u32 number = within(domain, WARMQ_MAX_DOMAINS);
		u64 tasks = correction(&runnable_errors[number], time_of(number)->runnable);

		correct(&domain_errors[number], &time_of(number)->weight);
		if (tasks)
			__sync_fetch_and_add(&time_of(number)->runnable, tasks);
	}
	bpf_for(place, 0, nr_places)
		correct(&place_errors[within(place, WARMQ_MAX_CPUS)], &place_of(place)->managed);
	return 0;
}

/* How often queued tasks are clamped, and those that are late helped, in rounds of the balance timer. */
#define CLAMPS_EVERY 16

u64 balance_rounds;

/*
 * Clamps the deadlines of queued tasks again. They were clamped by the load when the tasks were queued;
 * if it has grown since, it would take longer until they are served. So the last ones of the queue move
 * forward. V is not corrected for that: these tasks weigh little.
 */
__noinline int clamp_last(u32 entity)
{
	struct warmq_domain *time = time_of(domain_of_entity(entity));
	struct warmq_entity *state = &entity_of(entity)->time;
	struct task_struct *p;

	if (!entity_of(entity)->queued)
		return 0;
	if (is_group(entity))
		group_of(entity)->first_known = 0;
	bpf_rcu_read_lock(); /* the verifier checks a global function as if it had any caller */
	bpf_for_each(scx_dsq, p, dsq_of(entity), SCX_DSQ_ITER_REV) {
		u64 deadline = warmq_vruntime(state, p->scx.dsq_vtime), clamped = warmq_clamp_queued(time, deadline);
		struct task_state *t = task_of(p);

		if (clamped == deadline)
			break;
		if (t)
			t->vtime -= deadline - clamped;
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, p->scx.dsq_vtime - (deadline - clamped));
		scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, dsq_of(entity), 0);
	}
	bpf_rcu_read_unlock();
	return 0;
}

/* At how many tasks of a queue help_late() looks. So late tasks take no more than a part of the CPUs, and weights still count. */
#define LATE_LOOKS 8

static __always_inline bool is_late(struct task_state *t, const struct warmq_domain *there, u64 now)
{
	return elapsed(t->waits_since, now) >= warmq_late_after(&policy, there, t->weight);
}

/* Whether a task that is queued in `entity` again, since something of it has changed, has waited for too long already. */
__noinline int is_late_again(u32 entity, struct task_state *t __arg_nonnull, u64 now)
{
	struct warmq_domain there = *time_of(domain_of_entity(entity));

	there.cpus = cpus_of_entity(entity);
	return is_late(t, &there, now);
}

/* A task that has waited for too long comes next in its domain, behind others of that kind. */
static void insert_late(struct task_struct *p, u32 domain, u64 slice, u64 enq_flags)
{
	count(COUNT_HELPED);
	domain_of(domain)->late = 1;
	scx_bpf_dsq_insert(p, dsq_of(LATE_BASE + domain), slice, enq_flags);
}

/*
 * The last tasks of a queue that have waited for too long (warmq_late_after()) come next in their domain, whatever their
 * deadlines are. Those before them come sooner. They still count as queued in the entity.
 */
__noinline int help_late(u32 entity)
{
	u32 domain = domain_of_entity(entity), i = 0;
	u64 now = scx_bpf_now();
	struct warmq_domain there;
	struct task_struct *p;

	if (!entity_of(entity)->queued)
		return 0;
	there = *time_of(domain);
	there.cpus = cpus_of_entity(entity);
	bpf_rcu_read_lock(); /* the verifier checks a global function as if it had any caller */
	bpf_for_each(scx_dsq, p, dsq_of(entity), SCX_DSQ_ITER_REV) {
		struct task_state *t = task_of(p);

		if (i++ == LATE_LOOKS)
			break;
		if (!t || !is_late(t, &there, now))
			continue;
		if (!scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, dsq_of(LATE_BASE + domain), 0))
			continue;
		count(COUNT_HELPED);
		if (is_group(entity))
			group_of(entity)->first_known = 0;
	}
	bpf_rcu_read_unlock();
	return 0;
}

static void look_at_queue(u32 entity)
{
	clamp_last(entity);
	help_late(entity);
}

static void look_at_queues(void)
{
	u32 number;

	bpf_for(number, 0, nr_cpus)
		look_at_queue(WARMQ_PINNED_BASE + number);
	bpf_for(number, 1, groups_used)
		look_at_queue(WARMQ_GROUP_BASE + number);
	bpf_for(number, 0, nr_domains) {
		look_at_queue(number);
		if (scx_bpf_dsq_nr_queued(dsq_of(LATE_BASE + number)))
			domain_of(number)->late = 1;
	}
}

static bool is_any_idle(void)
{
	const struct cpumask *idle = scx_bpf_get_idle_cpumask();
	bool any = !bpf_cpumask_empty(idle);

	scx_bpf_put_idle_cpumask(idle);
	return any;
}

/* Notes since when unmanaged tasks of a domain wait while a CPU idles; see gives_far(). */
static void note_beside_idle(u32 domain, bool idles, u64 now)
{
	struct domain_state *state = domain_of(domain);

	if (!idles || !entity_of(domain)->queued) {
		if (state->beside_idle_since)
			state->beside_idle_since = 0;
	} else if (!state->beside_idle_since) {
		state->beside_idle_since = now;
	}
}

/* Kicks idle CPUs if tasks wait, in case an earlier kick got lost, or if it is time that they go to another node. */
static void wake_idle(u64 now)
{
	bool idles = nr_nodes > 1 && is_any_idle();
	u32 place, domain, cpu;

	bpf_for(domain, 0, nr_domains) {
		if (!domain_of(domain)->may_idle)
			set_may_idle(domain);
		if (nr_nodes > 1)
			note_beside_idle(domain, idles, now);
		if (entity_of(domain)->queued)
			wake_near(domain, nr_nodes > 1 && gives_far(domain));
	}
	bpf_for(place, 0, nr_places)
		if (group_waits(place))
			wake_near(domain_of_place(place), nr_nodes > 1 && best_group(place, 0, true, true, now));
	bpf_for(cpu, 0, nr_cpus)
		if (entity_of(WARMQ_PINNED_BASE + cpu)->queued && scx_bpf_test_and_clear_cpu_idle(cpu))
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/* Leaves a task that woke while `cpu` was idle to an idle CPU of a domain. */
static void leave_found_to(u32 domain, u32 cpu)
{
	domain_of(domain)->pull_from = FOUND_BASE + cpu + 1;
	wake_near(domain, false);
}

/* At how many tasks of a queue pass_on() looks. */
#define PASS_ON_LOOKS 4

/* Takes an idle CPU for p, which waits in a domain; -1 if there is none. (scx_bpf_select_cpu_and() cannot be called while a CPU dispatches.) */
static s32 idle_for_waiting(struct task_struct *p, u32 domain)
{
	u32 cpu;

	if (p->nr_cpus_allowed >= nr_cpus)
		return idle_near(domain, nr_nodes > 1 && gives_far(domain));
	bpf_for(cpu, 0, nr_cpus)
		if (domain_of_cpu(cpu) == domain && take_idle(p, cpu))
			return cpu;
	return nr_nodes == 1 || goes_far(p, domain) ? scx_bpf_pick_idle_cpu(p->cpus_ptr, 0) : -1;
}

/*
 * An idle CPU is kicked for one task and may find another, of which nobody knew when it was chosen; or the one that it may take
 * has gone. Kicks other idle CPUs for the first tasks that wait where `cpu` takes tasks: for `all`, or for those alone that may
 * not run everywhere. (Who may runs on the CPU that was kicked for the other one.)
 */
__noinline int pass_on(u32 cpu, bool all)
{
	u32 domain = domain_of_cpu(cpu), i, looks;
	struct task_struct *p;

	if (found_waits(cpu))
		leave_found_to(domain, cpu);
	bpf_rcu_read_lock(); /* the verifier checks a global function as if it had any caller */
	bpf_for(i, 0, nr_domains) {
		u32 from = near_domain(domain, i);

		if (scx_bpf_dsq_nr_queued(dsq_of(from)) <= 0) /* `queued` still counts what was taken just now */
			continue;
		looks = 0;
		bpf_for_each(scx_dsq, p, dsq_of(from), 0) {
			s32 idle;

			if (looks++ == PASS_ON_LOOKS)
				break;
			if (!all && p->nr_cpus_allowed >= nr_cpus)
				continue;
			idle = idle_for_waiting(p, from);
			if (idle >= 0)
				scx_bpf_kick_cpu(idle, SCX_KICK_IDLE);
		}
	}
	bpf_rcu_read_unlock();
	return 0;
}

/*
 * A CPU on which another class has run for a round leaves the tasks that woke while it was idle to the others of its
 * domain; then to one domain after the other, the nearest first, since their affinity may be narrow.
 */
static void free_found(void)
{
	u32 cpu, domain;

	bpf_for(cpu, 0, nr_cpus) {
		struct cpu_state *c = cpu_of(cpu);

		if (c->runs || c->idle || !c->found || !scx_bpf_dsq_nr_queued(dsq_of(FOUND_BASE + cpu))) {
			c->found_rounds = 0;
			continue;
		}
		if (!c->found_rounds++)
			continue;
		domain = near_domain(domain_of_cpu(cpu), (c->found_rounds - 2) % nr_domains);
		leave_found_to(domain, cpu);
	}
}

/* Balances among busy places: the calmest of the node whose turn it is gets something of the busiest there, else elsewhere. */
static void balance_busy(u64 now)
{
	u32 calm = calmest_place(balance_rounds % nr_nodes, now), what = 0;
	enum warmq_relief relief = relief_for(calm, false, false, &what, now);

	if (nr_nodes > 1 && relief == WARMQ_LEAVE)
		relief = relief_for(calm, false, true, &what, now);
	switch (relief) {
	case WARMQ_MOVE_GROUP:
		rehome(what, calm);
		wake_for(what, 0);
		break;
	case WARMQ_MOVE_UNMANAGED:
		domain_of(domain_of_place(calm))->pull_from = what + 1;
		break;
	default: /* only a CPU without work splits groups */
		break;
	}
}

/* The kernel's hotplug state of each CPU: the state that it is heading for. */
struct cpuhp_cpu_state___target {
	enum cpuhp_state target;
} __attribute__((preserve_access_index));

extern const struct cpuhp_cpu_state___target cpuhp_state __ksym __weak;

/*
 * Returns true if a CPU that was online when the scheduler was loaded is going offline, or is
 * offline already.
 *
 * The kernel reports this by itself (6.18, kernel/sched/ext.c, handle_hotplug()), but too late. A
 * CPU dispatches nothing as soon as it is no longer active, and then waits for an RCU grace period
 * before the report. If a preempted RCU reader waits for this very CPU, that period never ends. A
 * loader that restarts must wait until the CPU is really offline (hotplug.rs), or it would queue
 * tasks for a CPU that no longer dispatches.
 */
__noinline int cpu_going_offline(void)
{
	const struct cpuhp_cpu_state___target *own, *other;
	u32 cpu;

	if (!&cpuhp_state)
		return false;
	own = bpf_this_cpu_ptr(&cpuhp_state);
	bpf_for(cpu, 0, nr_cpus) {
		if (cpu_domain[within(cpu, WARMQ_MAX_CPUS)] >= WARMQ_MAX_DOMAINS)
			continue;
		other = bpf_per_cpu_ptr(&cpuhp_state, cpu);
		if (other && other->target != own->target)
			return true;
	}
	return false;
}

/* Whether any task of ours has a CPU or waits for one. */
__noinline int is_anything_runnable(void)
{
	u32 number;

	if (nr_throttled)
		return true;
	bpf_for(number, 0, nr_domains)
		if (entity_of(number)->queued)
			return true;
	bpf_for(number, 0, nr_places)
		if (place_of(number)->words)
			return true;
	bpf_for(number, 0, nr_cpus)
		if (cpu_of(number)->runs || cpu_of(number)->found || entity_of(WARMQ_PINNED_BASE + number)->queued)
			return true;
	return false;
}

/* Whether the timer stops, so that an idle machine is left alone; resume_balance() arms it again. */
static bool stops_balancing(void)
{
	u32 before;

	if (is_anything_runnable())
		return false;
	before = __sync_lock_test_and_set(&balancing, 0); /* in order */
	barrier_var(before);
	return !is_anything_runnable() || __sync_lock_test_and_set(&balancing, 1);
}

static int balance(void *map, int *key, struct bpf_timer *timer)
{
	if (cpu_going_offline()) {
		scx_bpf_exit(SCX_ECODE_ACT_RESTART | SCX_ECODE_RSN_HOTPLUG, "a CPU is going offline");
		return 0;
	}
	correct_sums();
	leave_groups(scx_bpf_now());
	if (++balance_rounds % CLAMPS_EVERY == 0)
		look_at_queues();
	bpf_rcu_read_lock(); /* for the masks of domains; up to 6.17 a timer is not known to hold it */
	wake_idle(scx_bpf_now());
	if (nr_places > 1)
		balance_busy(scx_bpf_now());
	free_found();
	release_due();
	bpf_rcu_read_unlock();
	if (!stops_balancing())
		bpf_timer_start(timer, balance_interval, 0);
	return 0;
}

static int start_balance(void)
{
	u32 zero = 0;
	struct balance_timer *value = bpf_map_lookup_elem(&balance_timers, &zero);

	if (!value)
		return -ESRCH;
	bpf_timer_init(&value->timer, &balance_timers, CLOCK_MONOTONIC);
	bpf_timer_set_callback(&value->timer, balance);
	balancing = 1;
	return bpf_timer_start(&value->timer, balance_interval, 0);
}
