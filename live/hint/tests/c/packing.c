/* A hint is the pair as one number, plus one; tests/packing.rs has the same table. */
#include <warmq.h>

#include "check.h"

static const struct {
	uint32_t app, fragment;
	uint64_t hint;
} TABLE[] = {
	{ 0, 0, 1 },
	{ 0, 1, 2 },
	{ 1, 0, 0x100000001u },
	{ 7, 42, 0x70000002bu },
	{ 0, UINT32_MAX, 0x100000000u },
	{ UINT32_MAX, 0, 0xffffffff00000001u },
	{ UINT32_MAX, UINT32_MAX - 1, UINT64_MAX },
	{ UINT32_MAX, UINT32_MAX, WARMQ_NONE },
};

int main(void)
{
	unsigned row;

	for (row = 0; row < sizeof(TABLE) / sizeof(TABLE[0]); row++)
		CHECK_AT(warmq_pack(TABLE[row].app, TABLE[row].fragment) == TABLE[row].hint, __LINE__, row);

	warmq_enter(7, 42);
	CHECK_EQUAL(warmq_enter(UINT32_MAX, UINT32_MAX), -ERANGE);
	CHECK_EQUAL(warmq_current(), warmq_pack(7, 42)); /* Nothing has changed. */
	return 0;
}
