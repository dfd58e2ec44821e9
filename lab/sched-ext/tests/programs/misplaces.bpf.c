/* SPDX-License-Identifier: GPL-2.0-only */
/* A scheduler that is wrong about who runs where or next, in one way of three. Real kernels load it, too. */
#include "scx.h"

#define SHARED 7
#define SLICE 3000000

enum { ALL_ON_CPU_0, WAKES_ON_THE_NEXT_CPU, OLDEST_FIRST };

volatile const u32 way;

struct task_struct___placed { int pid, nr_cpus_allowed; } OF_KERNEL;

KFUNC void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 id, u64 slice, u64 vtime, u64 flags);

CALLBACK(misplaces_select_cpu)
{
	struct task_struct___placed *p = (void *)ctx[0];
	u32 prev = ctx[1], cpus = p->nr_cpus_allowed;

	return way == WAKES_ON_THE_NEXT_CPU && cpus > 1 ? (prev + 1) % cpus : prev;
}

CALLBACK(misplaces_enqueue)
{
	struct task_struct *p = (void *)ctx[0];
	u64 flags = ctx[1];

	if (way == OLDEST_FIRST)
		scx_bpf_dsq_insert_vtime(p, SHARED, SLICE, p->pid, flags);
	else if (way == ALL_ON_CPU_0 && ((struct task_struct___placed *)p)->nr_cpus_allowed > 1)
		scx_bpf_dsq_insert(p, DSQ_LOCAL_ON, SLICE, flags);
	else
		scx_bpf_dsq_insert(p, DSQ_LOCAL, SLICE, flags);
	return 0;
}

CALLBACK(misplaces_dispatch)
{
	scx_bpf_dsq_move_to_local(SHARED);
	return 0;
}

SEC("struct_ops.s/misplaces_init") int misplaces_init(u64 *ctx)
{
	return scx_bpf_create_dsq(SHARED, -1);
}

SEC(".struct_ops.link") struct sched_ext_ops misplaces = {
	.select_cpu = (void *)misplaces_select_cpu,
	.enqueue = (void *)misplaces_enqueue,
	.dispatch = (void *)misplaces_dispatch,
	.init = (void *)misplaces_init,
	.name = "misplaces",
};
