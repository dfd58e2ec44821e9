// SPDX-License-Identifier: GPL-2.0-only
/* One queue for all, and counters in each place where schedulers have them, beside what is none. */
#include "scx.h"

#define SHARED 0

enum step { STEP_ENQUEUED, STEP_RAN, STEP_STOPPED, STEP_LONGEST, NR_STEPS };

volatile const u64 slice = 5000000; /* is set */
u64 unused = 7; /* nobody writes it */
u64 nr_enqueued;
u32 nr_ran; /* atomic */
s64 nr_waiting; /* more and less */
u64 last_at; /* a time */
u64 by_cpu[64];
u64 by_kind[3];
struct { u64 since; u64 steps[NR_STEPS]; } cpus[8];
struct { u32 before; struct { u64 runs, at; } inner; } totals;

struct { UINT(type, PERCPU_ARRAY); UINT(max_entries, 2); UINT(key_size, 4); UINT(value_size, 8); } stats SEC(".maps");
struct own { u64 at, stops; };
struct { UINT(type, PERCPU_ARRAY); UINT(max_entries, 1); TYPE(key, u32); TYPE(value, struct own); } own SEC(".maps");
struct { UINT(type, HASH); UINT(max_entries, 8); TYPE(key, u32); TYPE(value, u64); } hashed SEC(".maps");

static NOINLINE int count(enum step step)
{
	u32 cpu = get_cpu();

	if (cpu < 8 && step < NR_STEPS)
		cpus[cpu].steps[step]++;
	return 0;
}

static void add_to(void *map, u32 key)
{
	u64 *value = map_lookup(map, &key);

	if (value)
		(*value)++;
}

CALLBACK(counting_enqueue)
{
	nr_enqueued++;
	__sync_fetch_and_add(&nr_waiting, 1);
	last_at = ktime_get_ns();
	by_kind[ctx[1] & 1]++;
	count(STEP_ENQUEUED);
	add_to(&stats, ctx[1] & 1);
	add_to(&hashed, 0);
	scx_bpf_dsq_insert((void *)ctx[0], SHARED, slice, ctx[1]);
	return 0;
}

CALLBACK(counting_dispatch)
{
	scx_bpf_dsq_move_to_local(SHARED);
	return 0;
}

CALLBACK(counting_running)
{
	__sync_fetch_and_add(&nr_ran, 1);
	__sync_fetch_and_sub(&nr_waiting, 1);
	by_cpu[get_cpu() & 63]++;
	totals.inner.runs += unused;
	count(STEP_RAN);
	return 0;
}

CALLBACK(counting_stopping)
{
	u32 zero = 0, cpu = get_cpu();
	struct own *mine = map_lookup(&own, &zero);

	if (mine) {
		mine->stops++;
		mine->at = last_at;
	}
	if (cpu < 8)
		cpus[cpu].steps[STEP_LONGEST] = last_at;
	count(STEP_STOPPED);
	return 0;
}

SEC("struct_ops.s/counting_init") int counting_init(u64 *ctx)
{
	u32 key = 0;
	u64 value = 0;

	map_update(&hashed, &key, &value, 0);
	return scx_bpf_create_dsq(SHARED, -1);
}

SEC(".struct_ops.link") struct sched_ext_ops counting = {
	.enqueue = (void *)counting_enqueue,
	.dispatch = (void *)counting_dispatch,
	.running = (void *)counting_running,
	.stopping = (void *)counting_stopping,
	.init = (void *)counting_init,
	.name = "counting",
};
