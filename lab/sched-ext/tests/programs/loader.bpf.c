/* SPDX-License-Identifier: GPL-2.0-only */
/* Ends at a tick with what its loader did as its error: the CPU it was bound to, an entry of a map, the
 * arena's topology; and with clocks and counts that the kernel keeps. */
#include "scx.h"

struct rq { u64 clock, clock_task, clock_pelt, lost_idle_time; } OF_KERNEL;
struct scx_event_stats { s64 SCX_EV_DISPATCH_KEEP_LAST, SCX_EV_REFILL_SLICE_DFL; } OF_KERNEL;
struct entry { u32 cpu, nodes; };
struct data { u64 number[5]; };

extern struct rq runqueues __attribute__((section(".ksyms")));
KFUNC void scx_bpf_events(struct scx_event_stats *events, u64 size);
KFUNC void __arena *bpf_arena_alloc_pages(void *map, void __arena *address, u32 pages, int node, u64 flags);

static void *(*this_cpu)(const void *variable) = (void *)154;

struct { UINT(type, ARENA); UINT(map_flags, 1 << 10); UINT(max_entries, 16); } arena SEC(".maps");
struct { UINT(type, HASH); UINT(max_entries, 4); TYPE(key, u32); TYPE(value, struct entry); } entries SEC(".maps");

u32 bound_to, levels, nodes;
u64 task_size, cpus;
u64 __arena *page;
char all[512];
struct data kept;

SEC("syscall") int arena_init(u64 *args)
{
	task_size = args[1];
	return args[0] != 8 || args[2];
}

SEC("syscall") int arena_topology_init(u32 *children)
{
	levels = children[0] * 1000 + children[1] * 100 + children[2] * 10 + children[3];
	return children[4];
}

SEC("syscall") int arena_alloc_mask(u64 *args)
{
	if (!page)
		page = bpf_arena_alloc_pages(&arena, 0, 1, -1, 0);
	args[0] = (u64)page;
	return !page;
}

SEC("syscall") int arena_topology_node_init(u64 *args)
{
	if (args[0] != (u64)page || args[1])
		return -1;
	cpus = cpus << 4 | *page;
	nodes++;
	return 0;
}

SEC("struct_ops.s/loader_init") int loader_init(u64 *ctx)
{
	bound_to = get_cpu();
	return 0;
}

/* What the clock says is not exactly the time of the call. */
static bool is_now(u64 clock)
{
	return ktime_get_ns() - clock < 1000000;
}

CALLBACK(loader_tick)
{
	static char format[] = "bound to %u, entry %u, task %llu, levels %u, nodes %u of %llx, clocks %d, counts %lld %lld";
	struct rq *rq = this_cpu(&runqueues);
	bool clocks = is_now(rq->clock) && is_now(rq->clock_task) && is_now(rq->clock_pelt) && !rq->lost_idle_time;
	u32 key = 1;
	struct entry *entry = map_lookup(&entries, &key);
	u64 data[9] = { bound_to, entry ? entry->cpu * 10 + entry->nodes : 0, task_size, levels, nodes, cpus, clocks };

	scx_bpf_events((void *)all, sizeof(all));
	data[7] = ((struct scx_event_stats *)all)->SCX_EV_DISPATCH_KEEP_LAST;
	data[8] = ((struct scx_event_stats *)all)->SCX_EV_REFILL_SLICE_DFL;
	if (data[7])
		scx_bpf_error_bstr(format, data, sizeof(data));
	return 0;
}

SEC(".struct_ops.link") struct sched_ext_ops loader = {
	.tick = (void *)loader_tick,
	.init = (void *)loader_init,
	.name = "loader",
};
