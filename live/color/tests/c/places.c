/* Prints, for 64 threads, the offsets in the page of a variable on the stack and of errno, which is
 * the thread's own. With an argument, threads get stacks of the program. */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 64
#define SIZE (128 << 10)

static void *places(void *unused)
{
	char here;

	printf("%zu %zu\n", (size_t)((uintptr_t)&here % 4096), (size_t)((uintptr_t)&errno % 4096));
	return unused;
}

int main(int count, char **words)
{
	pthread_t threads[THREADS];

	(void)words;
	for (int index = 0; index < THREADS; index++) {
		pthread_attr_t attr;
		void *stack;

		pthread_attr_init(&attr);
		if (count > 1) {
			if (posix_memalign(&stack, 4096, SIZE))
				return 1;
			pthread_attr_setstack(&attr, stack, SIZE);
		}
		if (pthread_create(&threads[index], index % 2 || count > 1 ? &attr : NULL, places, NULL))
			return 1;
		pthread_attr_destroy(&attr);
	}
	for (int index = 0; index < THREADS; index++)
		pthread_join(threads[index], NULL);
	return 0;
}
