/*
 * What a hint costs with a slot: nanoseconds a call, median of 21 rounds. The scheduler below is the
 * one of the tests, whose prctl costs next to nothing: add the kernel's to what knocks.
 */
#define _GNU_SOURCE 1
#include <time.h>

#include "../tests/c/fake.h"

#define CALLS 1000000
#define ROUNDS 21

static void same(uint32_t call)
{
	(void)call;
	warmq_enter(1, 7);
}

static void leave_and_come_back(uint32_t call)
{
	(void)call;
	warmq_leave();
	warmq_enter(1, 7);
}

static void in_turn(uint32_t call)
{
	warmq_enter(1, call % 2);
}

static double round_ns(void (*hint)(uint32_t))
{
	struct timespec from, to;
	uint32_t call;

	clock_gettime(CLOCK_MONOTONIC, &from);
	for (call = 0; call < CALLS; call++)
		hint(call);
	clock_gettime(CLOCK_MONOTONIC, &to);
	return ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / CALLS;
}

static int by_size(const void *left, const void *right)
{
	double difference = *(const double *)left - *(const double *)right;

	return (difference > 0) - (difference < 0);
}

static void measure(const char *what, void (*hint)(uint32_t))
{
	double rounds[ROUNDS];
	unsigned number, knocks;

	fake_knocks_since();
	for (number = 0; number < ROUNDS; number++)
		rounds[number] = round_ns(hint);
	knocks = fake_knocks_since();
	qsort(rounds, ROUNDS, sizeof(rounds[0]), by_size);
	printf("%-26s %5.1f ns (%.1f to %.1f), and %.3f prctl a time\n", what, rounds[ROUNDS / 2],
	       rounds[0], rounds[ROUNDS - 1], (double)knocks / ((double)ROUNDS * CALLS));
}

int main(void)
{
	fake_loads();
	measure("enter the same", same);
	measure("leave it and enter it", leave_and_come_back);
	measure("enter two in turn", in_turn);
	return 0;
}
