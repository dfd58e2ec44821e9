/* What the programs of this folder share: a check that says where it failed. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition) CHECK_AT(condition, __LINE__, 0)

/* `seen` is printed with the failure. */
#define CHECK_AT(condition, line, seen)                                                              \
	do {                                                                                         \
		if (!(condition)) {                                                                  \
			fprintf(stderr, "%s:%d: not so: %s (seen: %llu)\n", __FILE__, (line),        \
				#condition, (unsigned long long)(seen));                             \
			exit(1);                                                                     \
		}                                                                                    \
	} while (0)

#define CHECK_EQUAL(left, right) CHECK_AT((left) == (right), __LINE__, (left))

#endif
