/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* decide.h, once for each function that others than C call. Says nothing of its own. */
#include "decide.h"

/* The Rust side has the same structs: see the test of their sizes in lib.rs. */
_Static_assert(sizeof(struct warmq_domain) == 3 * sizeof(u64), "struct Domain in lib.rs");
_Static_assert(sizeof(struct warmq_entity) == 3 * sizeof(u64), "struct Entity in lib.rs");
_Static_assert(sizeof(struct warmq_policy) == 11 * sizeof(u64), "struct Policy in lib.rs");

bool decide_before(u64 a, u64 b)
{
	return warmq_before(a, b);
}

u64 decide_clamp(u64 value, u64 low, u64 high)
{
	return warmq_clamp(value, low, high);
}

u64 decide_virtual(u64 ran, u64 weight)
{
	return warmq_virtual(ran, weight);
}

u64 decide_entity_position(const struct warmq_entity *entity)
{
	return warmq_entity_position(entity);
}

u64 decide_position(const struct warmq_entity *entity, u64 vtime)
{
	return warmq_position(entity, vtime);
}

u64 decide_emigrate(u64 position, u64 from_clock, u64 to_clock)
{
	return warmq_emigrate(position, from_clock, to_clock);
}

u64 decide_shrink(const struct warmq_policy *policy, const struct warmq_domain *domain, u64 apart)
{
	return warmq_shrink(policy, domain, apart);
}

u64 decide_place(const struct warmq_policy *policy, const struct warmq_domain *domain, u64 position, bool counts)
{
	return warmq_place(policy, domain, position, counts);
}

u64 decide_most_debt(const struct warmq_policy *policy, const struct warmq_domain *domain, u64 weight, u64 ran)
{
	return warmq_most_debt(policy, domain, weight, ran);
}

u64 decide_forgive(const struct warmq_domain *domain, u64 position)
{
	return warmq_forgive(domain, position);
}

u64 decide_keep_place(const struct warmq_policy *policy, const struct warmq_domain *domain, u64 position, u64 weight)
{
	return warmq_keep_place(policy, domain, position, weight);
}

u64 decide_first_position(const struct warmq_policy *policy, const struct warmq_domain *domain)
{
	return warmq_first_position(policy, domain);
}

u64 decide_join(struct warmq_entity *entity, u64 position)
{
	return warmq_join(entity, position);
}

u64 decide_mean_with(const struct warmq_policy *policy, u64 clock, u64 weight, u64 at, u64 joining)
{
	return warmq_mean_with(policy, clock, weight, at, joining);
}

u64 decide_mean_without(const struct warmq_policy *policy, u64 clock, u64 weight, u64 at, u64 leaving)
{
	return warmq_mean_without(policy, clock, weight, at, leaving);
}

u64 decide_turn(const struct warmq_policy *policy, struct warmq_entity *entity, const struct warmq_domain *domain,
		u64 succession, u64 vtime)
{
	return warmq_turn(policy, entity, domain, succession, vtime);
}

u64 decide_succession(const struct warmq_policy *policy, bool group)
{
	return warmq_succession(policy, group);
}

void decide_bound_entity(const struct warmq_policy *policy, struct warmq_entity *entity, const struct warmq_domain *domain,
			 u64 succession)
{
	warmq_bound_entity(policy, entity, domain, succession);
}

u64 decide_share(u64 weight, u64 parent_weight, u64 active)
{
	return warmq_share(weight, parent_weight, active);
}

u64 decide_slice(const struct warmq_policy *policy, u64 waiting, u64 cpus)
{
	return warmq_slice(policy, waiting, cpus);
}

u64 decide_wait_bound(const struct warmq_policy *policy, const struct warmq_domain *domain, u64 weight)
{
	return warmq_wait_bound(policy, domain, weight);
}

u64 decide_granularity(const struct warmq_policy *policy, u64 sleeps, u64 weight)
{
	return warmq_granularity(policy, sleeps, weight);
}

u32 decide_preempts(const struct warmq_policy *policy, u64 waking, u64 running, u64 sleeps, u64 weight, u64 slept,
		    u64 since)
{
	return (u32)warmq_preempts(policy, waking, running, sleeps, weight, slept, since);
}

bool decide_batch_goes_on(const struct warmq_policy *policy, u64 used, bool others_wait)
{
	return warmq_batch_goes_on(policy, used, others_wait);
}

bool decide_less_loaded(u64 weight, u64 cpus, u64 other_weight, u64 other_cpus)
{
	return warmq_less_loaded(weight, cpus, other_weight, other_cpus);
}

bool decide_imbalanced(const struct warmq_policy *policy, u64 busy, u64 busy_cpus, u64 calm, u64 calm_cpus)
{
	return warmq_imbalanced(policy, busy, busy_cpus, calm, calm_cpus);
}

u64 decide_excess(u64 busy, u64 busy_cpus, u64 calm, u64 calm_cpus)
{
	return warmq_excess(busy, busy_cpus, calm, calm_cpus);
}

bool decide_better_group(u64 weight, u64 best, u64 excess)
{
	return warmq_better_group(weight, best, excess);
}

u32 decide_relieve(const struct warmq_policy *policy, u64 excess, u64 managed, u64 unmanaged, u64 movable, u64 lasted)
{
	return (u32)warmq_relieve(policy, excess, managed, unmanaged, movable, lasted);
}

u32 decide_meet(u32 wakee, u32 waker, u32 *firmness)
{
	return (u32)warmq_meet(wakee, waker, firmness);
}

u32 decide_fade(u32 firmness)
{
	return warmq_fade(firmness);
}

void decide_default_policy(struct warmq_policy *policy)
{
	warmq_default_policy(policy);
}
