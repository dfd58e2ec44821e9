/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Groups: the tasks of one fragment. They are found by their key, live in a table of fixed size,
 * and are given another key once they have had no member for a while. A flood of fragments fills
 * only its process's part of the table; tasks of further fragments are unmanaged.
 */
#pragma once

/*
 * How long a group without members keeps its home, in ns: its tasks may only be between two
 * fragments.
 */
#define GROUP_LINGERS 100000000ULL
/* How many entries of the table are searched for a free one, and then for one whose members all sleep. */
#define GROUP_TRIES 64
/* How long all members of a group must have slept so that others may have it, in ns. */
#define GROUP_SLEEPS 1000000000ULL
/* How often a CPU tries to take a member off a group whose members change. */
#define MEMBER_TRIES 64
/* How deep user namespaces may be nested (create_user_ns()). */
#define USER_NAMESPACES 33
#define GROUP_BITS 10 /* WARMQ_MAX_GROUPS */

static __always_inline u32 group_number(const struct task_state *t)
{
	return t->group % WARMQ_MAX_GROUPS;
}

static __always_inline u64 members_of(const struct group_state *group)
{
	return (u32)group->members;
}

/* The generation of a group with `members`, as task_state.group has it. */
static __always_inline u32 generation_in(u64 members)
{
	return (u32)(members >> 32) << GROUP_BITS;
}

/* Whether the group of a task has been given to others while it slept. */
static __always_inline bool is_evicted(const struct task_state *t)
{
	return t->group && generation_in(group_of(t->group)->members) != t->group - group_number(t);
}

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * WARMQ_MAX_GROUPS);
	__type(key, struct group_key);
	__type(value, u32);
} group_numbers SEC(".maps");

/* How many groups a process has, and how many a user. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * WARMQ_MAX_GROUPS);
	__type(key, u64);
	__type(value, u64);
} group_owners SEC(".maps");

u32 next_group = 1;
u32 groups_used = 1; /* no group from this number on has members, or had some lately */

/* The first group after `number` that may have queued tasks at `place`; 0: there is none. */
__noinline u32 group_after(u32 place, u32 number)
{
	struct place_state *there = place_of(place);
	u32 next = number + 1, word = within(next / 64, WARMQ_MAX_GROUPS / 64), i;
	u64 bits = next < WARMQ_MAX_GROUPS ? there->groups[word] & ~0ULL << (next % 64) : 0;
	u64 words = there->words & ~0ULL << (next / 64 + 1);

	bpf_for(i, 0, WARMQ_MAX_GROUPS / 64) {
		if (bits)
			return word * 64 + ctzll(bits);
		if (!words)
			break;
		word = within(ctzll(words), WARMQ_MAX_GROUPS / 64);
		words &= words - 1;
		bits = there->groups[word];
	}
	return bits ? word * 64 + ctzll(bits) : 0;
}

/* Takes a group off the set of `place` if it has no queued tasks there. Returns whether it has. */
static bool is_group_there(u32 place, u32 number)
{
	if (group_of(number)->home == place && entity_of(WARMQ_GROUP_BASE + number)->queued)
		return true;
	unmark_group(place, number);
	/* A task may have been queued just now. */
	if (group_of(number)->home == place && entity_of(WARMQ_GROUP_BASE + number)->queued)
		mark_group(place, number);
	return false;
}

/* See group_waits(). */
__noinline int look_for_waiting_group(u32 place)
{
	u32 i, number = 0;

	bpf_for(i, 0, WARMQ_MAX_GROUPS) {
		number = group_after(place, number);
		if (!number)
			break;
		if (is_group_there(place, number))
			return 1;
	}
	return 0;
}

/* Whether a group that lives at `place` has queued tasks. */
static __always_inline bool group_waits(u32 place)
{
	return groups_used > 1 && place_of(place)->words && look_for_waiting_group(place);
}

