/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * warmq.h: a thread tells the scheduler scx_warmq which data it is about to use. It includes
 * warmq_abi.h, which must lie beside it.
 *
 * Threads that use the same data should run where that data is already in a cache. A program names
 * each such piece of data by two numbers of its own choice, an app and a *fragment* of it:
 *
 *	warmq_enter(APP, room);         from here on this thread uses the data of `room`
 *	...
 *	warmq_leave();                  and from here on no data in particular
 *
 * C99 or C++11, Linux, gcc or clang. Nothing to link, nothing to set up, no privilege. Without a
 * scheduler the calls do nothing and cost a comparison or two. See README.md.
 *
 * Every function here may be called from any thread and from signal handlers. `errno` is kept.
 * Memory is allocated once per process, by the first call that a scheduler hears.
 *
 * How it works. The first way is a system call, prctl(WARMQ_PRCTL_HINT, hint). scx_warmq accepts
 * it; without scx_warmq the kernel fails with EINVAL. Once a hint was accepted, the thread also
 * gets a *slot*: 24 bytes of its own memory that the scheduler can read (struct warmq_slot). From
 * then on a hint that the scheduler already knows is one memory write. Only a change of fragment
 * still calls prctl, so that it takes effect before the thread runs on.
 *
 * Limits: a child of vfork() or of a bare clone(CLONE_VM) shares this thread's state and should not
 * hint. At execve() a loaded scheduler forgets what the thread said. A sandbox that kills for
 * prctl() kills for a hint, too; a thread under any system-call filter gets no slot. Only 64-bit
 * programs hint, because a hint must fit one argument of prctl.
 */
#ifndef WARMQ_H
#define WARMQ_H

#include <errno.h>
#include <stdint.h>

#include "warmq_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__linux__) && defined(__LP64__)

