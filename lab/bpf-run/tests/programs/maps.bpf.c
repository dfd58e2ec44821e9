// SPDX-License-Identifier: GPL-2.0-only
/* One program for each kind of map. Each returns 0 if all is as the kernel has it. */
#include "kernel.h"

struct context { u64 task; };
struct value { u64 first; struct bpf_cpumask __kptr *mask; struct bpf_spin_lock lock; u64 last; };
struct timed { u64 before; struct bpf_timer timer; };

struct { UINT(type, ARRAY); UINT(max_entries, 4); TYPE(key, u32); TYPE(value, struct value); } array SEC(".maps");
struct { UINT(type, PERCPU_ARRAY); UINT(max_entries, 2); TYPE(key, u32); TYPE(value, u64); } percpu SEC(".maps");
struct { UINT(type, HASH); UINT(max_entries, 2); TYPE(key, u64); TYPE(value, u64); } hash SEC(".maps");
struct { UINT(type, QUEUE); UINT(max_entries, 2); TYPE(value, u32); } queue SEC(".maps");
struct { UINT(type, STACK); UINT(max_entries, 2); TYPE(value, u32); } stack SEC(".maps");
struct { UINT(type, RINGBUF); UINT(max_entries, 64); } ring SEC(".maps");
struct { UINT(type, TASK_STORAGE); UINT(map_flags, 1); TYPE(key, int); TYPE(value, u64); } storage SEC(".maps");
struct { UINT(type, HASH); UINT(max_entries, 3); TYPE(key, u32); TYPE(value, struct timed); } timers SEC(".maps");
struct inner { UINT(type, ARRAY); UINT(max_entries, 1); TYPE(key, u32); TYPE(value, u64); };
struct inner one SEC(".maps"), two SEC(".maps");
struct {
	UINT(type, ARRAY_OF_MAPS); UINT(max_entries, 3); TYPE(key, u32);
	struct inner *values[];
} outer SEC(".maps") = { .values = { &one, 0, &two } };

u64 expired;

SEC("syscall") int in_array(struct context *ctx)
{
	u32 key = 3, outside = 4;
	struct value *value = map_lookup(&array, &key), new = { .last = 9 };

	if (!value || map_lookup(&array, &outside))
		return 1;
	value->first = 5;
	spin_lock(&value->lock);
	value->last += value->first;
	spin_unlock(&value->lock);
	if (map_update(&array, &key, &new, 0) || value->first || value->last != 9)
		return 2;
	return map_update(&array, &outside, &new, 0) != -7 || map_update(&array, &key, &new, 1) != -17;
}

SEC("syscall") int in_percpu(struct context *ctx)
{
	u32 key = 1;
	u64 *own = map_lookup(&percpu, &key), *other = map_lookup_percpu(&percpu, &key, 0);

	if (!own || !other || own == other || get_cpu() != 2)
		return 1;
	*own = 3;
	return *other || map_lookup_percpu(&percpu, &key, 2) != own || map_lookup_percpu(&percpu, &key, 99);
}

SEC("syscall") int in_hash(struct context *ctx)
{
	u64 a = 1, b = 2, c = 3, value = 7, *found;

	if (map_lookup(&hash, &a) || map_update(&hash, &a, &value, 2) != -2)
		return 1;
	if (map_update(&hash, &a, &value, 1) || map_update(&hash, &a, &value, 1) != -17)
		return 2;
	if (map_update(&hash, &b, &value, 0) || map_update(&hash, &c, &value, 0) != -7)
		return 3;
	if (map_delete(&hash, &b) || map_delete(&hash, &b) != -2)
		return 4;
	found = map_lookup(&hash, &a);
	return !found || *found != 7;
}

SEC("syscall") int in_queue(struct context *ctx)
{
	u32 a = 1, b = 2, c = 3, got = 0;

	if (map_pop(&queue, &got) != -2 || map_push(&queue, &a, 0) || map_push(&queue, &b, 0))
		return 1;
	if (map_push(&queue, &c, 0) != -7 || map_push(&queue, &c, 2))
		return 2;
	if (map_peek(&queue, &got) || got != 2 || map_pop(&queue, &got) || got != 2)
		return 3;
	if (map_push(&stack, &a, 0) || map_push(&stack, &b, 0) || map_pop(&stack, &got))
		return 4;
	return got != 2;
}

SEC("syscall") int in_storage(struct context *ctx)
{
	void *task = (void *)ctx->task;
	u64 init = 8, *value = task_storage_get(&storage, task, 0, 0);

	if (value)
		return 1;
	value = task_storage_get(&storage, task, &init, 1);
	if (!value || *value != 8)
		return 2;
	*value = 9;
	if (task_storage_get(&storage, task, &init, 1) != value || *value != 9)
		return 3;
	return task_storage_delete(&storage, task) || task_storage_get(&storage, task, 0, 0);
}

SEC("syscall") int in_maps(struct context *ctx)
{
	u32 key = 0, empty = 1, last = 2;
	void *map = map_lookup(&outer, &key);
	u64 *value, *direct = map_lookup(&one, &key);

	if (!map || map_lookup(&outer, &empty) || !map_lookup(&outer, &last) || !direct)
		return 1;
	value = map_lookup(map, &key);
	return value != direct;
}

SEC("syscall") int in_kptr(struct context *ctx)
{
	u32 key = 0;
	struct value *value = map_lookup(&array, &key), new = { };
	struct bpf_cpumask *mask = bpf_cpumask_create(), *old;

	if (!value || !mask)
		return 1;
	bpf_cpumask_set_cpu(3, mask);
	if (kptr_xchg(&value->mask, mask))
		return 2;
	/* An update leaves what is the kernel's. */
	map_update(&array, &key, &new, 0);
	old = kptr_xchg(&value->mask, 0);
	if (old != mask || *(u64 *)mask != 8)
		return 3;
	bpf_cpumask_release(old);
	return 0;
}

static int expire(void *map, u32 *key, struct timed *value)
{
	expired += *key + value->before;
	return map != &timers;
}

SEC("syscall") int in_timer(struct context *ctx)
{
	u32 key = 40;
	struct timed *value, new = { .before = 2 };

	map_update(&timers, &key, &new, 0);
	value = map_lookup(&timers, &key);
	if (!value || timer_init(&value->timer, &timers, 1) || timer_init(&value->timer, &timers, 1) != -16)
		return 1;
	if (timer_set_callback(&value->timer, expire))
		return 2;
	return timer_start(&value->timer, 1000, 0);
}

/* Records have a header of 8 bytes, and nobody reads them. */
SEC("syscall") int in_ring(struct context *ctx)
{
	u64 data[2] = { 3, 4 }, *one, *two;

	one = ringbuf_reserve(&ring, 17, 0);
	if (!one || ringbuf_query(&ring, 0) != 32 || ringbuf_query(&ring, 1) != 64)
		return 1;
	*one = 1;
	ringbuf_submit(one, 0);
	two = ringbuf_reserve(&ring, 4, 0);
	if (two != one + 4)
		return 2;
	ringbuf_discard(two, 0);
	if (ringbuf_query(&ring, 3) != 48 || ringbuf_query(&ring, 2))
		return 3;
	if (ringbuf_output(&ring, data, sizeof(data), 0) != -11 || ringbuf_reserve(&ring, 9, 0))
		return 4;
	return ringbuf_output(&ring, data, 8, 0) || two[2] != 3 || ringbuf_reserve(&ring, 0, 0);
}
