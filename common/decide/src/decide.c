/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Each function and number of decide.h that Rust uses, as a symbol. Nothing is computed here. */
#include "decide.h"

const u64 decide_weight_nice_0 = WARMQ_WEIGHT_NICE_0;
const u64 decide_weight_min = WARMQ_WEIGHT_MIN;
const u32 decide_firm = WARMQ_FIRM;
const u32 decide_familiar = WARMQ_FAMILIAR;
const u32 decide_partners = WARMQ_PARTNERS;
const u32 decide_core_cpus = WARMQ_CORE_CPUS;
const u64 decide_turns = WARMQ_TURNS;

/* The Rust side has the same structs, and lib.rs asserts the same sizes. */
_Static_assert(sizeof(struct warmq_domain) == 3 * sizeof(u64), "struct Domain in lib.rs");
_Static_assert(sizeof(struct warmq_entity) == 4 * sizeof(u64), "struct Entity in lib.rs");
_Static_assert(sizeof(struct warmq_wakeup) == 7 * sizeof(u64), "struct Wakeup in wakeup.rs");
_Static_assert(sizeof(struct warmq_policy) == 11 * sizeof(u64), "struct Policy in lib.rs");

bool decide_before(u64 a, u64 b)
{
	return warmq_before(a, b);
}

u64 decide_clamp(u64 value, u64 low, u64 high)
{
	return warmq_clamp(value, low, high);
}

u64 decide_delta_vruntime(u64 ran, u64 weight)
{
	return warmq_delta_vruntime(ran, weight);
}

u64 decide_entity_vruntime(const struct warmq_entity *entity)
{
	return warmq_entity_vruntime(entity);
}

u64 decide_vruntime(const struct warmq_entity *entity, u64 vtime)
{
	return warmq_vruntime(entity, vtime);
}

u64 decide_migrate_vruntime(u64 vruntime, u64 from_avg, u64 to_avg)
{
	return warmq_migrate_vruntime(vruntime, from_avg, to_avg);
}

u64 decide_scale_lag(const struct warmq_policy *policy, const struct warmq_domain *domain, u64 lag)
{
	return warmq_scale_lag(policy, domain, lag);
}

u64 decide_place_wakeup(const struct warmq_policy *policy, const struct warmq_domain *domain, u64 vruntime, u64 weight,
			bool keeps_lag)
{
	return warmq_place_wakeup(policy, domain, vruntime, weight, keeps_lag);
}

u64 decide_place_among(const struct warmq_policy *policy, const struct warmq_entity *entity, u64 cpus, u64 vtime, u64 weight,
		       bool keeps_lag)
{
	return warmq_place_among(policy, entity, cpus, vtime, weight, keeps_lag);
}

u64 decide_lag_min(const struct warmq_policy *policy, const struct warmq_domain *domain, u64 weight, u64 ran)
{
	return warmq_lag_min(policy, domain, weight, ran);
}

u64 decide_clamp_queued(const struct warmq_domain *domain, u64 vruntime)
{
	return warmq_clamp_queued(domain, vruntime);
}

u64 decide_forgive(const struct warmq_policy *policy, const struct warmq_domain *domain, u64 vruntime, u64 weight)
{
	return warmq_forgive(policy, domain, vruntime, weight);
}

u64 decide_place_awake(const struct warmq_policy *policy, const struct warmq_domain *domain, u64 vruntime, u64 weight)
{
	return warmq_place_awake(policy, domain, vruntime, weight);
}

u64 decide_join(struct warmq_entity *entity, u64 vruntime)
{
	return warmq_join(entity, vruntime);
}

u64 decide_avg_add(const struct warmq_policy *policy, u64 avg, u64 weight, u64 vruntime, u64 joining)
{
	return warmq_avg_add(policy, avg, weight, vruntime, joining);
}

u64 decide_avg_sub(const struct warmq_policy *policy, u64 avg, u64 weight, u64 vruntime, u64 leaving)
{
	return warmq_avg_sub(policy, avg, weight, vruntime, leaving);
}

u64 decide_debt(u64 avg, u64 vruntime, u64 weight)
{
	return warmq_debt(avg, vruntime, weight);
}

u64 decide_pick_key(const struct warmq_policy *policy, struct warmq_entity *entity, const struct warmq_domain *domain,
		u64 succession, u64 deadline)
{
	return warmq_pick_key(policy, entity, domain, succession, deadline);
}

u64 decide_succession(const struct warmq_policy *policy, bool group)
{
	return warmq_succession(policy, group);
}

void decide_clamp_entity(const struct warmq_policy *policy, struct warmq_entity *entity, const struct warmq_domain *domain,
			 u64 succession)
{
	warmq_clamp_entity(policy, entity, domain, succession);
}

