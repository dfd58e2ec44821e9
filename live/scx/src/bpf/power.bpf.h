/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Clock frequency. Where the governor is schedutil, a CPU of sched_ext runs at full speed unless the scheduler says what it
 * needs (sugov_get_util() of kernel/sched/cpufreq_schedutil.c).
 */
#pragma once

/* At a tick, and when a CPU goes idle: says what speed it needs, once a slice. */
static __always_inline void set_speed(u32 cpu, u64 now)
{
	struct cpu_state *c = cpu_of(cpu);
	u64 window = elapsed(c->used_at, now);

	if (!sets_speed || window < policy.slice_max)
		return;
	c->used = warmq_used(c->used, c->busy, window);
	c->busy = 0;
	c->used_at = now;
	scx_bpf_cpuperf_set(cpu, warmq_speed(c->used));
}
