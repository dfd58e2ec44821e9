/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* What a CPU chooses between: entities and their keys; what weights count. Included by decide.h. */
#ifndef WARMQ_DECIDE_PICK_H
#define WARMQ_DECIDE_PICK_H

/* ns that the tasks of an entity may run in succession before another is chosen. */
WARMQ_INLINE u64 warmq_succession(const struct warmq_policy *policy, bool group)
{
	return warmq_longest_run(policy) + (group ? policy->batch_budget : 0);
}

/*
 * Clamps an entity's lag while it is queued: on both sides to lag_max (scaled) and what a succession explains. Needed where an entity cannot get
 * its share however small its vruntime is (a group whose home is one busy CPU): old lag must neither delay others nor the
 * entity itself. Only `shift` changes, so members keep their order.
 *
 * A member's deadline moves with it. It lies ahead of the vruntime by a request, which is no longer than a succession. So
 * what is alone in an entity comes before V whatever it weighs: clamped to lag_max, it would stay ahead of V for ever.
 */
WARMQ_INLINE void warmq_clamp_entity(const struct warmq_policy *policy, struct warmq_entity *entity,
				     const struct warmq_domain *domain, u64 succession)
{
	u64 vruntime = warmq_entity_vruntime(entity), avg = domain->avg_vruntime;
	u64 lag = warmq_lag_most(policy, domain, entity->weight, succession);
	u64 clamped = warmq_clamp(vruntime, avg - lag, avg + warmq_repayable_part(domain, lag));

	if (clamped != vruntime)
		entity->shift = clamped - entity->avg_vruntime;
}

/*
 * The key by which a CPU compares entities; the least is picked. `deadline` is that of the task that
 * the CPU would run next, or go on with, in the entity's time.
 *
 * The key is the later of the entity's vruntime (clamped) and that task's deadline. The first counts
 * where a member has much positive lag among members who had more than their share.
 */
WARMQ_INLINE u64 warmq_pick_key(const struct warmq_policy *policy, struct warmq_entity *entity,
				const struct warmq_domain *domain, u64 succession, u64 deadline)
{
	u64 vruntime, own;

	warmq_clamp_entity(policy, entity, domain, succession);
	vruntime = warmq_entity_vruntime(entity);
	own = warmq_vruntime(entity, deadline);
	return warmq_before(vruntime, own) ? own : vruntime;
}

/*
 * The weight of a task or cgroup within the share of its parent: weight * parent_weight / active,
 * where `active` is the sum of all weights that are active in that parent.
 */
WARMQ_INLINE u64 warmq_share(u64 weight, u64 parent_weight, u64 active)
{
	u64 share = active ? weight * parent_weight / active : weight;

	return share < WARMQ_WEIGHT_MIN ? WARMQ_WEIGHT_MIN : share;
}

/*
 * The part of a task's `weight` that it can use. A task has one CPU at most, so with c CPUs a weight
 * above 1/c of all is worth no more than 1/c:
 *
 *	w' = min(w, (W - own) / (c - 1))    W := domain->weight   own := what W has of this task
 *
 * More would not give it more, but would hold V back, by which the others are judged: they would all
 * seem to have had too much, and have the same. Where there are no more tasks than CPUs nobody
 * competes, and weights stay as they are. Others that are too heavy, too, come down in their turn.
 * `runnable` and `cpus` are those that the task competes with, itself included, and for.
 */
WARMQ_INLINE u64 warmq_usable_weight(const struct warmq_domain *domain, u64 runnable, u64 cpus, u64 weight, u64 own)
{
	u64 others = domain->weight > own ? domain->weight - own : 0, most;

	if (cpus < 2 || runnable <= cpus || !others)
		return weight;
	most = others / (cpus - 1);
	if (most < WARMQ_WEIGHT_MIN)
		most = WARMQ_WEIGHT_MIN;
	return weight < most ? weight : most;
}

#endif /* WARMQ_DECIDE_PICK_H */
