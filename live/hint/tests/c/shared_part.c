/* The other part, in C or in C++, in the program or in a library of its own. */
#include <warmq.h>

#ifdef __cplusplus
extern "C" {
#endif

uint64_t part_current(void);
void part_enters(uint32_t app, uint32_t fragment);

uint64_t part_current(void)
{
	return warmq_current();
}

void part_enters(uint32_t app, uint32_t fragment)
{
	warmq_enter(app, fragment);
}

#ifdef __cplusplus
}
#endif
