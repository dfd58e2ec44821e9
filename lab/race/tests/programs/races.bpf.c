/* SPDX-License-Identifier: GPL-2.0-only */
/* A scheduler with one queue, and races that can be cured one by one. */
#include "../../../sched-ext/tests/programs/scx.h"

#define SHARED 0

KFUNC s32 scx_bpf_task_cpu(const struct task_struct *p);

volatile const bool kicks_all;  /* cures the lost wakeup */
volatile const bool counts_once; /* cures the count that is wrong */
volatile const bool has_queue = 1; /* cures the insert into a queue that is not there */

u64 idle_cpus; /* a bit each */
u64 running;   /* CPUs that run a task */
u64 runs[8];   /* whether a CPU does */

/* Adds, as if nobody else did at the same time, or in one step. */
static void count(u64 change)
{
	if (counts_once)
		__sync_fetch_and_add(&running, change);
	else
		*(volatile u64 *)&running += change;
}

CALLBACK(races_select_cpu)
{
	return ctx[1];
}

/* A CPU that goes idle after it was looked at, and before the task is in the queue, sleeps beside it. */
CALLBACK(races_enqueue)
{
	u64 idle = kicks_all ? 3 : *(volatile u64 *)&idle_cpus;

	scx_bpf_dsq_insert((void *)ctx[0], has_queue ? SHARED : 7, 5000000, ctx[1]);
	if (idle & 1)
		scx_bpf_kick_cpu(0, 1);
	if (idle & 2)
		scx_bpf_kick_cpu(1, 1);
	return 0;
}

CALLBACK(races_dispatch)
{
	scx_bpf_dsq_move_to_local(SHARED);
	return 0;
}

CALLBACK(races_update_idle)
{
	u64 bit = 1ULL << (ctx[0] & 7);

	if (ctx[1])
		__sync_fetch_and_or(&idle_cpus, bit);
	else
		__sync_fetch_and_and(&idle_cpus, ~bit);
	return 0;
}

CALLBACK(races_running)
{
	runs[scx_bpf_task_cpu((void *)ctx[0]) & 7] = 1;
	count(1);
	return 0;
}

CALLBACK(races_stopping)
{
	runs[scx_bpf_task_cpu((void *)ctx[0]) & 7] = 0;
	count(-1);
	return 0;
}

SEC("syscall")
int race_check(void *ctx)
{
	u64 all = 0;
	int i;

	for (i = 0; i < 8; i++)
		all += *(volatile u64 *)&runs[i];
	return all != running;
}

SEC("struct_ops.s/races_init") int races_init(u64 *ctx)
{
	return scx_bpf_create_dsq(SHARED, -1);
}

SEC(".struct_ops.link")
struct sched_ext_ops races_ops = {
	.select_cpu = (void *)races_select_cpu,
	.enqueue = (void *)races_enqueue,
	.dispatch = (void *)races_dispatch,
	.update_idle = (void *)races_update_idle,
	.running = (void *)races_running,
	.stopping = (void *)races_stopping,
	.init = (void *)races_init,
	.flags = 1, /* SCX_OPS_KEEP_BUILTIN_IDLE */
	.name = "races",
};
