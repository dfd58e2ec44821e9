/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Clock frequency: what a CPU needs for the work that it has. Included by decide.h. */
#ifndef WARMQ_DECIDE_POWER_H
#define WARMQ_DECIDE_POWER_H

/* Full speed (SCX_CPUPERF_ONE). */
#define WARMQ_FULL_SPEED 1024U

/*
 * The part of a CPU's time that its tasks need, of 1024, after one more `window` of which they had `busy` ns. It rises at
 * once, so that who begins to compute does not wait for it, and falls by a quarter of the difference.
 */
WARMQ_INLINE u32 warmq_used(u32 before, u64 busy, u64 window)
{
	u64 used = busy >= window ? WARMQ_FULL_SPEED : busy * WARMQ_FULL_SPEED / window;

	return (u32)(used >= before ? used : (3 * (u64)before + used) / 4);
}

/* The speed that is asked for, of 1024: a quarter more than what is used, as the kernel does (map_util_perf()). */
WARMQ_INLINE u32 warmq_speed(u32 used)
{
	u32 speed = used + used / 4;

	return speed < WARMQ_FULL_SPEED ? speed : WARMQ_FULL_SPEED;
}

#endif /* WARMQ_DECIDE_POWER_H */
