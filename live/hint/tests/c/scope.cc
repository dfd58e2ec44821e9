// warmq::Scope goes back to what was before, also when an exception leaves the block.
#include <warmq.h>

#include "check.h"

static void throws_inside()
{
	warmq::Scope inner(1, 3);
	CHECK_EQUAL(warmq_current(), warmq_pack(1, 3));
	throw 1;
}

int main()
{
	{
		warmq::Scope outer(1, 2);
		try {
			throws_inside();
			return 1;
		} catch (int) {
		}
		CHECK_EQUAL(warmq_current(), warmq_pack(1, 2));
	}
	CHECK_EQUAL(warmq_current(), WARMQ_NONE);
	return 0;
}
