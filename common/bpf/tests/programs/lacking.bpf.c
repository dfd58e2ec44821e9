// SPDX-License-Identifier: GPL-2.0-only
/* What no kernel has, or no lab: each is reported with its line. */
#include "../../../../lab/bpf-run/tests/programs/kernel.h"

struct task_struct___mine { u32 not_there; u32 pid; } OF_KERNEL;
struct nobody_knows { int field; } OF_KERNEL;
struct { UINT(type, 27); UINT(max_entries, 4096); } ring SEC(".maps");

KFUNC void scx_bpf_not_there(s32 cpu);
KFUNC int not_there_either;
u64 result;

SEC("tp_btf/sched_switch") int lacking(u64 *ctx)
{
	struct task_struct___mine *p = (void *)ctx[0];
	struct nobody_knows *who = (void *)ctx[1];

	result = p->not_there + p->pid;
	result += who->field;
	result += not_there_either;
	scx_bpf_not_there(3);
	spin_lock(0);
	return map_push(&ring, ctx, 0);
}

SEC("kprobe/nobody") int left_out(u64 *ctx)
{
	return ktime_get_ns();
}