#ifdef __cplusplus
} /* The system's headers have linkages of their own. */
#endif
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef __cplusplus
extern "C" {
#else
/* unistd.h hides it from a strict C compiler. */
extern long syscall(long number, ...);
#endif

/* --- State --------------------------------------------------------------------------------- */

/*
 * One call in so many asks the kernel even where it seems needless. So a scheduler that was loaded
 * or restarted in the meantime gets a thread's hint by its 64th call at the latest.
 * warmq_listening() asks at once.
 */
#define WARMQ_CHECK_EVERY 64u
/*
 * After so many hints in a row that prctl took and the slot does not show, nobody reads the slot.
 */
#define WARMQ_PATIENCE 8u

/* A slot has a cache line of its own, as its thread writes it often. */
struct warmq_line {
	struct warmq_slot slot;
	/* The thread id that holds the line; 0 = free. */
	volatile uint32_t owner;
	uint32_t padding[9];
};

/*
 * The slots of a process: 2 MB of addresses, reserved at once so that lines never move. Pages are
 * touched one by one as threads come (64 bytes per thread). A thread that finds no free line hints
 * by prctl.
 */
#define WARMQ_LINES 32767u

struct warmq_arena {
	/* How many lines were ever taken; they are the first ones. */
	volatile uint32_t used;
	/* Where the search for lines of dead threads goes on. */
	volatile uint32_t cursor;
	uint32_t padding[14];
	struct warmq_line lines[WARMQ_LINES];
};

/* What a thread knows. All zero: it has never asked. Only its own thread changes it. */
struct warmq_thread {
	/* What the program said last, heard or not. */
	volatile uint64_t hint;
	/* The line that this thread holds until it dies. */
	struct warmq_line *volatile line;
	/* The slot is in use if its nonce is this one. 0: hints go by prctl. */
	volatile uint64_t nonce;
	/* Calls until the kernel is asked anyway. */
	volatile uint32_t until_check;
	/* Accepted hints until the next attempt to attach a slot. */
	volatile uint32_t until_attach;
	/* The result of the last prctl: 0, or -errno. */
	volatile int32_t answer;
	volatile uint8_t unacknowledged;
	volatile uint8_t failures;
	volatile uint8_t attaching;
	uint8_t padding;
};

/*
 * Weak, so that all parts of a program that include this header share one state. Initial-exec, so
 * that reaching it never allocates, not even in a library that was loaded late.
 */
__extension__ extern __thread struct warmq_thread warmq_this_thread
	__attribute__((weak, visibility("default"), tls_model("initial-exec")));
extern struct warmq_arena *warmq_this_arena __attribute__((weak, visibility("default")));

__extension__ __thread struct warmq_thread warmq_this_thread;
struct warmq_arena *warmq_this_arena;

/* Off the fast path, and once in a program rather than at every call. */
#define WARMQ_SLOW static __attribute__((noinline, cold, unused))

/* --- The kernel: all system calls of this header -------------------------------------------- */

#ifdef WARMQ_FAKE_KERNEL
/* A test that includes this header brings its own kernel. */
static int warmq_kernel_prctl(int option, uint64_t value);
static int warmq_kernel_attach(uint32_t thread, struct warmq_slot *slot);
#else

/*
 * Gives `value` to the scheduler. Returns 0 or -errno. If the thread's new home is elsewhere, the
 * thread yields, so that it is moved before it touches its data.
 */
static inline int warmq_kernel_prctl(int option, uint64_t value)
{
	int answer = prctl(option, (unsigned long)value, 0ul, 0ul, 0ul);

	if (answer == WARMQ_ANSWER_MOVE)
		syscall(SYS_sched_yield);
	return answer >= 0 ? 0 : -errno;
}

/*
 * Whether system calls of this thread are filtered. A filter may kill for bpf(), so a thread in a
 * sandbox hints by prctl only.
 */
static inline int warmq_kernel_filters(void)
{
	return prctl(21 /* PR_GET_SECCOMP */, 0ul, 0ul, 0ul, 0ul) != 0;
}

static inline int warmq_kernel_slots(void)
{
	struct {
		uint64_t path;
		uint32_t descriptor, flags;
	} get = { (uint64_t)(uintptr_t)WARMQ_SLOTS, 0, 0 };

	return (int)syscall(SYS_bpf, 7 /* BPF_OBJ_GET */, &get, sizeof(get));
}

/* A descriptor of the thread itself, not of its process. */
static inline int warmq_kernel_descriptor(uint32_t thread)
{
	return (int)syscall(434 /* pidfd_open */, thread, 0200 /* PIDFD_THREAD = O_EXCL */);
}

static inline int warmq_kernel_update(int slots, int thread, struct warmq_slot *slot)
{
	int key = thread;
	struct warmq_slot *value = slot;
	struct {
		uint32_t map, padding;
		uint64_t key, value, flags;
	} update = { (uint32_t)slots, 0, (uint64_t)(uintptr_t)&key, (uint64_t)(uintptr_t)&value, 0 };

	return (int)syscall(SYS_bpf, 2 /* BPF_MAP_UPDATE_ELEM */, &update, sizeof(update));
}

/* Lets the scheduler read `slot` for this thread. Returns 0, or a negative number on failure. */
static inline int warmq_kernel_attach(uint32_t thread, struct warmq_slot *slot)
{
	int slots, descriptor, result = -1;

	if (warmq_kernel_filters())
		return -1;
	slots = warmq_kernel_slots();
	if (slots < 0)
		return -1;
	descriptor = warmq_kernel_descriptor(thread);
	if (descriptor >= 0) {
		result = warmq_kernel_update(slots, descriptor, slot);
		(void)close(descriptor);
	}
	(void)close(slots);
	return result;
}

#endif /* WARMQ_FAKE_KERNEL */

/* Random bits, never 0 unless the kernel has none. */
static inline uint64_t warmq_kernel_nonce(void)
{
	uint64_t nonce = 0;

	if (syscall(SYS_getrandom, &nonce, sizeof(nonce), 1 /* GRND_NONBLOCK */) != (long)sizeof(nonce))
		return 0;
	return nonce != 0 ? nonce : 1;
}

static inline int warmq_kernel_is_dead(uint32_t thread)
{
	return syscall(SYS_tgkill, getpid(), thread, 0) != 0 && errno == ESRCH;
}

/* --- Lines: one per thread, without locks --------------------------------------------------- */

/* Maps the arena, which the child of a fork will find empty. NULL on failure. */
WARMQ_SLOW struct warmq_arena *warmq_map_arena(void)
{
	struct warmq_arena *arena, *first = NULL;
	void *memory = mmap(NULL, sizeof(struct warmq_arena), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | 0x20 /* MAP_ANONYMOUS */, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	/* Without huge pages: the kernel pins the page of a slot, and it should be a small one. */
	(void)syscall(SYS_madvise, memory, sizeof(struct warmq_arena), 15 /* MADV_NOHUGEPAGE */);
	arena = (struct warmq_arena *)memory;
	if (syscall(SYS_madvise, memory, sizeof(struct warmq_arena), 18 /* MADV_WIPEONFORK */) == 0 &&
	    __atomic_compare_exchange_n(&warmq_this_arena, &first, arena, 0, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return arena;
	(void)munmap(memory, sizeof(struct warmq_arena));
	return first; /* NULL, or the one that another thread has just mapped. */
}

static inline struct warmq_arena *warmq_find_arena(void)
{
	struct warmq_arena *arena = __atomic_load_n(&warmq_this_arena, __ATOMIC_ACQUIRE);

	return arena != NULL ? arena : warmq_map_arena();
}

/* Takes `line` for `thread` unless a living thread holds it. */
static inline int warmq_take(struct warmq_line *line, uint32_t thread)
{
	uint32_t owner = __atomic_load_n(&line->owner, __ATOMIC_RELAXED);

	if (owner != 0 && owner != thread && !warmq_kernel_is_dead(owner))
		return 0;
	return __atomic_compare_exchange_n(&line->owner, &owner, thread, 0, __ATOMIC_ACQ_REL,
					   __ATOMIC_RELAXED);
}

/*
 * A line for `thread`: the line of a dead thread if there is one among the next eight, else a fresh
 * one. So the search takes bounded time, and the lines in use stay within a small multiple of the
 * living threads.
 *
 * The scheduler may still read a line for its dead thread. It finds another nonce there and ignores
 * the line.
 */
WARMQ_SLOW struct warmq_line *warmq_take_line(struct warmq_arena *arena, uint32_t thread)
{
	uint32_t used = __atomic_load_n(&arena->used, __ATOMIC_RELAXED), tries, fresh;

	if (used >= WARMQ_LINES)
		used = WARMQ_LINES;
	for (tries = used < 8 ? used : 8; tries > 0; tries--) {
		uint32_t at = __atomic_fetch_add(&arena->cursor, 1, __ATOMIC_RELAXED) % used;

		if (warmq_take(&arena->lines[at], thread))
			return &arena->lines[at];
	}
	if (used == WARMQ_LINES)
		return NULL;
	fresh = __atomic_fetch_add(&arena->used, 1, __ATOMIC_RELAXED);
	if (fresh < WARMQ_LINES && warmq_take(&arena->lines[fresh], thread))
		return &arena->lines[fresh];
	return NULL;
}

/* The line of this thread: the one that it holds already, or a new one. */
static inline struct warmq_line *warmq_line_of(struct warmq_thread *self, uint32_t thread)
{
	struct warmq_line *line = self->line;
	struct warmq_arena *arena;

	if (line != NULL && __atomic_load_n(&line->owner, __ATOMIC_RELAXED) == thread)
		return line;
	arena = warmq_find_arena();
	line = arena != NULL ? warmq_take_line(arena, thread) : NULL;
	self->line = line;
	return line;
}

/* --- Slots --------------------------------------------------------------------------------- */

/*
 * The slot in use, or NULL. In the child of a fork the kernel has wiped the slot and its nonce, so
 * the child notices here that it has no slot yet.
 */
static inline struct warmq_slot *warmq_slot_of(struct warmq_thread *self)
{
	uint64_t nonce = self->nonce;
	struct warmq_line *line = self->line;

	return nonce != 0 && line->slot.nonce == nonce ? &line->slot : NULL;
}

/*
 * Back to prctl. A scheduler that still reads the slot must not act on stale contents, so the nonce
 * is cleared there, too. The slot comes last: if a signal handler attaches in between, thread and
 * scheduler still agree.
 */
static inline void warmq_detach(struct warmq_thread *self)
{
	struct warmq_slot *slot = warmq_slot_of(self);

	self->nonce = 0;
	if (slot != NULL)
		slot->nonce = 0;
	self->unacknowledged = 0;
}

/* Slots do not work for now: try again after 64, 128, 256, ... accepted hints. */
static inline void warmq_give_up(struct warmq_thread *self)
{
	uint8_t failures = self->failures;

	warmq_detach(self);
	self->until_attach = WARMQ_CHECK_EVERY << failures;
	self->failures = failures < 10 ? (uint8_t)(failures + 1) : failures;
}

/* Attaches a slot with what the program said last. */
static inline int warmq_try_attach(struct warmq_thread *self)
{
	uint32_t thread = (uint32_t)syscall(SYS_gettid);
	uint64_t nonce = warmq_kernel_nonce();
	struct warmq_line *line;

	/* A scheduler that does not take a nonce does not read slots either. */
	if (nonce == 0 || warmq_kernel_prctl(WARMQ_PRCTL_NONCE, nonce) != 0)
		return -1;
	line = warmq_line_of(self, thread);
	if (line == NULL)
		return -1;
	line->slot.acknowledged = 0;
	line->slot.hint = self->hint;
	self->nonce = nonce;
	line->slot.nonce = nonce; /* From here on it is in use, also by signal handlers. */
	return warmq_kernel_attach(thread, &line->slot);
}

/* A signal handler that interrupts this does not start it a second time. */
WARMQ_SLOW void warmq_attach(struct warmq_thread *self)
{
	if (self->attaching)
		return;
	self->attaching = 1;
	if (warmq_try_attach(self) != 0)
		warmq_give_up(self);
	self->attaching = 0;
}

/* prctl took `hint`. If the slot does not show it, nobody reads the slot (any more). */
static inline void warmq_watch(struct warmq_thread *self, struct warmq_slot *slot, uint64_t hint)
{
	uint8_t missed = (uint8_t)(self->unacknowledged + 1);

	if (hint == WARMQ_NONE)
		return; /* A cleared slot looks the same. */
	if (slot->acknowledged == hint) {
		self->unacknowledged = 0;
		self->failures = 0;
	} else if (missed < WARMQ_PATIENCE) {
		self->unacknowledged = missed;
	} else {
		warmq_give_up(self);
	}
}

/* --- Hinting -------------------------------------------------------------------------------- */

/* Gives the hint by prctl, and learns from the answer whether a scheduler and a slot are there. */
WARMQ_SLOW int warmq_knock(struct warmq_thread *self, uint64_t hint)
{
	int before = errno;
	int answer = warmq_kernel_prctl(WARMQ_PRCTL_HINT, hint);
	struct warmq_slot *slot = warmq_slot_of(self);
	uint32_t until_attach = self->until_attach;

	self->answer = answer;
	self->until_check = WARMQ_CHECK_EVERY - 1;
	if (answer != 0) {
		warmq_detach(self);
		self->until_attach = 0; /* The next scheduler starts afresh. */
		self->failures = 0;
	} else if (slot != NULL) {
		warmq_watch(self, slot, hint);
	} else if (until_attach > 0) {
		self->until_attach = until_attach - 1;
	} else {
		warmq_attach(self);
	}
	errno = before;
	return answer;
}

/* Whether this is the one call in WARMQ_CHECK_EVERY that asks the kernel in any case. */
static inline int warmq_check_is_due(struct warmq_thread *self)
{
	uint32_t left = self->until_check;

	if (left == 0)
		return 1;
	self->until_check = left - 1;
	return 0;
}

static inline int warmq_tell_once(struct warmq_thread *self, uint64_t hint)
{
	struct warmq_slot *slot = warmq_slot_of(self);
	int due = warmq_check_is_due(self);

	if (slot == NULL)
		return self->answer != 0 && !due ? self->answer : warmq_knock(self, hint);
	slot->hint = hint;
	/* Leaving a fragment can wait until the scheduler looks at the slot. */
	if (!due && (hint == WARMQ_NONE || slot->acknowledged == hint))
		return 0;
	slot->acknowledged = 0; /* So the next acknowledgement is a new one. */
	return warmq_knock(self, hint);
}

/*
 * Gives the scheduler what the program said last. A signal handler may hint in the middle of this;
 * then the hint is given once more, so that scheduler and thread end up with the same one.
 */
static inline int warmq_tell(struct warmq_thread *self)
{
	uint64_t hint;
	int answer;

	do {
		hint = self->hint;
		answer = warmq_tell_once(self, hint);
	} while (self->hint != hint);
	return answer;
}

/* --- What programs call -------------------------------------------------------------------- */

/* The thread's hint or WARMQ_NONE: pass it to warmq_return_to() later. */
static inline uint64_t warmq_current(void)
{
	return warmq_this_thread.hint;
}

/* Goes back to a hint that warmq_current() returned. Returns what warmq_enter does. */
static inline int warmq_return_to(uint64_t hint)
{
	struct warmq_thread *self = &warmq_this_thread;

	self->hint = hint;
	return warmq_tell(self);
}

/*
 * Whether a scheduler listens. Asks the kernel at once and gives it this thread's hint, without
 * waiting for the next of the calls that WARMQ_CHECK_EVERY counts.
 */
static inline int warmq_listening(void)
{
	struct warmq_thread *self = &warmq_this_thread;

	self->until_check = 0;
	return warmq_tell(self) == 0;
}

#else /* Not Linux, or not 64 bits: there can be no scheduler that listens. */

static inline uint64_t warmq_current(void)
{
	return WARMQ_NONE;
}

static inline int warmq_return_to(uint64_t hint)
{
	(void)hint;
	return -ENOSYS;
}

static inline int warmq_listening(void)
{
	return 0;
}

#endif

/*
 * From here on this thread uses the data of `fragment` of `app`, until it enters another or leaves.
 *
 * Returns 0 if a scheduler knows, -ERANGE for the reserved pair (UINT32_MAX, UINT32_MAX), which
 * changes nothing, and another negative number, most often -EINVAL, if no scheduler listens. A
 * program may ignore the result.
 */
static inline int warmq_enter(uint32_t app, uint32_t fragment)
{
	uint64_t hint = warmq_pack(app, fragment);

	return hint == WARMQ_NONE ? -ERANGE : warmq_return_to(hint);
}

/*
 * From here on this thread uses no data in particular. Returns what warmq_enter does.
 *
 * With a slot this is a system call only once in WARMQ_CHECK_EVERY. The scheduler sees it the next
 * time it looks at the thread, at its next tick at the latest.
 */
static inline int warmq_leave(void)
{
	return warmq_return_to(WARMQ_NONE);
}

#ifdef __cplusplus
}

namespace warmq {

/* Enters a fragment for the length of a block, and then goes back to the one before. */
class Scope {
public:
	Scope(uint32_t app, uint32_t fragment) : before_(warmq_current()) { warmq_enter(app, fragment); }
	~Scope() { warmq_return_to(before_); }
	Scope(const Scope &) = delete;
	Scope &operator=(const Scope &) = delete;

private:
	uint64_t before_;
};

} // namespace warmq
#endif

#endif /* WARMQ_H */
