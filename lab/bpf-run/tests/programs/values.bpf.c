// SPDX-License-Identifier: GPL-2.0-only
/* Arithmetic, atomics, loops, calls and texts. Each program returns 0 if all is as C has it. */
#include "kernel.h"

volatile s64 minus = -7;
volatile u64 large = 0x8000000012345678;
volatile u32 counter = 5;
volatile u64 wide = 40;
const volatile u64 frozen = 11;
volatile char name[16] = "kworker/3:1";

struct context { u64 argument; };

SEC("syscall") int arithmetic(struct context *ctx)
{
	s32 small = minus;
	if ((s8)large != 0x78 || (s64)(s16)minus != -7 || (s32)(s8)minus != -7)
		return 1;
	if ((s64)small >> 1 != -4 || (u32)small >> 28 != 15)
		return 2;
	if (large / 3 != 0x2aaaaaaab0bc1cd2 || large % 10 != 0x8000000012345678 % 10)
		return 3;
	if ((u32)large * 3 != 0x369d0368 || minus >= 0 || (u64)minus < 5)
		return 4;
	if (minus / 2 != -3 || minus % 4 != -3)
		return 5;
	if (__builtin_bswap32((u32)large) != 0x78563412 || (large & 0xff) << 60 != 0x8000000000000000)
		return 6;
	return ctx->argument != 77;
}

SEC("syscall") int atomics(struct context *ctx)
{
	if (__sync_fetch_and_add(&counter, 3) != 5 || counter != 8)
		return 1;
	if (__sync_val_compare_and_swap(&wide, 41, 1) != 40 || wide != 40)
		return 2;
	if (__sync_val_compare_and_swap(&wide, 40, 1) != 40 || wide != 1)
		return 3;
	if (__sync_lock_test_and_set(&wide, 9) != 1 || wide != 9)
		return 4;
	__sync_fetch_and_or(&wide, 0x10);
	__sync_fetch_and_and(&wide, 0x18);
	if (__sync_fetch_and_xor(&wide, 1) != 0x18)
		return 5;
	return wide != 0x19;
}

SEC("syscall") int iterator(struct context *ctx)
{
	struct bpf_iter_num it;
	int sum = 0, *next;

	bpf_iter_num_new(&it, 3, 8);
	while ((next = bpf_iter_num_next(&it)))
		sum += *next;
	bpf_iter_num_destroy(&it);
	/* BPF_MAX_LOOPS is the most. */
	if (bpf_iter_num_new(&it, 1, 1 + (8 << 20)) || !bpf_iter_num_next(&it))
		return 1;
	if (bpf_iter_num_new(&it, 0, 1 + (8 << 20)) != -7 || bpf_iter_num_next(&it))
		return 2;
	return sum != 3 + 4 + 5 + 6 + 7;
}

/* What a function returned is the last of its arguments. */
SEC("syscall") int returned(struct context *ctx)
{
	u64 value = 0;

	if (get_func_arg(ctx, 0, &value) || value != 77)
		return 1;
	if (get_func_arg(ctx, 1, &value) != -22)
		return 2;
	value = 0;
	return get_func_ret(ctx, &value) || value != 77;
}

static long add(u64 index, u64 *sum)
{
	*sum += index;
	return index == 6;
}

SEC("syscall") int looped(struct context *ctx)
{
	u64 sum = 100;

	if (loop(4, add, &sum, 0) != 4 || sum != 106)
		return 1;
	return loop(1000, add, &sum, 0) != 7 || sum != 127;
}

SEC("syscall") int may_goto(struct context *ctx)
{
	u64 rounds = 0;

	for (; rounds < wide + 100; rounds++) {
		asm volatile goto("may_goto %l[out]" :: : : out);
		wide += rounds & 1;
		if (wide > 200)
			break;
	}
	return 0;
out:
	return 1;
}

NOINLINE u64 depth_of(u64 left, u64 a, u64 b)
{
	volatile u64 kept = left * 3;

	if (left == 0)
		return a + b;
	return depth_of(left - 1, a + 1, b) + kept - left * 3;
}

SEC("syscall") int calls(struct context *ctx)
{
	return depth_of(10, wide - wide, 4) != 14;
}

SEC("syscall") int texts(struct context *ctx)
{
	char copy[8], whole[16];

	if (probe_read_str(copy, sizeof(copy), (void *)name) != 8 || copy[7] || copy[6] != 'r')
		return 1;
	if (probe_read_str(whole, sizeof(whole), (void *)name) != 12)
		return 2;
	if (strncmp_(whole, 7, "kworker/") || strncmp_(whole, 16, "kworker/4:1") >= 0)
		return 3;
	if (probe_read(copy, 4, (void *)8) >= 0 || copy[0])
		return 4;
	return frozen != 11;
}
