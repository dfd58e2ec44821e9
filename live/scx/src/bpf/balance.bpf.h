/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Balance: whole groups move, never a running one; unmanaged tasks where none can; a group is split when it lasts. A CPU that
 * has nothing to do asks for itself; a timer asks for those that are busy all the time.
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

static u32 busiest_place(u32 calm)
{
	u64 most = load_of_place(calm);
	u32 place, best = calm;

	bpf_for(place, 0, nr_places) {
		u64 load = load_of_place(place);

		if (place_cpus(place) && warmq_less_loaded(most, place_cpus(best), load, place_cpus(place))) {
			best = place;
			most = load;
		}
	}
	return best;
}

static u32 calmest_place(void)
{
	u32 place, best = 0;
	bool found = false;

	bpf_for(place, 0, nr_places) {
		if (!place_cpus(place))
			continue;
		if (!found || warmq_less_loaded(load_of_place(place), place_cpus(place), load_of_place(best), place_cpus(best)))
			best = place;
		found = true;
	}
	return best;
}

/* The runnable group at `place` whose move mends `excess` best, or (running: one that only a split can relieve) 0. */
static u32 best_group(u32 place, u64 excess, bool to_split)
{
	u32 word, best = 0;
	u64 best_weight = 0;
	int i;

	bpf_for(word, 0, MAX_GROUPS / 64) {
		u64 bits = place_of(place)->groups[within(word, MAX_GROUPS / 64)];

		bpf_for(i, 0, 64) {
			u32 number = word * 64 + ctzll(bits);
			struct group_state *group = group_of(number);
			u64 weight = entity_of(GROUP_BASE + number)->time.weight;

			if (!bits)
				break;
			bits &= bits - 1;
			if (group->home != place || !entity_of(GROUP_BASE + number)->queued)
				continue;
			if (to_split) {
				if (weight > best_weight) {
					best = number;
					best_weight = weight;
				}
				continue;
			}
			if (group->running || group->narrow || !warmq_better_group(weight, best_weight, excess))
				continue;
			best = number;
			best_weight = weight;
		}
	}
	return best;
}

/* `weight` that stands at `position` goes to another domain; returns where it stands there. */
static u64 emigrate_weight(struct warmq_domain *from, struct warmq_domain *to, u64 position, u64 weight)
{
	u64 there = warmq_emigrate(position, from->clock, to->clock);

	__sync_fetch_and_add(&from->clock, warmq_mean_without(&policy, from->clock, from->weight, position, weight));
	__sync_fetch_and_add(&to->clock, warmq_mean_with(&policy, to->clock, to->weight, there, weight));
	__sync_fetch_and_sub(&from->weight, weight);
	__sync_fetch_and_add(&to->weight, weight);
	return there;
}

/* Gives a group another home. Its queued tasks are in a queue of its own, so they need not be touched. */
static void rehome(u32 number, u32 to)
{
	struct group_state *group = group_of(number);
	struct warmq_entity *entity = &entity_of(GROUP_BASE + number)->time;
	u32 from = group->home, from_domain = domain_of_place(from), to_domain = domain_of_place(to);
	u64 weight = entity->weight, position = warmq_entity_position(entity);

	__sync_fetch_and_sub(&place_of(from)->managed, weight);
	__sync_fetch_and_add(&place_of(to)->managed, weight);
	if (from_domain != to_domain)
		entity->shift += emigrate_weight(&domain_of(from_domain)->time, &domain_of(to_domain)->time, position, weight) -
				 position;
	group->home = to & (MAX_CPUS - 1);
	__sync_fetch_and_or(&place_of(to)->groups[within(number / 64, MAX_GROUPS / 64)], 1ULL << (number % 64));
	__sync_fetch_and_add(&group->moves, 1);
	count(COUNT_GROUP_MOVES);
}

/* What should be done for `calm`, and with which group or (unmanaged) domain. */
static enum warmq_relief relief_for(u32 calm, u32 *what, u64 now)
{
	struct place_state *here = place_of(calm);
	u32 busy = busiest_place(calm), group, domain;
	u64 load, least, excess = 0, managed = 0, unmanaged = 0, movable = 0, lasted;
	enum warmq_relief relief;

