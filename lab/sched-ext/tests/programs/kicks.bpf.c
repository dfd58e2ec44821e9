/* SPDX-License-Identifier: GPL-2.0-only */
/* Tasks of a CPU take turns; ticks of two CPUs kick the other one. */
#include "scx.h"

volatile const u64 flags;      /* of the kicks */
volatile const u32 kicks_of_0; /* ticks of CPU 0 that kick the other one: a bit each */
volatile const u32 kicks_of_1;

u32 ticks[2];

CALLBACK(kicks_select_cpu)
{
	return ctx[1];
}

CALLBACK(kicks_enqueue)
{
	scx_bpf_dsq_insert((void *)ctx[0], DSQ_LOCAL, 5000000, ctx[1]);
	return 0;
}

CALLBACK(kicks_tick)
{
	u32 cpu = get_cpu() & 1, tick = ticks[cpu]++;
	u32 kicks = cpu ? kicks_of_1 : kicks_of_0;

	if (tick < 32 && kicks >> tick & 1)
		scx_bpf_kick_cpu(!cpu, flags);
	return 0;
}

SEC(".struct_ops.link") struct sched_ext_ops kicks_ops = {
	.select_cpu = (void *)kicks_select_cpu,
	.enqueue = (void *)kicks_enqueue,
	.tick = (void *)kicks_tick,
	.timeout_ms = 2000,
	.name = "kicks",
};