u64 decide_share(u64 weight, u64 parent_weight, u64 active)
{
	return warmq_share(weight, parent_weight, active);
}

u64 decide_usable_weight(const struct warmq_domain *domain, u64 runnable, u64 cpus, u64 weight, u64 own)
{
	return warmq_usable_weight(domain, runnable, cpus, weight, own);
}

u64 decide_slice(const struct warmq_policy *policy, u64 runnable, u64 cpus)
{
	return warmq_slice(policy, runnable, cpus);
}

u64 decide_tick_length(u64 tick, u64 since)
{
	return warmq_tick_length(tick, since);
}

bool decide_slice_ends(u64 left, u64 tick)
{
	return warmq_slice_ends(left, tick);
}

u64 decide_expect(u64 expected, u64 ran)
{
	return warmq_expect(expected, ran);
}

u64 decide_request(u64 expected, u64 ran, u64 slice)
{
	return warmq_request(expected, ran, slice);
}

u64 decide_deadline(const struct warmq_domain *domain, u64 vruntime, u64 weight, u64 request)
{
	return warmq_deadline(domain, vruntime, weight, request);
}

u64 decide_wait_bound(const struct warmq_policy *policy, const struct warmq_domain *domain, u64 weight)
{
	return warmq_wait_bound(policy, domain, weight);
}

u64 decide_late_after(const struct warmq_policy *policy, const struct warmq_domain *domain, u64 weight)
{
	return warmq_late_after(policy, domain, weight);
}

u64 decide_wakeup_granularity(const struct warmq_policy *policy, u64 sleeps, u64 weight)
{
	return warmq_wakeup_granularity(policy, sleeps, weight);
}

u32 decide_wakeup_preempts(const struct warmq_policy *policy, const struct warmq_wakeup *wakeup)
{
	return (u32)warmq_wakeup_preempts(policy, wakeup);
}

u32 decide_core_gain(u32 busy, u32 busy_there, u32 reach)
{
	return warmq_core_gain(busy, busy_there, reach);
}

bool decide_group_comes_along(u64 weight, u64 here, u64 there)
{
	return warmq_group_comes_along(weight, here, there);
}

bool decide_leaves_core(const struct warmq_policy *policy, u32 reach, u64 lasted, u64 since)
{
	return warmq_leaves_core(policy, reach, lasted, since);
}

u64 decide_nearness(u32 domain, u32 other, u32 domains, u32 distance)
{
	return warmq_nearness(domain, other, domains, distance);
}

bool decide_crosses_node(const struct warmq_policy *policy, u64 waiting, u64 cpus, u64 lasted)
{
	return warmq_crosses_node(policy, waiting, cpus, lasted);
}

bool decide_founds_far(const struct warmq_policy *policy, u64 near, u64 near_cpus, u64 far, u64 far_cpus)
{
	return warmq_founds_far(policy, near, near_cpus, far, far_cpus);
}

bool decide_batch_goes_on(const struct warmq_policy *policy, u64 used, bool others_wait)
{
	return warmq_batch_goes_on(policy, used, others_wait);
}

bool decide_less_loaded(u64 weight, u64 cpus, u64 other_weight, u64 other_cpus)
{
	return warmq_less_loaded(weight, cpus, other_weight, other_cpus);
}

bool decide_calmer(u64 weight, u64 cpus, u64 core, u64 other_weight, u64 other_cpus, u64 other_core)
{
	return warmq_calmer(weight, cpus, core, other_weight, other_cpus, other_core);
}

u64 decide_newcomers(const struct warmq_policy *policy, u64 founded, u64 age)
{
	return warmq_newcomers(policy, founded, age);
}

u64 decide_expected_load(u64 weight, u64 newcomers, u64 cpus)
{
	return warmq_expected_load(weight, newcomers, cpus);
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

u32 decide_relieve(const struct warmq_policy *policy, u64 excess, u64 managed, u64 unmanaged, u64 task, u64 movable,
		   u64 lasted)
{
	return (u32)warmq_relieve(policy, excess, managed, unmanaged, task, movable, lasted);
}

u32 decide_in_turn(u32 turns, bool again, bool woken)
{
	return warmq_in_turn(turns, again, woken);
}

u32 decide_meet(u32 wakee, u32 waker, u32 *firmness)
{
	return (u32)warmq_meet(wakee, waker, firmness);
}

u32 decide_fade(u32 firmness)
{
	return warmq_fade(firmness);
}

struct warmq_policy decide_default_policy(void)
{
	struct warmq_policy policy;

	warmq_default_policy(&policy);
	return policy;
}

u32 decide_used(u32 before, u64 busy, u64 window)
{
	return warmq_used(before, busy, window);
}

u32 decide_speed(u32 used)
{
	return warmq_speed(used);
}