	load = load_of_place(busy);
	least = load_of_place(calm);
	if (busy == calm || !warmq_imbalanced(&policy, load, place_cpus(busy), least, place_cpus(calm))) {
		here->imbalanced_since = 0;
		return WARMQ_LEAVE;
	}
	if (!here->imbalanced_since)
		here->imbalanced_since = now;
	domain = domain_of_place(busy);
	excess = warmq_excess(load, place_cpus(busy), least, place_cpus(calm));
	managed = place_of(busy)->managed;
	if (domain != domain_of_place(calm) && entity_of(domain)->queued)
		unmanaged = entity_of(domain)->time.weight;
	group = managed ? best_group(busy, excess, false) : 0;
	if (group)
		movable = entity_of(GROUP_BASE + group)->time.weight;
	lasted = warmq_before(now, here->imbalanced_since) ? 0 : now - here->imbalanced_since; /* CPUs' clocks differ */
	relief = warmq_relieve(&policy, excess, managed, unmanaged, movable, lasted);
	*what = relief == WARMQ_MOVE_UNMANAGED ? domain : group;
	if (relief == WARMQ_SPLIT_GROUP) {
		*what = best_group(busy, excess, true);
		if (!*what)
			relief = WARMQ_LEAVE;
	}
	return relief;
}

/* A CPU without work takes what it may from a busier place. Returns whether it got a task. */
static bool pull_for_place(u32 cpu, u64 now)
{
	u32 what = 0;

	switch (relief_for(place_of_cpu(cpu), &what, now)) {
	case WARMQ_MOVE_GROUP:
		rehome(what, place_of_cpu(cpu));
		return scx_bpf_dsq_move_to_local(dsq_of(GROUP_BASE + what), 0);
	case WARMQ_MOVE_UNMANAGED:
		if (!scx_bpf_dsq_move_to_local(dsq_of(what), 0))
			return false;
		count(COUNT_UNMANAGED_MOVES);
		return true;
	case WARMQ_SPLIT_GROUP:
		if (!scx_bpf_dsq_move_to_local(dsq_of(GROUP_BASE + what), 0))
			return false;
		__sync_fetch_and_add(&group_of(what)->splits, 1);
		count(COUNT_GROUP_SPLITS);
		return true;
	default:
		return false;
	}
}

/* An unmanaged task of any other domain: it waits there, and nobody works here. */
static bool pull_unmanaged(u32 domain)
{
	u32 i;

	bpf_for(i, 1, nr_domains) {
		u32 other = (domain + i) % nr_domains;

		if (entity_of(other)->queued && scx_bpf_dsq_move_to_local(dsq_of(other), 0)) {
			count(COUNT_UNMANAGED_MOVES);
			return true;
		}
	}
	return false;
}

static bool pull(u32 cpu)
{
	if (managed_queued && pull_for_place(cpu, scx_bpf_now()))
		return true;
	return nr_domains > 1 && pull_unmanaged(domain_of_cpu(cpu));
}

/* A difference that was seen this often in a row is no task that came or went meanwhile. */
#define REST_IS_REAL 8

/* What a sum is compared with, for mend_weights() alone. */
struct rest {
	u64 sum;
	u64 apart; /* wraps */
	u64 seen;  /* how often in a row */
};

struct rest domain_rests[MAX_DOMAINS];
struct rest place_rests[MAX_CPUS];

static void mend(struct rest *rest, u64 *weight)
{
	u64 apart = rest->sum - *weight;

	rest->seen = apart == rest->apart ? rest->seen + 1 : 0;
	rest->apart = apart;
	rest->sum = 0;
	if (!apart || rest->seen < REST_IS_REAL)
		return;
	__sync_fetch_and_add(weight, apart);
	rest->seen = 0;
}

/*
 * A group that moves while its members come and go may leave a rest of weight behind. Weights are summed anew, and a rest is taken
 * away once it has been the same for long: sums made while tasks come and go are off by these, and must not be believed.
 */
static void mend_weights(void)
{
	u32 domain, place, number, cpu;

	bpf_for(domain, 0, nr_domains)
		domain_rests[within(domain, MAX_DOMAINS)].sum = entity_of(domain)->time.weight;
	bpf_for(cpu, 0, nr_cpus)
		domain_rests[domain_of_cpu(cpu)].sum += entity_of(PINNED_BASE + cpu)->time.weight;
	bpf_for(number, 1, nr_groups) {
		u64 weight = entity_of(GROUP_BASE + number)->time.weight;
		u32 home = group_of(number)->home;

		place_rests[within(home, MAX_CPUS)].sum += weight;
		domain_rests[within(domain_of_place(home), MAX_DOMAINS)].sum += weight;
	}
	bpf_for(domain, 0, nr_domains)
		mend(&domain_rests[within(domain, MAX_DOMAINS)], &domain_of(domain)->time.weight);
	bpf_for(place, 0, nr_places)
		mend(&place_rests[within(place, MAX_CPUS)], &place_of(place)->managed);
}

