/* The child of a fork is another task: it finds its slot wiped, and gets one of its own. */
#include "fake.h"

#include <sys/wait.h>

static int child(uint64_t parents)
{
	fake_forgets();
	fake_attaches = 0;
	CHECK_EQUAL(warmq_current(), parents); /* What it said is copied, as all memory is ... */
	CHECK_EQUAL(warmq_this_thread.line->slot.nonce, 0);
	CHECK_EQUAL(warmq_enter(1, 7), 0); /* ... but nobody knows it of the child. */
	CHECK_EQUAL(fake_attaches, 1);
	CHECK_EQUAL(fake_believes(), warmq_pack(1, 7));
	CHECK_EQUAL(warmq_this_arena->used, 1);
	warmq_enter(1, 8);
	CHECK_EQUAL(fake_believes(), warmq_pack(1, 8));
	return 0;
}

int main(void)
{
	int status = 0;
	pid_t process;

	fake_loads();
	warmq_enter(1, 7);
	warmq_enter(1, 7);
	process = fork();
	CHECK(process >= 0);
	if (process == 0)
		return child(warmq_pack(1, 7));
	CHECK_EQUAL(waitpid(process, &status, 0), process);
	CHECK_EQUAL(status, 0);
	CHECK_EQUAL(fake_attaches, 1);
	CHECK_EQUAL(fake_believes(), warmq_pack(1, 7)); /* The child's hints are not the parent's. */
	return 0;
}
