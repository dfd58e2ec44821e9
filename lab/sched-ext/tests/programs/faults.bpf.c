/* SPDX-License-Identifier: GPL-2.0-only */
/* A scheduler with one queue and one fault, for each of which the kernel ejects it. */
#include "scx.h"

#define SHARED 7

enum {
	NONE, NO_SUCH_QUEUE, NO_SUCH_CPU, INSERTS_TWICE, VTIME_IN_BUILTIN, MIXES, LOOPS, LOSES, WRITES_ANYWHERE, SAYS,
	CANNOT_BEGIN, NO_SUCH_QUEUE_TO_TAKE_FROM, WRITES_FAR_BEYOND, WRITES_AT_THE_END,
	NOT_LOCAL_AT_ONCE, KICKS_BOTH_WAYS, LOOKS_THROUGH_NOTHING,
};

volatile const u32 fault;
u32 enqueued;

KFUNC void scx_bpf_dsq_reenq(u64 id, u64 flags);

KFUNC void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 id, u64 slice, u64 vtime, u64 flags);

CALLBACK(faults_select_cpu)
{
	return fault == NO_SUCH_CPU ? 4711 : (int)ctx[1];
}

static NOINLINE int say(u64 number)
{
	static char format[] = "%s %d of %llx%%", text[] = "task";
	u64 data[3] = { (u64)text, number, 0xbeef };

	scx_bpf_error_bstr(format, data, sizeof(data));
	return 0;
}

CALLBACK(faults_enqueue)
{
	struct task_struct *p = (void *)ctx[0];
	u64 flags = ctx[1], i;

	enqueued++;
	switch (fault) {
	case NO_SUCH_QUEUE:
		scx_bpf_dsq_insert(p, 99, 0, flags);
		return 0;
	case VTIME_IN_BUILTIN:
		scx_bpf_dsq_insert_vtime(p, DSQ_GLOBAL, 0, 1, flags);
		return 0;
	case MIXES:
		if (enqueued & 1)
			scx_bpf_dsq_insert(p, SHARED, 0, flags);
		else
			scx_bpf_dsq_insert_vtime(p, SHARED, 0, 1, flags);
		return 0;
	case LOOPS:
		for (i = 0; i < 1ULL << 40; i++)
			asm volatile("" ::: "memory");
		return 0;
	case LOSES:
		return 0;
	case WRITES_ANYWHERE:
		*(volatile u32 *)0xffff900000000000ULL = 1;
		return 0;
	case WRITES_FAR_BEYOND: /* far behind what the heap has */
		*(volatile u32 *)0xffff88f000000000ULL = 1;
		return 0;
	case WRITES_AT_THE_END:
		*(volatile u32 *)-2ULL = 1;
		return 0;
	case NOT_LOCAL_AT_ONCE:
		scx_bpf_dsq_insert(p, SHARED, 0, 1ULL << 33);
		return 0;
	case KICKS_BOTH_WAYS:
		scx_bpf_kick_cpu(0, 3);
		break;
	case LOOKS_THROUGH_NOTHING:
		scx_bpf_dsq_reenq(99, 0);
		break;
	case SAYS:
		return say(enqueued);
	}
	scx_bpf_dsq_insert(p, SHARED, 0, flags);
	if (fault == INSERTS_TWICE)
		scx_bpf_dsq_insert(p, SHARED, 0, flags);
	return 0;
}

CALLBACK(faults_dispatch)
{
	scx_bpf_dsq_move_to_local(fault == NO_SUCH_QUEUE_TO_TAKE_FROM ? 99 : SHARED);
	return 0;
}

SEC("struct_ops.s/faults_init") int faults_init(u64 *ctx)
{
	if (fault == CANNOT_BEGIN)
		return -12;
	return scx_bpf_create_dsq(SHARED, -1);
}

SEC(".struct_ops.link") struct sched_ext_ops faults = {
	.select_cpu = (void *)faults_select_cpu,
	.enqueue = (void *)faults_enqueue,
	.dispatch = (void *)faults_dispatch,
	.init = (void *)faults_init,
	.timeout_ms = 2000,
	.name = "faults",
};
