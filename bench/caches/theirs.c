/*
 * The other side of the comparison: plays a stream of references through the C core of pycachesim
 * and prints what it counted and how long it took. Only the playing is timed.
 *
 * usage: theirs CACHES STREAM    CACHES: a definition as get_cacheSim_from_file() reads it
 *                                STREAM: 64-bit words, address * 2 + (1 for a write)
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "backend.h"

static uint64_t *read_stream(const char *path, size_t *count)
{
	FILE *file = fopen(path, "rb");
	uint64_t *words;
	long bytes;

	if (!file || fseek(file, 0, SEEK_END) || (bytes = ftell(file)) < 0) {
		perror(path);
		exit(1);
	}
	rewind(file);
	*count = (size_t)bytes / sizeof(*words);
	words = malloc((size_t)bytes);
	if (!words || fread(words, sizeof(*words), *count, file) != *count) {
		perror(path);
		exit(1);
	}
	fclose(file);
	return words;
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int count_of_arguments, char **arguments)
{
	uint64_t *words;
	size_t count;
	double start, took;
	Cache *cache;

	if (count_of_arguments != 3) {
		fprintf(stderr, "usage: %s CACHES STREAM\n", arguments[0]);
		return 2;
	}
	cache = get_cacheSim_from_file(arguments[1]);
	words = read_stream(arguments[2], &count);

	start = seconds();
	for (size_t i = 0; i < count; i++) {
		addr_range range = { .addr = (long)(words[i] >> 1), .length = 1 };

		if (words[i] & 1)
			Cache__store(cache, range, 0);
		else
			Cache__load(cache, range);
	}
	took = seconds() - start;

	printf("{\"references\": %zu, \"seconds\": %.6f, \"misses\": [", count, took);
	for (Cache *level = cache; level; level = level->load_from)
		printf("%lld%s", level->MISS.count, level->load_from ? ", " : "]}\n");
	return 0;
}
