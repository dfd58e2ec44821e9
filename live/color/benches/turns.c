/* Threads that take turns by futex: ns a turn, the fastest of many rounds.
 *
 *     cc -O2 -pthread -o turns turns.c && ./turns [THREADS [ROUNDS]]
 *     LD_PRELOAD=./libwarmq_color_threads.so ./turns
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Each on lines of its own: the words themselves share no sets more than they must. */
struct seat {
	_Alignas(128) atomic_uint turn;
	pthread_t thread;
	struct seat *next;
};

static unsigned rounds = 200;

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void pass(struct seat *seat, unsigned round)
{
	atomic_store(&seat->turn, round);
	syscall(SYS_futex, &seat->turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void await(struct seat *seat, unsigned round)
{
	unsigned seen;

	while ((seen = atomic_load(&seat->turn)) != round)
		syscall(SYS_futex, &seat->turn, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void *sit(void *argument)
{
	struct seat *seat = argument;

	for (unsigned round = 1; round <= rounds; round++) {
		await(seat, round);
		pass(seat->next, round);
	}
	return NULL;
}

int main(int count, char **words)
{
	int threads = count > 1 ? atoi(words[1]) : 2000;
	double best = 1e18;

	if (count > 2)
		rounds = (unsigned)atoi(words[2]);
	if (threads < 1 || rounds < 1) {
		fprintf(stderr, "turns [THREADS [ROUNDS]]: both from 1 on\n");
		return 1;
	}
	/* Seat 0 is this thread's. */
	struct seat *seats = aligned_alloc(128, sizeof(struct seat) * (size_t)(threads + 1));

	if (!seats)
		return 1;
	for (int index = 0; index <= threads; index++) {
		seats[index].next = &seats[(index + 1) % (threads + 1)];
		atomic_init(&seats[index].turn, 0);
	}
	for (int index = 1; index <= threads; index++) {
		int answer = pthread_create(&seats[index].thread, NULL, sit, &seats[index]);

		if (answer) {
			fprintf(stderr, "thread %d: error %d: raise ulimit -u or take fewer\n", index, answer);
			return 1;
		}
	}
	for (unsigned round = 1; round <= rounds; round++) {
		uint64_t start = now();

		pass(seats[0].next, round);
		await(&seats[0], round);
		double took = (double)(now() - start) / (threads + 1);

		if (round > 3 && took < best)
			best = took;
	}
	for (int index = 1; index <= threads; index++)
		pthread_join(seats[index].thread, NULL);
	printf("%.1f\n", best);
	return 0;
}
