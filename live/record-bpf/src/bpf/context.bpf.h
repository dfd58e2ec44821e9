/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a CPU is doing: serving an interrupt, a softirq, or neither.
 *
 * The kernel's preempt count would say it, but a program that names it is refused by kernels without
 * CONFIG_KALLSYMS_ALL, and its bits have moved before. So what is entered and left is counted. An
 * interrupt that has no event, as some of hypervisors have none, is not seen: what it does counts as
 * of what it interrupted.
 *
 * Each count is only changed where it cannot be interrupted by another change of it.
 */
#ifndef CONTEXT_BPF_H
#define CONTEXT_BPF_H

/* Bits of common_flags. */
#define FLAG_HARDIRQ 0x08
#define FLAG_SOFTIRQ 0x10

static __always_inline u8 context_flags(const struct cpu_state *cpu)
{
	return (cpu->hardirqs ? FLAG_HARDIRQ : 0) | (cpu->softirqs ? FLAG_SOFTIRQ : 0);
}

/* One is entered. */
#define ENTER(count) \
({ \
	struct cpu_state *cpu = this_cpu(); \
\
	if (cpu && recording) \
		cpu->count++; \
})

/* One is left, which may have been entered before the recording began. */
#define LEAVE(count) \
({ \
	struct cpu_state *cpu = this_cpu(); \
\
	if (cpu && cpu->count) \
		cpu->count--; \
})

#endif
