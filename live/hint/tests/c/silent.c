/* On the kernel that there is, with or without a scheduler: calls return, and errno is kept. */
#include <warmq.h>

#include "check.h"

int main(void)
{
	uint32_t call;

	errno = 4711;
	for (call = 0; call < 1000; call++) {
		int entered = warmq_enter(1, call / 3);

		CHECK_EQUAL(warmq_current(), warmq_pack(1, call / 3));
		CHECK_AT(entered == 0 || entered < 0, __LINE__, call);
		if (call % 5 == 0)
			warmq_leave();
		CHECK_EQUAL(errno, 4711);
	}
	CHECK_EQUAL(warmq_listening(), warmq_enter(1, 2) == 0);
	CHECK_EQUAL(errno, 4711);
	warmq_leave();
	CHECK_EQUAL(warmq_current(), WARMQ_NONE);
	return 0;
}