/* The CPUs of a domain, and its fast ones (only if unlike_cpus). */
struct domain_mask {
	struct bpf_cpumask __kptr *mask;
	struct bpf_cpumask __kptr *fast;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WARMQ_MAX_DOMAINS);
	__type(key, u32);
	__type(value, struct domain_mask);
} domain_masks SEC(".maps");

static __always_inline struct bpf_cpumask *mask_of_domain(u32 domain)
{
	struct domain_mask *value = bpf_map_lookup_elem(&domain_masks, &domain);

	return value ? value->mask : NULL;
}

static __always_inline struct bpf_cpumask *fast_mask_of_domain(u32 domain)
{
	struct domain_mask *value = bpf_map_lookup_elem(&domain_masks, &domain);

	return value ? value->fast : NULL;
}

/*
 * The runnable weight of a place: its groups, and its part of the unmanaged tasks of its domain.
 * See place_cpus().
 */
__noinline u64 load_of_place(u32 place)
{
	u32 domain = domain_of_place(place);
	u64 unmanaged = entity_of(domain)->time.weight, cpus_there = time_of(domain)->cpus;

	if (!place_is_cpu)
		return time_of(domain)->weight;
	unmanaged /= cpus_there ? cpus_there : 1;
	return place_of(place)->managed + unmanaged + entity_of(WARMQ_PINNED_BASE + place)->time.weight;
}

/* The online CPUs of a place. A place with none is no home for a group. */
static __always_inline u64 place_cpus(u32 place)
{
	if (place_is_cpu)
		return cpu_domain[within(place, WARMQ_MAX_CPUS)] < WARMQ_MAX_DOMAINS;
	return time_of(place)->cpus;
}

/* Whether two places are of different nodes. */
static __always_inline bool is_far(u32 place, u32 other)
{
	return node_of(domain_of_place(place)) != node_of(domain_of_place(other));
}

#define NO_PLACE WARMQ_MAX_CPUS

/* See fits(). */
__noinline int fits_narrowly(struct task_struct *p __arg_trusted, u32 place)
{
	struct bpf_cpumask *mask;
	int does;

	bpf_rcu_read_lock(); /* the verifier checks a global function as if it had any caller */
	if (place_is_cpu) {
		does = bpf_cpumask_test_cpu(place, p->cpus_ptr);
	} else {
		mask = mask_of_domain(place);
		does = mask && bpf_cpumask_subset(cast_mask(mask), p->cpus_ptr);
	}
	bpf_rcu_read_unlock();
	return does;
}

/* Whether p may run on every CPU of a place. */
static __always_inline bool fits(struct task_struct *p, u32 place)
{
	return p->nr_cpus_allowed >= nr_cpus || fits_narrowly(p, place);
}

/* The entity of a task that is, or will be, on `cpu`. */
static __always_inline u32 entity_for(struct task_struct *p, struct task_state *t, u32 cpu)
{
	if ((p->nr_cpus_allowed == 1 && nr_cpus > 1) || is_migration_disabled(p))
		return WARMQ_PINNED_BASE + cpu;
	if (t->group && keeps_groups) {
		if (fits(p, group_of(t->group)->home))
			return WARMQ_GROUP_BASE + group_number(t);
		group_of(t->group)->narrow = 1;
	}
	return domain_of_cpu(cpu);
}

/* The load that a new group must expect at a place. */
__noinline u64 expected_load(u32 place, u64 now)
{
	struct place_state *there = place_of(place);
	u64 newcomers = warmq_newcomers(&policy, there->founded, elapsed(there->founded_since, now));

	return warmq_expected_load(load_of_place(place), newcomers, place_cpus(place));
}

