/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * Colors the stacks and control blocks of all threads of a program that was not written for it:
 *
 *     cc -O2 -shared -fPIC -o libwarmq_color_threads.so warmq_color_threads.c -ldl
 *     LD_PRELOAD=./libwarmq_color_threads.so PROGRAM
 *
 * glibc puts a thread's control block, its thread-local variables and the top of its stack at the
 * end of a mapping, and does not round the size that pthread_attr_setstacksize() got to pages. So
 * the size is the place for the color, and no stack must be allocated and freed here.
 *
 * It does nothing for threads whose program gave them a stack (pthread_attr_setstack), for programs
 * that are linked statically or clone threads by themselves (Go), and with other C libraries. A
 * thread that reads the size of its stack finds less than a page more.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "warmq_color.h"

#define LINE 64

typedef int create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

/* Whether the program gave a stack: without, glibc answers with address 0 less the size. */
static int has_stack(const pthread_attr_t *attr)
{
	void *low;
	size_t size;

	return pthread_attr_getstack(attr, &low, &size) != 0 || (uintptr_t)low + size != 0;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *argument)
{
	static uint64_t threads;
	create *next = (create *)dlsym(RTLD_NEXT, "pthread_create");
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size;
	pthread_attr_t own;
	int answer;

	if (!next)
		return ENOSYS;
	if (attr && has_stack(attr))
		return next(thread, attr, start, argument);
	/* A copy for the length of the call. It owns nothing, so it is not destroyed. */
	if (attr)
		own = *attr;
	else if (pthread_getattr_default_np(&own) != 0)
		return next(thread, attr, start, argument);
	if (pthread_attr_getstacksize(&own, &size) == 0) {
		uint64_t index = __atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED);

		size = (size + page - 1) / page * page;
		/* Where it is refused, the size stays. */
		pthread_attr_setstacksize(&own, size + warmq_color_offset(index, page / LINE, LINE));
	}
	answer = next(thread, &own, start, argument);
	if (!attr)
		pthread_attr_destroy(&own);
	return answer;
}
