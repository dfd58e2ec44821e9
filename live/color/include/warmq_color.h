/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * warmq_color.h: hot headers of page-aligned blocks in sets of their own, as arithmetic.
 *
 * The i-th block puts its header warmq_color_offset(i, colors, line) bytes further in (a stack: its
 * top so much further down). docs/coloring.md says when that pays. C99, no library. The Rust crate
 * warmq-color computes the same; a test compares both.
 */
#ifndef WARMQ_COLOR_H
#define WARMQ_COLOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A data cache: size and line in bytes. All of them positive, the line a power of two. */
struct warmq_color_cache {
	uint64_t size;
	uint64_t ways;
	uint64_t line;
};

/* In bytes: the way, or what it has in common with the stride. */
static inline uint64_t warmq_color_common(struct warmq_color_cache cache, uint64_t stride)
{
	uint64_t a = cache.size / cache.ways, b = stride;

	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/*
 * Equation 3 with its bounds: the colors, a power of two, with which the hot lines of `blocks`
 * blocks, one every `stride` bytes, fit into `cache`. 1: they fit without. 0: no number of colors
 * makes them fit; do not color for this cache.
 */
static inline uint64_t warmq_color_needed(uint64_t blocks, uint64_t hot_lines, uint64_t stride,
					  struct warmq_color_cache cache)
{
	uint64_t common = warmq_color_common(cache, stride);
	uint64_t fit = cache.size / cache.ways / common * cache.ways;
	uint64_t lines = common / cache.line, colors = 1;

	if (blocks <= fit)
		return 1;
	if (!hot_lines)
		hot_lines = 1;
	while (colors <= lines && colors < (blocks * hot_lines + fit - 1) / fit)
		colors *= 2;
	return colors <= lines ? colors : 0;
}

/*
 * How far block `index` moves its header, in bytes. `colors` is a power of two. After each round of
 * colors one is skipped, so that a second cache, in which blocks of a round differ, is used evenly.
 */
static inline uint64_t warmq_color_offset(uint64_t index, uint64_t colors, uint64_t line)
{
	return (index + index / colors) % colors * line;
}

#ifdef __cplusplus
}
#endif
#endif