/* The load that the other CPUs of a home's core must expect. */
__noinline u64 core_load(u32 place, u64 now)
{
	u32 sibling = cpu_sibling[within(place, WARMQ_MAX_CPUS)];
	u64 load = 0;
	int i;

	if (!place_is_cpu || !smt_enabled)
		return 0;
	bpf_for(i, 0, WARMQ_CORE_CPUS) {
		if (sibling == place)
			break;
		load += expected_load(sibling, now);
		sibling = cpu_sibling[within(sibling, WARMQ_MAX_CPUS)];
	}
	return load;
}

/* Counts one more group that was founded at a place. CPUs that do so at a time may count one for two. */
static void found_at(u32 place, u64 now)
{
	struct place_state *there = place_of(place);

	if (!warmq_newcomers(&policy, there->founded, elapsed(there->founded_since, now))) {
		there->founded = 0;
		there->founded_since = now;
	}
	there->founded++;
}

/*
 * The online place of its node or, `far`, of another where p may run and that is the best home for a new group; its own if
 * there is no better one, NO_PLACE if there is none at all.
 */
__noinline u32 best_new_home(struct task_struct *p __arg_trusted, u32 here, bool far, u64 now)
{
	u64 least = expected_load(here, now), its_core = core_load(here, now);
	/* Not its own if its CPU went offline while p slept. */
	bool found = !far && place_cpus(here) && fits(p, here);
	u32 place, best = found ? here : NO_PLACE;

	bpf_for(place, 0, nr_places) {
		u64 load = expected_load(place, now), core = core_load(place, now);

		if (place == here || is_far(place, here) != far || !place_cpus(place) || !fits(p, place))
			continue;
		if (found && !warmq_calmer(load, place_cpus(place), core, least, place_cpus(best), its_core))
			continue;
		best = place;
		least = load;
		its_core = core;
		found = true;
	}
	return best;
}

/* The home of a new group that p has named at `here`. */
static __always_inline u32 place_for_new_group(struct task_struct *p, u32 here, u64 now)
{
	u32 near = best_new_home(p, here, false, now), far = nr_nodes > 1 ? best_new_home(p, here, true, now) : NO_PLACE;

	if (far == NO_PLACE)
		return near == NO_PLACE ? here : near;
	if (near == NO_PLACE || warmq_founds_far(&policy, expected_load(near, now), place_cpus(near), expected_load(far, now),
						 place_cpus(far)))
		return far;
	return near;
}

/* Counts one more group for an owner, if it has less than `most`. */
static bool owner_takes_one(u64 owner, u64 most)
{
	u64 none = 0, *has = bpf_map_lookup_elem(&group_owners, &owner);

	if (!has) {
		/* This fails if another CPU was faster, which does as well. */
		bpf_map_update_elem(&group_owners, &owner, &none, BPF_NOEXIST);
		has = bpf_map_lookup_elem(&group_owners, &owner);
	}
	/* No entry: there are as many owners as groups, so the table of groups is full as well. */
	if (!has || *has >= most)
		return false;
	__sync_fetch_and_add(has, 1);
	return true;
}

static void owner_gives_one(u64 owner)
{
	u64 *has = bpf_map_lookup_elem(&group_owners, &owner);

	if (has && __sync_fetch_and_sub(has, 1) == 1)
		bpf_map_delete_elem(&group_owners, &owner);
}

/* The owner of a group: its process, its user, or the administrator. */
static __always_inline u64 owner_of(const struct group_key *key)
{
	return ((u64)key->uid << 32) | key->tgid;
}

/* The user who pays for a group; no process has this number. */
static __always_inline u64 user_owner_of(u32 payer)
{
	return ((u64)payer << 32) | 0xffffffff;
}

/*
 * The user among whose groups those of a task count: its own or, in a user namespace, where one user has many, the one who
 * made that. (Of nested ones, the outermost.)
 */
__noinline u32 payer_of(struct task_struct *p __arg_trusted)
{
	struct user_namespace *namespace = BPF_CORE_READ(p, cred, user_ns);
	u32 payer = BPF_CORE_READ(p, cred, uid.val), i;

	bpf_for(i, 0, USER_NAMESPACES) {
		if (!namespace || BPF_CORE_READ(namespace, level) <= 0)
			break;
		payer = BPF_CORE_READ(namespace, owner.val);
		namespace = BPF_CORE_READ(namespace, parent);
	}
	return payer;
}

