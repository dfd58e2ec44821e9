// SPDX-License-Identifier: GPL-2.0-only
/* Each program breaks one rule. */
#include "kernel.h"

volatile u64 go = 1;
const volatile u64 frozen = 1;
struct context { u64 argument; };

SEC("syscall") int endless(struct context *ctx)
{
	while (go)
		go++;
	return 0;
}

NOINLINE u64 deeper(u64 left)
{
	volatile u64 kept = left;

	return go ? deeper(left + 1) + kept : 0;
}

SEC("syscall") int too_deep(struct context *ctx)
{
	return deeper(0);
}

SEC("syscall") int null(struct context *ctx)
{
	*(volatile u64 *)ctx->argument = 1;
	return 0;
}

SEC("syscall") int rodata(struct context *ctx)
{
	*(volatile u64 *)&frozen = 2;
	return 0;
}

SEC("syscall") int overflow(struct context *ctx)
{
	volatile char frame[400];

	frame[0] = 1;
	*(volatile u64 *)(frame - 200 + (go ? 0 : 1)) = frame[0];
	return 0;
}

SEC("syscall") int handle(struct context *ctx)
{
	u32 key = 0;

	return map_lookup((void *)&go, &key) != 0;
}

SEC("syscall") int faults(struct context *ctx)
{
	return *(volatile u64 *)(ctx->argument + 4096);
}
