/* With a slot: what the scheduler knows is a memory write, a change knocks, and so does one in 64. */
#include "fake.h"

static void what_is_known_costs_no_call(void)
{
	unsigned round;

	CHECK_EQUAL(warmq_enter(1, 7), 0);
	CHECK_EQUAL(fake_attaches, 1);
	CHECK(fake_slot != NULL);
	warmq_enter(1, 7); /* The slot is new: the scheduler has not shown it yet. */
	fake_knocks_since();
	for (round = 0; round < 20; round++) {
		warmq_leave();
		CHECK_EQUAL(fake_believes(), WARMQ_NONE);
		warmq_enter(1, 7);
		CHECK_EQUAL(fake_believes(), warmq_pack(1, 7));
	}
	CHECK_EQUAL(fake_knocks_since(), 0);
}

static void a_change_knocks_once(void)
{
	uint32_t fragment;

	fake_knocks_since();
	for (fragment = 100; fragment < 200; fragment++) {
		CHECK_EQUAL(warmq_enter(1, fragment), 0);
		CHECK_EQUAL(fake_received, warmq_pack(1, fragment));
		CHECK_EQUAL(fake_believes(), warmq_pack(1, fragment));
		CHECK_EQUAL(fake_knocks_since(), 1);
	}
}

static void one_call_in_so_many_checks(void)
{
	unsigned call;

	warmq_enter(1, 7);
	fake_knocks_since();
	for (call = 0; call < 10 * WARMQ_CHECK_EVERY; call++)
		warmq_enter(1, 7);
	CHECK_EQUAL(fake_knocks_since(), 10);
	CHECK_EQUAL(fake_attaches, 1);
}

/* A slot that the scheduler does not show must not be trusted: hints go on by prctl. */
static void a_slot_that_nobody_reads_is_given_up(void)
{
	unsigned call;

	fake_slot = NULL; /* A stranger has put something else into the map. */
	for (call = 0; call < WARMQ_CHECK_EVERY + WARMQ_PATIENCE; call++)
		warmq_enter(1, 7);
	fake_knocks_since();
	for (call = 0; call < 10; call++)
		CHECK_EQUAL(warmq_enter(1, 7), 0);
	CHECK_EQUAL(fake_knocks_since(), 10);
	for (call = 0; call < 2 * WARMQ_CHECK_EVERY; call++)
		warmq_enter(1, 7);
	CHECK_EQUAL(fake_attaches, 2);
	CHECK(fake_slot != NULL);
	CHECK_EQUAL(fake_believes(), warmq_pack(1, 7));
}

/* A scheduler that reads slots but does not show it: what was written there last must not stick. */
static void a_slot_that_was_given_up_is_not_believed(void)
{
	uint32_t call;

	fake_shows_nothing = 1;
	for (call = 0; call < 10 * WARMQ_CHECK_EVERY; call++) {
		CHECK_EQUAL(warmq_enter(2, call), 0);
		CHECK_AT(fake_believes() == warmq_pack(2, call), __LINE__, call);
	}
	fake_shows_nothing = 0;
}

int main(void)
{
	fake_loads();
	errno = 4711;
	what_is_known_costs_no_call();
	a_change_knocks_once();
	one_call_in_so_many_checks();
	a_slot_that_nobody_reads_is_given_up();
	a_slot_that_was_given_up_is_not_believed();
	CHECK_EQUAL(errno, 4711);
	return 0;
}