/* So that neither one process nor all of a user's take the whole table. Labels have no user. */
static bool owner_may_have_another(const struct group_key *key, u32 payer)
{
	if (!owner_takes_one(owner_of(key), groups_per_process))
		return false;
	if (!payer || owner_takes_one(user_owner_of(payer), groups_per_user))
		return true;
	owner_gives_one(owner_of(key));
	return false;
}

static void owner_has_one_less(const struct group_key *key, u32 payer)
{
	owner_gives_one(owner_of(key));
	if (payer)
		owner_gives_one(user_owner_of(payer));
}

static __always_inline bool same_key(const struct group_key *a, const struct group_key *b)
{
	return a->uid == b->uid && a->tgid == b->tgid && a->hint == b->hint;
}

/* Whether a group has had no member for a while or, if it may be `asleep`, none that runs or waits. */
static bool may_be_given(u32 number, bool asleep, u64 now)
{
	struct entity_state *state = entity_of(WARMQ_GROUP_BASE + number);
	struct group_state *group = group_of(number);

	if (state->queued || state->time.runnable || group->running)
		return false;
	if (!members_of(group))
		return elapsed(group->left_at, now) >= GROUP_LINGERS;
	return asleep && elapsed(group->ran_at, now) >= GROUP_SLEEPS;
}

/* Takes its key from a group that was claimed. Members that it still has notice when they wake: is_evicted(). */
static void take_key(struct group_state *group)
{
	if (members_of(group))
		__sync_lock_test_and_set(&group->members, ((group->members >> 32) + 1) << 32);
	if (!group->key.hint)
		return;
	bpf_map_delete_elem(&group_numbers, &group->key);
	owner_has_one_less(&group->key, group->payer);
	group->key.hint = 0;
}

/* Claims a group without members for a new key or, where none is left, one whose members all sleep. 0: there is none. */
__noinline u32 claim_group(u64 now)
{
	u32 try, found = 0;

	bpf_for(try, 0, 2 * GROUP_TRIES) {
		u32 number = __sync_fetch_and_add(&next_group, 1) % nr_groups;
		struct group_state *group = group_of(number);
		bool asleep = try >= GROUP_TRIES;

		if (!number || !may_be_given(number, asleep, now) || __sync_val_compare_and_swap(&group->claimed, 0, 1))
			continue;
		if (!may_be_given(number, asleep, now)) {
			group->claimed = 0;
			continue;
		}
		take_key(group);
		found = number;
		break;
	}
	return found;
}

/* Raises `groups_used` above a number. */
static void use_groups(u32 number)
{
	u32 before;
	int i;

	bpf_for(i, 0, 16) {
		before = groups_used;
		if (before > number || __sync_val_compare_and_swap(&groups_used, before, number + 1) == before)
			break;
	}
}

/* How many groups are taken off `groups_used` in a round of the balance timer. */
#define GROUPS_LEAVE 64

static bool is_unused(u32 number, u64 now)
{
	return !group_of(number)->claimed && may_be_given(number, false, now);
}

/* Lowers `groups_used` to the last group that is in use. */
static void leave_groups(u64 now)
{
	u32 i;

	bpf_for(i, 0, GROUPS_LEAVE) {
		u32 used = groups_used;

		if (used <= 1 || !is_unused(used - 1, now))
			break;
		__sync_val_compare_and_swap(&groups_used, used, used - 1);
		if (!is_unused(used - 1, now)) /* somebody has just made it again */
			use_groups(used - 1);
	}
}

