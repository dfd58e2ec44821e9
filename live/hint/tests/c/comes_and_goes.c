/* Schedulers that are loaded late, stop, start again, or take hints by prctl alone. */
#include "fake.h"

static void nobody_listens(void)
{
	unsigned call;

	fake_present = 0;
	CHECK_EQUAL(warmq_enter(1, 1), -EINVAL);
	fake_knocks_since();
	for (call = 0; call < 10 * WARMQ_CHECK_EVERY; call++) {
		CHECK_EQUAL(warmq_enter(1, call), -EINVAL);
		CHECK_EQUAL(warmq_current(), warmq_pack(1, call));
	}
	CHECK_EQUAL(fake_knocks_since(), 10);
}

static void one_that_is_loaded_later_is_heard_by_the_64th_call(void)
{
	unsigned call;

	nobody_listens();
	fake_loads();
	for (call = 1; warmq_enter(2, 2) != 0; call++)
		CHECK_AT(call < WARMQ_CHECK_EVERY, __LINE__, call);
	CHECK_EQUAL(fake_believes(), warmq_pack(2, 2));
}

static void to_ask_ends_the_silence(void)
{
	nobody_listens();
	warmq_enter(3, 3);
	CHECK_EQUAL(warmq_listening(), 0);
	fake_loads();
	CHECK_EQUAL(warmq_listening(), 1);
	CHECK_EQUAL(fake_believes(), warmq_pack(3, 3)); /* What was said while nobody listened arrives. */
	CHECK_EQUAL(warmq_enter(3, 4), 0);
}

/* The new load has maps of its own: nobody reads the old slot, whose acknowledgement is stale. */
static void one_that_was_restarted_unnoticed_is_heard_by_the_64th_call(void)
{
	unsigned call;

	fake_loads();
	CHECK(warmq_listening());
	for (call = 0; call < 3; call++)
		warmq_enter(4, 4);
	fake_loads();
	for (call = 1; warmq_enter(4, 4) == 0 && fake_believes() != warmq_pack(4, 4); call++)
		CHECK_AT(call < WARMQ_CHECK_EVERY, __LINE__, call);
	for (call = 0; call < 2 * WARMQ_CHECK_EVERY; call++)
		warmq_enter(4, 4);
	CHECK(fake_slot != NULL); /* It has the slot, too. */
	fake_knocks_since();
	warmq_enter(4, 4);
	CHECK(fake_knocks_since() <= 1);
}

static void a_change_is_heard_after_a_restart_at_once(void)
{
	fake_loads();
	CHECK_EQUAL(warmq_enter(5, 1), 0);
	fake_loads();
	CHECK_EQUAL(warmq_enter(5, 2), 0);
	CHECK_EQUAL(fake_believes(), warmq_pack(5, 2));
}

static void without_slots_every_call_knocks(void)
{
	unsigned call;

	nobody_listens();
	fake_loads();
	fake_takes_nonces = 0;
	CHECK(warmq_listening());
	fake_knocks_since();
	fake_attaches = 0;
	for (call = 0; call < 100; call++) {
		CHECK_EQUAL(warmq_enter(6, 6), 0);
		CHECK_EQUAL(fake_believes(), warmq_pack(6, 6));
		CHECK_EQUAL(warmq_leave(), 0);
		CHECK_EQUAL(fake_believes(), WARMQ_NONE);
	}
	CHECK_EQUAL(fake_knocks_since(), 200);
	CHECK_EQUAL(fake_attaches, 0);
}

/* 64 + 128 + ... : ten tries in the first 65,000 calls, and then one in 65,536. */
static void a_map_that_may_not_be_written_is_tried_ever_more_seldom(void)
{
	unsigned call;

	nobody_listens();
	fake_loads();
	fake_refuses_slots = 1;
	fake_attaches = 0;
	for (call = 0; call < 1000000; call++)
		warmq_enter(7, call);
	CHECK_AT(fake_attaches > 2 && fake_attaches < 30, __LINE__, fake_attaches);
	fake_refuses_slots = 0;
}

static void the_next_one_is_not_held_to_the_failures_of_the_last(void)
{
	a_map_that_may_not_be_written_is_tried_ever_more_seldom();
	nobody_listens();
	fake_loads();
	CHECK(warmq_listening());
	CHECK(fake_slot != NULL);
}

int main(void)
{
	errno = 4711;
	one_that_is_loaded_later_is_heard_by_the_64th_call();
	to_ask_ends_the_silence();
	one_that_was_restarted_unnoticed_is_heard_by_the_64th_call();
	a_change_is_heard_after_a_restart_at_once();
	without_slots_every_call_knocks();
	the_next_one_is_not_held_to_the_failures_of_the_last();
	CHECK_EQUAL(errno, 4711);
	return 0;
}
