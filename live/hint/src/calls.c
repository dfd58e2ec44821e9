/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What Rust links: the functions of warmq.h that all others are made of. */
#include <warmq.h>

int32_t warmq_hint_return_to(uint64_t hint);
int32_t warmq_hint_listening(void);
uint64_t warmq_hint_current(void);

int32_t warmq_hint_return_to(uint64_t hint)
{
	return warmq_return_to(hint);
}

int32_t warmq_hint_listening(void)
{
	return warmq_listening();
}

uint64_t warmq_hint_current(void)
{
	return warmq_current();
}
