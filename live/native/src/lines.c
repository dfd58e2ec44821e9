/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lines of 64 bytes in caches that never lose one: of each it is known which CPUs have it. Who reads a line that it does not have,
 * or writes one that another has, takes it from there, if it has been in any cache before. The cost of what the kernel does
 * itself (its run queues, the tasks' structures) is not counted: it is the same whatever the program does.
 */
#include "lines.h"

#include <stdlib.h>
#include <string.h>

#define LINE 64
#define SLOTS (1u << 18)
#define WORDS (LINES_CPUS_MAX / 64)

struct line {
	uintptr_t number; /* 0: unused */
	uint64_t has[WORDS]; /* CPUs */
};

#define MOST_ARRAYS 16

static struct {
	enum line_kind kind;
	uintptr_t from, to;
} arrays[MOST_ARRAYS];
static uint32_t nr_arrays;

static struct line *lines;
static uint64_t taken[LINE_KINDS + 1];
static uint32_t here;

void lines_of(enum line_kind kind, void *array, uint64_t size)
{
	if (nr_arrays == MOST_ARRAYS)
		abort();
	arrays[nr_arrays].kind = kind;
	arrays[nr_arrays].from = (uintptr_t)array;
	arrays[nr_arrays++].to = (uintptr_t)array + size;
}

void lines_end(void)
{
	free(lines);
	lines = NULL;
}

void lines_begin(void)
{
	lines_end();
	nr_arrays = 0;
	lines = calloc(SLOTS, sizeof(*lines));
	memset(taken, 0, sizeof(taken));
}

void lines_on(uint32_t cpu)
{
	here = cpu;
}

void lines_taken(uint64_t counts[LINE_KINDS + 1])
{
	memcpy(counts, taken, sizeof(taken));
	memset(taken, 0, sizeof(taken));
}

/* The entry of a line; there are more entries than lines. */
static struct line *entry_of(uintptr_t number)
{
	uint32_t at = (uint32_t)(number * 0x9e3779b97f4a7c15ULL >> 40) % SLOTS;

	while (lines[at].number && lines[at].number != number)
		at = (at + 1) % SLOTS;
	lines[at].number = number;
	return &lines[at];
}

static bool others_have(const struct line *line, uint64_t own)
{
	uint64_t others = 0;
	int word;

	for (word = 0; word < WORDS; word++)
		others |= line->has[word] & ~(word == (int)(here / 64) ? own : 0);
	return others;
}

static void touch(enum line_kind kind, uintptr_t number, bool writes)
{
	struct line *line = entry_of(number);
	uint64_t own = 1ULL << here % 64, *word = &line->has[here / 64];
	bool had = *word & own;

	if ((!had || writes) && others_have(line, own)) {
		taken[kind]++;
		if (writes)
			memset(line->has, 0, sizeof(line->has));
	}
	*word |= own;
}

static void see(void *address, uint64_t size, bool writes)
{
	uintptr_t from = (uintptr_t)address, line;
	uint32_t i;

	if (!lines)
		return;
	for (i = 0; i < nr_arrays; i++) {
		if (from < arrays[i].from || from >= arrays[i].to)
			continue;
		for (line = from / LINE; line <= (from + size - 1) / LINE; line++)
			touch(arrays[i].kind, line, writes);
	}
}

/* Whether the program changes it, and not the kernel. */
static bool of_program(uintptr_t at)
{
	int kind;

	for (kind = 0; kind < LINES_QUEUES; kind++)
		if (at >= arrays[kind].from && at < arrays[kind].to)
			return true;
	return false;
}

/* Locked operations of the program count. */
static void see_locked(volatile void *address, uint64_t size)
{
	if (!lines)
		return;
	taken[LINE_KINDS] += of_program((uintptr_t)address);
	see((void *)address, size, true);
}

/* --- What the compiler calls ------------------------------------------------------------------ */

void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller)
{
}

void __tsan_func_exit(void)
{
}

void __tsan_read_range(void *address, unsigned long size)
{
	see(address, size, false);
}

void __tsan_write_range(void *address, unsigned long size)
{
	see(address, size, true);
}

#define ACCESSES(size)                                \
	void __tsan_read##size(void *address)         \
	{                                             \
		see(address, size, false);            \
	}                                             \
	void __tsan_write##size(void *address)        \
	{                                             \
		see(address, size, true);             \
	}                                             \
	void __tsan_unaligned_read##size(void *address) \
	{                                             \
		see(address, size, false);            \
	}                                             \
	void __tsan_unaligned_write##size(void *address) \
	{                                             \
		see(address, size, true);             \
	}

ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

#define CHANGE(bits, name, with)                                                                                 \
	uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t *at, uint##bits##_t value, int order) \
	{                                                                                                        \
		see_locked(at, bits / 8);                                                                        \
		return with(at, value, __ATOMIC_SEQ_CST);                                                        \
	}

#define ATOMICS(bits)                                                                                       \
	CHANGE(bits, fetch_add, __atomic_fetch_add)                                                         \
	CHANGE(bits, fetch_sub, __atomic_fetch_sub)                                                         \
	CHANGE(bits, fetch_and, __atomic_fetch_and)                                                         \
	CHANGE(bits, fetch_or, __atomic_fetch_or)                                                           \
	CHANGE(bits, exchange, __atomic_exchange_n)                                                         \
	uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *at, int order)             \
	{                                                                                                   \
		see((void *)at, bits / 8, false);                                                           \
		return *at;                                                                                 \
	}                                                                                                   \
	void __tsan_atomic##bits##_store(volatile uint##bits##_t *at, uint##bits##_t value, int order)      \
	{                                                                                                   \
		see((void *)at, bits / 8, true);                                                            \
		*at = value;                                                                                \
	}                                                                                                   \
	int __tsan_atomic##bits##_compare_exchange_strong(volatile uint##bits##_t *at, uint##bits##_t *was, \
							  uint##bits##_t value, int order, int otherwise)   \
	{                                                                                                   \
		see_locked(at, bits / 8);                                                                   \
		return __atomic_compare_exchange_n(at, was, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);  \
	}                                                                                                   \
	uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(volatile uint##bits##_t *at, uint##bits##_t was, \
								  uint##bits##_t value, int order, int otherwise) \
	{                                                                                                   \
		see_locked(at, bits / 8);                                                                   \
		__atomic_compare_exchange_n(at, &was, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);        \
		return was;                                                                                 \
	}

ATOMICS(32)
ATOMICS(64)
