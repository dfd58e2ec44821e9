/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/*
 * warmq_abi.h: everything that a program and the scheduler scx_warmq must agree on, each number
 * once.
 *
 * Included by warmq.h (programs), by the BPF program (which is GPL-2.0-only, hence the third
 * licence above), and compiled for Rust by the crate warmq-hint, whose module `abi` the loader and
 * the drills use.
 *
 * Two parts: what a program says (prctl, hints, slots), and how the tables are numbered that a
 * running scheduler publishes under WARMQ_PINS.
 */
#ifndef WARMQ_ABI_H
#define WARMQ_ABI_H

#ifdef __VMLINUX_H__
/* BPF: vmlinux.h has the kernel's types, and there is no C library. */
typedef u64 warmq_u64;
typedef u32 warmq_u32;
#else
#include <stdint.h>
typedef uint64_t warmq_u64;
typedef uint32_t warmq_u32;
#endif

/* --- System calls --------------------------------------------------------------------------- */

/* prctl(WARMQ_PRCTL_HINT, hint): this thread uses the data named by `hint` from now on. */
#define WARMQ_PRCTL_HINT 0x57415251 /* "WARQ" */
/* prctl(WARMQ_PRCTL_NONCE, nonce): this thread's slot is the one that holds `nonce`. */
#define WARMQ_PRCTL_NONCE 0x57415252 /* "WARR" */

/*
 * What scx_warmq's hook in prctl answers. 0 lets the kernel go on, which knows no such option and
 * fails with EINVAL, as it does when no scx_warmq is loaded. A positive answer is what prctl
 * returns.
 */
#define WARMQ_ANSWER_IGNORED 0
#define WARMQ_ANSWER_HEARD 1
/*
 * Heard, and the fragment's home is elsewhere: the thread should yield, so that it moves at once.
 */
#define WARMQ_ANSWER_MOVE 2

/* --- Hints ---------------------------------------------------------------------------------- */

/* No fragment in particular. */
#define WARMQ_NONE ((warmq_u64)0)

/* Set in the keys of groups that --infer made, which no program named. */
#define WARMQ_INFERRED ((warmq_u64)1 << 63)

/* Set in the keys of groups that --group-by made, of tasks that named nothing. */
#define WARMQ_GROUPED ((warmq_u64)1 << 62)

/*
 * The hint for `fragment` of `app`: the pair as one number, plus one, so that 0 stays free. The
 * pair (UINT32_MAX, UINT32_MAX) would wrap to 0: it is reserved. Of `app` the scheduler reads the lower 30
 * bits, since the upper two mark its own keys.
 */
static inline warmq_u64 warmq_pack(warmq_u32 app, warmq_u32 fragment)
{
	return (((warmq_u64)app << 32) | fragment) + 1;
}

/* The app of a hint other than WARMQ_NONE. */
static inline warmq_u32 warmq_app(warmq_u64 hint)
{
	return (warmq_u32)((hint - 1) >> 32);
}

/* The fragment of a hint other than WARMQ_NONE. */
static inline warmq_u32 warmq_fragment(warmq_u64 hint)
{
	return (warmq_u32)(hint - 1);
}

/*
 * A slot: memory of a thread that the scheduler reads (a BPF uptr in a task-storage map, Linux
 * 6.13). It must not cross a page. Thread and scheduler write it without a lock, hence volatile.
 */
struct warmq_slot {
	volatile warmq_u64 hint;
	/*
	 * The hint that the scheduler acted on last. It writes this; the thread clears it to check
	 * that.
	 */
	volatile warmq_u64 acknowledged;
	/*
	 * The slot counts only if this is what the thread gave by prctl: nobody can speak for
	 * another.
	 */
	volatile warmq_u64 nonce;
};

/* --- Pins ----------------------------------------------------------------------------------- */

/* The folder that a running scheduler leaves its maps in, and the map that takes slots. */
#define WARMQ_PINS "/sys/fs/bpf/scx_warmq"
#define WARMQ_SLOTS WARMQ_PINS "/slots"

/* Sizes of the tables in the pinned state. Powers of two, because the BPF program masks indices. */
#define WARMQ_MAX_CPUS 512
/* As the domain of a CPU, WARMQ_MAX_DOMAINS says that the CPU does not exist or is offline. */
#define WARMQ_MAX_DOMAINS 128
/* Group 0 is never used: 0 means "no group". */
#define WARMQ_MAX_GROUPS 1024

/*
 * How long tasks waited for a CPU is counted in this many classes: class b has the waits of less than
 * 1024 ns times 2^b that are not in the one before; the last has all longer ones, too.
 */
#define WARMQ_WAIT_CLASSES 24

/*
 * Entities (what a CPU chooses between) are numbered in one table: the unmanaged tasks of domain d
 * are entity d, the tasks that may run on CPU c only are WARMQ_PINNED_BASE + c, and group g is
 * WARMQ_GROUP_BASE + g.
 */
#define WARMQ_PINNED_BASE WARMQ_MAX_CPUS
#define WARMQ_GROUP_BASE (WARMQ_PINNED_BASE + WARMQ_MAX_CPUS)
#define WARMQ_MAX_ENTITIES (WARMQ_GROUP_BASE + WARMQ_MAX_GROUPS)

#endif /* WARMQ_ABI_H */
