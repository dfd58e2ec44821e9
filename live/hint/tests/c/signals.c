/*
 * A signal handler that hints in the middle of a hint, at every single instruction of it: the
 * processor's trap flag raises SIGTRAP after each, and on the n-th the handler calls warmq.h.
 *
 * Afterwards scheduler and thread must be of one mind. x86-64 only; the code is the same elsewhere.
 */
#define _GNU_SOURCE 1
#include <signal.h>
#include <string.h>

#include "fake.h"

#if defined(__x86_64__)

static const uint32_t BEFORE = 1, MIDDLE = 2, AFTER = 3;

static volatile unsigned instruction, interrupt_at;
static void (*volatile in_the_middle)(void);

static void trap(int number)
{
	(void)number;
	instruction = instruction + 1;
	if (instruction == interrupt_at)
		in_the_middle();
}

static void enter_another(void)
{
	warmq_enter(9, MIDDLE);
}

static void enter_another_for_a_while(void)
{
	uint64_t before = warmq_current();

	warmq_enter(9, MIDDLE);
	CHECK_EQUAL(fake_present ? fake_believes() : warmq_pack(9, MIDDLE), warmq_pack(9, MIDDLE));
	warmq_return_to(before);
}

static void leave(void)
{
	warmq_leave();
}

/* One step at a time from here ... */
#define STEP() __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc")
/* ... to here. */
#define WALK() __asm__ volatile("pushfq; andq $-257, (%%rsp); popfq" ::: "memory", "cc")

/* Kept whole, for its caller's red zone to be out of the way of the pushes. */
__attribute__((noinline)) static void enter_step_by_step(uint32_t fragment)
{
	STEP();
	warmq_enter(9, fragment);
	WALK();
}

/* Sets everything up as it is before the call that is interrupted. */
typedef void (*Setting)(void);

static void start_anew(int present, int nonces)
{
	memset(&warmq_this_thread, 0, sizeof(warmq_this_thread));
	fake_forgets();
	fake_present = present;
	fake_takes_nonces = nonces;
}

static void never_asked(void)
{
	start_anew(1, 1);
}

static void with_a_slot(void)
{
	start_anew(1, 1);
	warmq_enter(9, BEFORE);
	warmq_enter(9, BEFORE);
}

static void with_a_slot_that_knows(void)
{
	with_a_slot();
	warmq_enter(9, AFTER);
	warmq_leave();
}

static void with_a_check_due(void)
{
	with_a_slot_that_knows();
	warmq_this_thread.until_check = 0;
}

static void with_a_slot_that_nobody_reads(void)
{
	with_a_slot();
	fake_forgets();
	warmq_this_thread.unacknowledged = WARMQ_PATIENCE - 1;
}

static void by_prctl(void)
{
	start_anew(1, 0);
	warmq_enter(9, BEFORE);
}

static void unheard(void)
{
	start_anew(0, 0);
	warmq_enter(9, BEFORE);
}

/* The handler's doing must be there or undone, and the scheduler must believe what the thread says. */
static void judge(Setting setting, void (*doing)(void))
{
	uint64_t now = warmq_current();

	CHECK_AT(!fake_present || fake_believes() == now, __LINE__, interrupt_at);
	if (doing == enter_another_for_a_while)
		CHECK_AT(now == warmq_pack(9, AFTER), __LINE__, interrupt_at);
	else
		CHECK_AT(now == warmq_pack(9, AFTER) || now == warmq_pack(9, MIDDLE) || now == WARMQ_NONE,
			 __LINE__, interrupt_at);
	CHECK_EQUAL(warmq_this_thread.attaching, 0);
	if (setting == never_asked) /* Whoever was first, the slot works. */
		CHECK_AT(warmq_this_thread.nonce == fake_nonce && fake_slot->nonce == fake_nonce, __LINE__,
			 interrupt_at);
	CHECK_AT(errno == 4711, __LINE__, interrupt_at);
}

/* It goes on as ever: a hint is heard, if only by the check where nobody had read the slot. */
static void go_on(void)
{
	unsigned call = 0;

	do {
		warmq_enter(9, BEFORE);
		CHECK_AT(call++ < WARMQ_CHECK_EVERY, __LINE__, interrupt_at);
	} while (fake_present && fake_believes() != warmq_pack(9, BEFORE));
}

/* The instructions of a call in `setting`, each of which was interrupted in turn. */
static unsigned interrupt_everywhere(Setting setting, void (*doing)(void))
{
	in_the_middle = doing;
	for (interrupt_at = 1;; interrupt_at++) {
		setting();
		instruction = 0;
		errno = 4711;
		enter_step_by_step(AFTER);
		if (instruction < interrupt_at)
			return instruction;
		judge(setting, doing);
		go_on();
	}
}

int main(void)
{
	static const Setting SETTINGS[] = { never_asked,      with_a_slot,
					    with_a_check_due, with_a_slot_that_knows,
					    by_prctl,         with_a_slot_that_nobody_reads,
					    unheard };
	void (*const doings[])(void) = { enter_another, enter_another_for_a_while, leave };
	struct sigaction action;
	unsigned setting, doing;

	memset(&action, 0, sizeof(action));
	action.sa_handler = trap;
	CHECK(sigaction(SIGTRAP, &action, NULL) == 0);
	for (setting = 0; setting < sizeof(SETTINGS) / sizeof(SETTINGS[0]); setting++) {
		unsigned length = 0;

		for (doing = 0; doing < 3; doing++)
			length = interrupt_everywhere(SETTINGS[setting], doings[doing]);
		CHECK_AT(length > 10, __LINE__, length); /* The flag works here. */
		fprintf(stderr, "setting %u: interrupted at each of %u instructions\n", setting, length);
	}
	return 0;
}

#else

int main(void)
{
	fprintf(stderr, "SKIPPED: to interrupt at every instruction takes x86-64\n");
	return 0;
}

#endif
