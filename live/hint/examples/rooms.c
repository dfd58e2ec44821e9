/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A chat's workers: each takes the next message, whatever room it is for, and says so before it
 * touches the room.
 *
 *	cc -O2 -Iinclude examples/rooms.c -pthread -o rooms && ./rooms
 *
 * Run it under scx_warmq, and `scx_warmq --monitor 1` shows eight groups, one a room. On any other
 * kernel it does the same work, unhinted.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <warmq.h>

/* What this program calls its rooms; the fragment is the number of the room. */
#define ROOMS_APP 1
#define ROOMS 8
#define WORKERS 16
#define MESSAGES 200000u
#define HISTORY 8192

/* The data that members of a room share: 64 KB, so that it is worth staying where it is warm. */
struct room {
	pthread_mutex_t lock;
	uint64_t history[HISTORY];
};

static struct room rooms[ROOMS];
static uint32_t next_message;

static void post(struct room *room, uint32_t message)
{
	unsigned entry;

	pthread_mutex_lock(&room->lock);
	for (entry = 0; entry < HISTORY; entry++)
		room->history[entry] += message;
	pthread_mutex_unlock(&room->lock);
}

static void *work(void *unused)
{
	uint32_t message;

	(void)unused;
	while ((message = __atomic_fetch_add(&next_message, 1, __ATOMIC_RELAXED)) < MESSAGES) {
		uint32_t room = message % ROOMS;

		/* Before the data is touched: a thread that has to move does so here. */
		warmq_enter(ROOMS_APP, room);
		post(&rooms[room], message);
		warmq_leave();
	}
	return NULL;
}

int main(void)
{
	pthread_t workers[WORKERS];
	int number, error;

	for (number = 0; number < ROOMS; number++)
		pthread_mutex_init(&rooms[number].lock, NULL);
	puts(warmq_listening() ? "a scheduler listens" : "no scheduler listens: the hints do nothing");
	for (number = 0; number < WORKERS; number++) {
		error = pthread_create(&workers[number], NULL, work, NULL);
		if (error != 0) {
			fprintf(stderr, "rooms: cannot start a worker: %s\n", strerror(error));
			return 1;
		}
	}
	for (number = 0; number < WORKERS; number++)
		pthread_join(workers[number], NULL);
	printf("%u messages to %d rooms by %d workers\n", MESSAGES, ROOMS, WORKERS);
	return 0;
}
