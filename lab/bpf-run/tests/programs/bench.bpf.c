// SPDX-License-Identifier: GPL-2.0-only
/* What the bench runs: rounds of 24 instructions with 5 loads, 3 stores and 3 branches, on memory at
 * the argument. As text, so that no compiler changes what is measured. */
#include "kernel.h"

SEC("syscall") int rounds(u64 *memory)
{
	u64 left = memory[0];

	asm volatile("r6 = %[memory]\n r7 = %[left]\n r0 = 1\n"
		     "next_%=: r1 = *(u64 *)(r6 + 8)\n"
		     "r2 = *(u32 *)(r6 + 16)\n"
		     "r3 = *(u16 *)(r6 + 24)\n"
		     "r1 += r2\n"
		     "r1 ^= r3\n"
		     "r1 <<= 3\n"
		     "*(u64 *)(r6 + 8) = r1\n"
		     "if r1 == 0 goto last_%=\n"
		     "r4 = *(u8 *)(r6 + 32)\n"
		     "r4 += 1\n"
		     "r4 &= 255\n"
		     "*(u8 *)(r6 + 32) = r4\n"
		     "r5 = r4\n"
		     "r5 *= 17\n"
		     "r5 >>= 2\n"
		     "r0 += r5\n"
		     "if r5 > r0 goto last_%=\n"
		     "r5 = *(u64 *)(r6 + 40)\n"
		     "r5 -= r4\n"
		     "r5 |= 1\n"
		     "*(u64 *)(r6 + 40) = r5\n"
		     "w5 = w5\n"
		     "r7 -= 1\n"
		     "if r7 != 0 goto next_%=\n"
		     "last_%=:"
		     :: [memory] "r"(memory), [left] "r"(left)
		     : "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "memory");
	return 0;
}
