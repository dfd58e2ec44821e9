/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Run time and vruntime, in the time of an entity and of a domain. Included by decide.h. */
#ifndef WARMQ_DECIDE_VRUNTIME_H
#define WARMQ_DECIDE_VRUNTIME_H

/* a is earlier than b. */
WARMQ_INLINE bool warmq_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

/* `value`, kept between `low` and `high` (low before high). */
WARMQ_INLINE u64 warmq_clamp(u64 value, u64 low, u64 high)
{
	if (warmq_before(value, low))
		return low;
	return warmq_before(high, value) ? high : value;
}

/*
 * By how much vruntime grows when something of `weight` runs for `ran` ns.
 *
 *	dv = ran * w0 / w       w0 := WARMQ_WEIGHT_NICE_0   w := weight, at least WARMQ_WEIGHT_MIN
 *
 * With the total weight of a domain or entity the same formula gives the growth of its V: a task of
 * weight w moves the mean by w/W of its own dv, which is ran * w0 / W.
 * Bounds: exact for ran < 2^64 / w0, 50 hours without a charge.
 */
WARMQ_INLINE u64 warmq_delta_vruntime(u64 ran, u64 weight)
{
	if (weight == WARMQ_WEIGHT_NICE_0)
		return ran;
	if (weight < WARMQ_WEIGHT_MIN)
		weight = WARMQ_WEIGHT_MIN;
	return ran * WARMQ_WEIGHT_NICE_0 / weight;
}

/* The vruntime of an entity in its domain. */
WARMQ_INLINE u64 warmq_entity_vruntime(const struct warmq_entity *entity)
{
	return entity->avg_vruntime + entity->shift;
}

/* The vruntime in the domain of a member whose vruntime in the entity is `vtime`. */
WARMQ_INLINE u64 warmq_vruntime(const struct warmq_entity *entity, u64 vtime)
{
	return vtime + entity->shift;
}

/*
 * The vruntime in another domain of something that moves there and keeps its lag: v' = V' - (V -
 * v).
 */
WARMQ_INLINE u64 warmq_migrate_vruntime(u64 vruntime, u64 from_avg, u64 to_avg)
{
	return to_avg + (vruntime - from_avg);
}

#endif /* WARMQ_DECIDE_VRUNTIME_H */