/* How often the ends of queues are looked at, in rounds of the balance timer. */
#define FORGIVES_EVERY 16

u64 balance_rounds;

/*
 * A debt is bounded when a task is queued, by the load of that time. Where the load has grown since, it would take longer to pay:
 * the last of the queue come forward. The clocks do not follow; what they are off by is little, as those tasks weigh little.
 */
__noinline int forgive_last(u32 entity)
{
	struct warmq_domain *time = &domain_of(domain_of_entity(entity))->time;
	struct warmq_entity *state = &entity_of(entity)->time;
	struct task_struct *p;

	if (!entity_of(entity)->queued)
		return 0;
	bpf_rcu_read_lock(); /* the verifier looks at this as if anybody could call it */
	bpf_for_each(scx_dsq, p, dsq_of(entity), SCX_DSQ_ITER_REV) {
		u64 position = warmq_position(state, p->scx.dsq_vtime), forgiven = warmq_forgive(time, position);

		if (forgiven == position)
			break;
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, p->scx.dsq_vtime - (position - forgiven));
		scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, dsq_of(entity), 0);
	}
	bpf_rcu_read_unlock();
	return 0;
}

static void forgive_all(void)
{
	u32 number;

	bpf_for(number, 0, nr_domains)
		forgive_last(number);
	bpf_for(number, 0, nr_cpus)
		forgive_last(PINNED_BASE + number);
	if (!managed_queued)
		return;
	bpf_for(number, 1, nr_groups)
		forgive_last(GROUP_BASE + number);
}

/* Wakes idle CPUs where something waits: nothing may wait for a kick that got lost. */
static void wake_idle(void)
{
	u32 domain, cpu;

	bpf_for(domain, 0, nr_domains) {
		struct bpf_cpumask *mask = mask_of_domain(domain);
		s32 idle;

		if (!mask || !(entity_of(domain)->queued || managed_queued))
			continue;
		idle = scx_bpf_pick_idle_cpu(cast_mask(mask), 0);
		if (idle >= 0)
			scx_bpf_kick_cpu(idle, SCX_KICK_IDLE);
	}
	bpf_for(cpu, 0, nr_cpus)
		if (entity_of(PINNED_BASE + cpu)->queued && scx_bpf_test_and_clear_cpu_idle(cpu))
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/* Busy places among themselves: the calmest one is given something of the busiest. */
static void balance_busy(u64 now)
{
	u32 calm = calmest_place(), what = 0;

	switch (relief_for(calm, &what, now)) {
	case WARMQ_MOVE_GROUP:
		rehome(what, calm);
		break;
	case WARMQ_MOVE_UNMANAGED:
		domain_of(domain_of_place(calm))->pull_from = what + 1;
		break;
	default: /* splitting is for those who have nothing else to do */
		break;
	}
}

/* Of the kernel, for each CPU: where it is on its way between offline and online, and where it is to end. */
struct cpuhp_cpu_state___target {
	enum cpuhp_state target;
} __attribute__((preserve_access_index));

extern const struct cpuhp_cpu_state___target cpuhp_state __ksym __weak;

/*
 * Does a CPU go that user space saw, or has it gone? The kernel says so by itself (6.18, kernel/sched/ext.c, handle_hotplug()), but
 * not in time. A CPU that goes dispatches nothing from the moment when it is no longer active, and then waits for an RCU grace
 * period before it tells: for a task that was preempted as a reader and waits for this very CPU, that is for ever. And who starts
 * again at once may see a CPU that is still online, and send tasks where nobody runs them.
 */
static bool cpu_goes(void)
{
	const struct cpuhp_cpu_state___target *own, *other;
	u32 cpu;

	if (!&cpuhp_state)
		return false;
	own = bpf_this_cpu_ptr(&cpuhp_state);
	bpf_for(cpu, 0, nr_cpus) {
		if (cpu_domain[within(cpu, MAX_CPUS)] >= MAX_DOMAINS)
			continue;
		other = bpf_per_cpu_ptr(&cpuhp_state, cpu);
		if (other && other->target != own->target)
			return true;
	}
	return false;
}

static int balance(void *map, int *key, struct bpf_timer *timer)
{
	if (cpu_goes()) {
		scx_bpf_exit(SCX_ECODE_ACT_RESTART | SCX_ECODE_RSN_HOTPLUG, "a CPU goes");
		return 0;
	}
	mend_weights();
	if (++balance_rounds % FORGIVES_EVERY == 0)
		forgive_all();
	wake_idle();
	if (nr_places > 1)
		balance_busy(scx_bpf_now());
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
	return bpf_timer_start(&value->timer, balance_interval, 0);
}
