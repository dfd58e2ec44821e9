/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ring buffers, and how an event gets into one:
 *
 *	struct NAME_event *event = BEGIN(NAME);
 *	if (!event)
 *		return 0;
 *	event->field = ...;
 *	return end(event);
 */
#ifndef RING_BPF_H
#define RING_BPF_H

/* More CPUs than this no kernel for PCs has. */
#define MOST_CPUS 8192

/*
 * What comes before the fields of an event. The reader takes the first 16 bytes; what follows is
 * the event as a page of tracefs would have it.
 */
struct event_head {
	u64 time;
	/* Events of this CPU that found no room since the one before. */
	u32 lost;
	/* How submitting it wakes the reader. */
	u32 wakes;
	u16 common_type;
	u8 common_flags;
	u8 common_preempt_count;
	s32 common_pid;
};
#define EVENT_AT 16

#include "events.bpf.h"

/* Whether events are recorded. It begins and ends for all events at once. */
volatile bool recording;

/* The size of a ring is eight times two to the power of this. */
const volatile u32 step_shift = 20;

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

/* The ring of each CPU that was online at the start. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, MOST_CPUS);
	__type(key, u32);
	__array(values, struct ring);
} rings SEC(".maps");

/* What is known of a CPU. */
struct cpu_state {
	/* Events that found no room, and that nothing in its ring reports yet. */
	u64 lost;
	/* The interrupts and softirqs that it is serving (context.bpf.h). */
	u32 hardirqs, softirqs;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu_state);
} cpus SEC(".maps");

static __always_inline struct cpu_state *this_cpu(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&cpus, &zero);
}

static __always_inline u8 context_flags(const struct cpu_state *cpu);

/*
 * How submitting the event of `size` bytes that was just reserved wakes the reader: not at all while
 * the ring is less than half full, and then with every eighth. An interrupt's event may cross a mark
 * together with this one, so that neither sees it crossed; the next mark is near.
 */
static __always_inline u32 wakes(void *ring, u64 size)
{
	u64 held = bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA);
	u64 before = held - ((size + BPF_RINGBUF_HDR_SZ + 7) & ~7ULL);

	if (held >> step_shift >= 4 && held >> step_shift != before >> step_shift)
		return BPF_RB_FORCE_WAKEUP;
	return BPF_RB_NO_WAKEUP;
}

/*
 * Room for an event of this CPU, with its head, or NULL if there is none. The time is taken first: an
 * interrupt that comes once the place in the ring is taken is later in both.
 */
static __always_inline void *begin(u16 type, u64 size)
{
	u32 number = bpf_get_smp_processor_id();
	struct event_head *head;
	struct cpu_state *cpu;
	void *ring;
	u64 now;

	if (!recording)
		return NULL;
	now = bpf_ktime_get_ns();
	cpu = this_cpu();
	if (!cpu)
		return NULL;
	ring = bpf_map_lookup_elem(&rings, &number);
	head = ring ? bpf_ringbuf_reserve(ring, size, 0) : NULL;
	if (!head) {
		__sync_fetch_and_add(&cpu->lost, 1);
		return NULL;
	}
	head->time = now;
	head->lost = cpu->lost ? __sync_lock_test_and_set(&cpu->lost, 0) : 0;
	head->wakes = wakes(ring, size);
	head->common_type = type;
	head->common_flags = context_flags(cpu);
	head->common_preempt_count = 0;
	head->common_pid = (u32)bpf_get_current_pid_tgid();
	return head;
}

#define BEGIN(name) begin(EVENT_##name, sizeof(struct name##_event))

static __always_inline int end(void *event)
{
	bpf_ringbuf_submit(event, ((struct event_head *)event)->wakes);
	return 0;
}

#endif
