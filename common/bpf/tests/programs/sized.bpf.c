/* SPDX-License-Identifier: GPL-2.0-only */
/* What user space shapes before it loads: sizes of maps and arrays, programs that it turns on, callbacks that
 * it takes out. */
#include "../../../../lab/bpf-run/tests/programs/kernel.h"

struct sched_ext_ops {
	void (*tick)(u64 *ctx);
	void (*running)(u64 *ctx);
	char name[128];
};

struct pair { u64 first, second; };

struct { UINT(type, QUEUE); TYPE(value, u32); } queue SEC(".maps");
struct { UINT(type, QUEUE); TYPE(value, u32); } unused SEC(".maps");
struct pair per_cpu[1] SEC(".data.per_cpu");
u64 one[1];

SEC("struct_ops/tick") void tick(u64 *ctx)
{
	per_cpu[ctx[0]].first = one[0];
}

SEC("struct_ops/running") void running(u64 *ctx)
{
	map_push(&queue, &one, 0);
}

SEC("?tp_btf/sched_switch") int on_switch(u64 *ctx)
{
	ktime_get_ns();
	return 0;
}

SEC(".struct_ops.link") struct sched_ext_ops sized = {
	.tick = (void *)tick,
	.running = (void *)running,
	.name = "sized",
};
