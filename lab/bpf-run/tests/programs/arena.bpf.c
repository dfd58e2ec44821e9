// SPDX-License-Identifier: GPL-2.0-only
/* Pages of an arena, and pointers within it. Returns 0 if all is as the kernel has it. */
#include "kernel.h"

struct {
	UINT(type, ARENA); UINT(map_flags, 1 << 10); UINT(max_entries, 8);
} arena SEC(".maps");

struct node { struct node __arena *next; u64 value; };

KFUNC void __arena *bpf_arena_alloc_pages(void *map, void __arena *at, u32 pages, int node, u64 flags);
KFUNC void bpf_arena_free_pages(void *map, void __arena *at, u32 pages);
KFUNC int bpf_arena_reserve_pages(void *map, void __arena *at, u32 pages);

u64 first_page;
struct node __arena *head;

SEC("syscall") int pages(void *ctx)
{
	struct node __arena *page = bpf_arena_alloc_pages(&arena, 0, 2, -1, 0);
	struct node __arena *last, *one;
	u64 sum = 0;
	int at;

	if (!page)
		return 1;
	first_page = (u64)page;
	head = 0;
	for (at = 0; at < 3; at++) {
		one = &page[at * 100];
		one->value = at + 1;
		one->next = head;
		head = one;
	}
	for (last = head; last; last = last->next)
		sum = sum * 10 + last->value;
	if (sum != 321)
		return 2;
	if (bpf_arena_alloc_pages(&arena, 0, 100, -1, 0))
		return 3;
	bpf_arena_free_pages(&arena, page, 2);
	/* A page that is gone reads 0 and swallows what is stored. */
	*(volatile u64 __arena *)&page->value = 7;
	return *(volatile u64 __arena *)&page->value != 0;
}

/* The arena has 8 pages, of which page 0 is never given. */
SEC("syscall") int reserved(void *ctx)
{
	char __arena *page = bpf_arena_alloc_pages(&arena, 0, 1, -1, 0);

	if (!page)
		return 1;
	if (bpf_arena_reserve_pages(&arena, page, 1) != -16)
		return 2;
	if (bpf_arena_reserve_pages(&arena, page + 4096, 100) != -22)
		return 3;
	if (bpf_arena_reserve_pages(&arena, page + 4096, 2))
		return 4;
	if (bpf_arena_reserve_pages(&arena, page + 8192, 1) != -16)
		return 5;
	/* What is reserved is skipped, holds nothing, and is free once it is freed. */
	if (bpf_arena_alloc_pages(&arena, 0, 1, -1, 0) != page + 3 * 4096)
		return 6;
	*(volatile u64 __arena *)(page + 4096) = 7;
	if (*(volatile u64 __arena *)(page + 4096))
		return 7;
	bpf_arena_free_pages(&arena, page + 4096, 2);
	if (bpf_arena_alloc_pages(&arena, 0, 2, -1, 0) != page + 4096)
		return 8;
	return bpf_arena_reserve_pages(&arena, page, 0);
}
