/* Two parts of a program include warmq.h: a thread is one thread in both. See shared_part.c. */
#include <warmq.h>

#include "check.h"

extern uint64_t part_current(void);
extern void part_enters(uint32_t app, uint32_t fragment);

int main(void)
{
	warmq_enter(1, 7);
	CHECK_EQUAL(part_current(), warmq_pack(1, 7));
	part_enters(2, 8);
	CHECK_EQUAL(warmq_current(), warmq_pack(2, 8));
	return 0;
}