/* A global function, which the verifier looks at once, however many ways lead here. */
__noinline u32 make_group(struct task_struct *p __arg_trusted, struct group_key *key __arg_nonnull, u32 cpu, u64 now,
			  u32 origin)
{
	u32 number, *faster, payer = key->uid ? payer_of(p) + 1 : 0;
	struct group_state *group;

	if (!owner_may_have_another(key, payer))
		goto refused;
	number = claim_group(now);
	if (!number) {
		owner_has_one_less(key, payer);
		goto refused;
	}
	group = group_of(number);
	group->key = *key;
	group->payer = payer;
	group->home = place_for_new_group(p, place_of_cpu(cpu), now) & (WARMQ_MAX_CPUS - 1);
	found_at(group->home, now);
	group->narrow = 0;
	group->origin = origin;
	group->ran_home = group->ran_away = group->batches = group->runs = group->moves = group->splits = 0;
	__builtin_memset(group->waits, 0, sizeof(group->waits));
	group->left_at = group->ran_at = now;
	if (bpf_map_update_elem(&group_numbers, key, &number, BPF_NOEXIST)) {
		owner_has_one_less(key, payer); /* another CPU was faster: use its group */
		group->key.hint = 0;
		group->claimed = 0;
		faster = bpf_map_lookup_elem(&group_numbers, key);
		return faster ? *faster : 0;
	}
	group->claimed = 0;
	count(COUNT_GROUPS_MADE);
	return number;
refused:
	count(COUNT_GROUPS_REFUSED);
	return 0;
}

/* The hint of a task of which two said something at the same time: whoever looks next follows the right one. */
#define HINT_UNKNOWN (~0ULL)

/*
 * Adds a member to a group. Returns what task_state.group is then. (One that had none for long kept its key, and may not
 * count as used.)
 */
static u32 add_member(u32 number)
{
	u64 before;

	if (!number)
		return 0;
	before = add_in_order(&group_of(number)->members, 1);
	if (!(u32)before)
		use_groups(number);
	return number | generation_in(before);
}

/* Takes a member off the group that `membership` says, unless that has a new generation. */
static void remove_member(u32 membership, u64 now)
{
	struct group_state *group = group_of(membership);
	int i;

	if (!membership)
		return;
	bpf_for(i, 0, MEMBER_TRIES) {
		u64 members = group->members;

		if (generation_in(members) != membership - membership % WARMQ_MAX_GROUPS)
			return;
		group->left_at = now;
		if (__sync_val_compare_and_swap(&group->members, members, members - 1) == members)
			return;
	}
}

/*
 * Makes a task a member of a group (0: of none) instead of its present one. No lock is held: a task that hints may be
 * interrupted by a tick that reads its slot, and its cgroup may change. Whoever takes a task out of a group takes one
 * member off that.
 */
static void enter_group(struct task_state *t, u32 number, u64 now)
{
	if (group_number(t) == number && !is_evicted(t))
		return;
	remove_member(__sync_lock_test_and_set(&t->group, add_member(number)), now);
	t->firmness = 0;
	t->faded_at = now;
	count(COUNT_CHANGES);
}

/* A task finds that its group has been given to others while it slept. It follows its hint anew. */
static void leave_given(struct task_state *t)
{
	__sync_lock_test_and_set(&t->group, 0);
	if (t->hint || t->labelled)
		t->hint = HINT_UNKNOWN;
}

/* The same for a task that has named nothing. */
static void enter_unnamed(struct task_state *t, u32 number, u64 now)
{
	enter_group(t, number, now);
	if (t->hint || t->labelled) /* meanwhile it has */
		t->hint = HINT_UNKNOWN;
}

static __always_inline bool is_inferred(struct task_state *t)
{
	return t->group && group_of(t->group)->origin == ORIGIN_INFERRED;
}

static u32 find_group(struct task_struct *p, struct group_key *key, u32 cpu, u64 now, u32 origin)
{
	u32 *number = bpf_map_lookup_elem(&group_numbers, key);

	return number ? *number : make_group(p, key, cpu, now, origin);
}
