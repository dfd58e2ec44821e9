/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which cache lines of other CPUs a callback touches. The compiler calls a hook for each access to memory (-fsanitize=thread;
 * of its run-time library nothing is linked: lines.c has the hooks).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* lib.rs has the same order. */
enum line_kind {
	LINES_CPUS,
	LINES_DOMAINS,
	LINES_PLACES,
	LINES_ENTITIES,
	LINES_GROUPS,
	LINES_CGROUPS,
	LINES_TASKS,  /* what the program keeps of tasks */
	LINES_QUEUES, /* dispatch queues, without the tasks in them */
	LINES_IDLE,   /* the kernel's masks of idle CPUs */
	LINE_KINDS,
};

/* The most CPUs. */
#define LINES_CPUS_MAX 512

/* From now on lines count; all of them are in no cache. */
void lines_begin(void);
/* An array of the program or of the model, whose lines are of that kind. Of no interest is what is in no such array. */
void lines_of(enum line_kind kind, void *array, uint64_t size);
void lines_end(void);

/* The accesses that follow are those of a CPU. */
void lines_on(uint32_t cpu);

/*
 * How often since the last call a CPU touched a line that another had changed since, or changed one that others had, by kind;
 * then the number of locked operations.
 */
void lines_taken(uint64_t counts[LINE_KINDS + 1]);
