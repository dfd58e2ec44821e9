/*
 * A kernel of the test's own below warmq.h: a scheduler that takes hints, nonces and slots, can be
 * absent, and counts what it is asked. The state is each thread's own, as is a task's in the kernel.
 */
#ifndef FAKE_H
#define FAKE_H

#define WARMQ_FAKE_KERNEL 1
#include <warmq.h>

#include "check.h"

/* Set by the test before it hints. */
static volatile int fake_present;       /* a scheduler is loaded */
static volatile int fake_takes_nonces;  /* ... that reads slots */
static volatile int fake_refuses_slots; /* ... and whose map this process may not write */
static volatile int fake_shows_nothing; /* ... and never acknowledges a hint in time */

/* A task's storage. */
__extension__ static __thread uint64_t fake_received;
__extension__ static __thread uint64_t fake_nonce;
__extension__ static __thread struct warmq_slot *fake_slot;

__extension__ static __thread unsigned fake_knocks;
__extension__ static __thread unsigned fake_attaches;

/* What warmq.h asks through. */
static int warmq_kernel_prctl(int option, uint64_t value)
{
	errno = EINVAL; /* The real one does so; the program must not see it. */
	fake_knocks += option == WARMQ_PRCTL_HINT;
	if (!fake_present || (option == WARMQ_PRCTL_NONCE && !fake_takes_nonces))
		return -EINVAL;
	if (option == WARMQ_PRCTL_NONCE) {
		fake_nonce = value;
		return 0;
	}
	fake_received = value;
	if (!fake_shows_nothing && fake_slot != NULL && fake_slot->nonce == fake_nonce)
		fake_slot->acknowledged = value;
	return 0;
}

static int warmq_kernel_attach(uint32_t thread, struct warmq_slot *slot)
{
	(void)thread;
	fake_attaches++;
	if (fake_refuses_slots)
		return -1;
	fake_slot = slot;
	return 0;
}

/* What the scheduler takes for this thread's hint when it looks at it. */
static inline uint64_t fake_believes(void)
{
	if (fake_slot != NULL && fake_slot->nonce == fake_nonce)
		return fake_slot->hint;
	return fake_received;
}

/* The scheduler of a new load, or a new task: it knows nothing of this thread. */
static inline void fake_forgets(void)
{
	fake_received = 0;
	fake_nonce = 0;
	fake_slot = NULL;
}

static inline void fake_loads(void)
{
	fake_present = 1;
	fake_takes_nonces = 1;
	fake_forgets();
}

/* Knocks since the last time this was asked. */
static inline unsigned fake_knocks_since(void)
{
	unsigned knocks = fake_knocks;

	fake_knocks = 0;
	return knocks;
}

#endif
