/*
 * Many threads: each has its own line, and the lines of the dead are used again, though lines of the
 * living lie between them.
 */
#define _GNU_SOURCE 1
#include <pthread.h>

#include "fake.h"

#define AT_ONCE 128
#define RESIDENTS 64
#define GENERATIONS RESIDENTS /* and one of them begins after each */

static pthread_barrier_t all_have_entered;
static struct warmq_line *lines[AT_ONCE];

static void *enter_and_meet(void *argument)
{
	uint32_t number = (uint32_t)(uintptr_t)argument, round;

	fake_forgets();
	for (round = 0; round < 1000; round++) {
		CHECK_EQUAL(warmq_enter(number, round / 4), 0);
		CHECK_EQUAL(fake_believes(), warmq_pack(number, round / 4));
	}
	lines[number] = warmq_this_thread.line;
	pthread_barrier_wait(&all_have_entered);
	CHECK_EQUAL(fake_believes(), warmq_pack(number, 249)); /* Nobody else wrote to it. */
	CHECK_EQUAL(fake_attaches, 1);
	return NULL;
}

static void every_thread_has_its_own(void)
{
	unsigned one, other;

	for (one = 0; one < AT_ONCE; one++) {
		CHECK_EQUAL((uintptr_t)lines[one] % sizeof(struct warmq_line), 0);
		for (other = 0; other < one; other++)
			CHECK(lines[one] != lines[other]);
	}
}

static pthread_mutex_t residents_stay = PTHREAD_MUTEX_INITIALIZER;

/* Lives until the end of the test, and finds its hint as it left it. */
static void *resident(void *argument)
{
	fake_forgets();
	CHECK_EQUAL(warmq_enter(AT_ONCE, 1), 0);
	pthread_barrier_wait((pthread_barrier_t *)argument);
	pthread_mutex_lock(&residents_stay);
	pthread_mutex_unlock(&residents_stay);
	CHECK_EQUAL(fake_believes(), warmq_pack(AT_ONCE, 1));
	return NULL;
}

static pthread_t start_resident(void)
{
	pthread_barrier_t has_entered;
	pthread_t thread;

	CHECK(pthread_barrier_init(&has_entered, NULL, 2) == 0);
	CHECK(pthread_create(&thread, NULL, resident, &has_entered) == 0);
	pthread_barrier_wait(&has_entered);
	pthread_barrier_destroy(&has_entered);
	return thread;
}

static void generation(void)
{
	pthread_t threads[AT_ONCE];
	uintptr_t number;

	CHECK(pthread_barrier_init(&all_have_entered, NULL, AT_ONCE) == 0);
	for (number = 0; number < AT_ONCE; number++)
		CHECK(pthread_create(&threads[number], NULL, enter_and_meet, (void *)number) == 0);
	for (number = 0; number < AT_ONCE; number++)
		CHECK(pthread_join(threads[number], NULL) == 0);
	every_thread_has_its_own();
	pthread_barrier_destroy(&all_have_entered);
}

int main(void)
{
	pthread_t residents[RESIDENTS];
	unsigned number;

	CHECK_EQUAL(sizeof(struct warmq_line), 64);
	CHECK_EQUAL(sizeof(struct warmq_arena), 2u << 20);
	fake_loads();
	pthread_mutex_lock(&residents_stay);
	for (number = 0; number < GENERATIONS; number++) {
		generation();
		residents[number] = start_resident();
	}
	/* 8,256 threads in all, of which 192 at once. */
	CHECK_AT(warmq_this_arena->used <= 3 * (AT_ONCE + RESIDENTS), __LINE__, warmq_this_arena->used);
	fprintf(stderr, "%u lines for %u threads at once\n", warmq_this_arena->used, AT_ONCE + RESIDENTS);
	pthread_mutex_unlock(&residents_stay);
	for (number = 0; number < RESIDENTS; number++)
		CHECK(pthread_join(residents[number], NULL) == 0);
	return 0;
}
