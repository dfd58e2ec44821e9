/* What warmq_color.h computes, for a test that compares it with the Rust crate. */
#include <inttypes.h>
#include <stdio.h>

#include "warmq_color.h"

int main(void)
{
	const struct warmq_color_cache caches[] = {
		{ 32 << 10, 8, 64 }, { 48 << 10, 12, 64 }, { 512 << 10, 8, 64 }, { 2 << 20, 16, 64 },
	};
	const uint64_t strides[] = { 4096, 8192, 20480, 69632, 266240, 1 << 20 };

	for (int cache = 0; cache < 4; cache++)
		for (int stride = 0; stride < 6; stride++)
			for (uint64_t hot = 0; hot < 4; hot++)
				for (uint64_t blocks = 0; blocks < 40000; blocks = blocks * 3 + 1)
					printf("%" PRIu64 "\n",
					       warmq_color_needed(blocks, hot, strides[stride], caches[cache]));
	for (uint64_t index = 0; index < 5000; index++)
		printf("%" PRIu64 "\n", warmq_color_offset(index, 64, 64));
	return 0;
}
