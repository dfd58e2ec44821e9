/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What Rust links: the functions of warmq.h that all others are made of, and warmq_abi.h. */
#include <warmq.h>

int32_t warmq_hint_return_to(uint64_t hint);
int32_t warmq_hint_listening(void);
uint64_t warmq_hint_current(void);
uint64_t warmq_hint_pack(uint32_t app, uint32_t fragment);
uint32_t warmq_hint_app(uint64_t hint);
uint32_t warmq_hint_fragment(uint64_t hint);

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

uint64_t warmq_hint_pack(uint32_t app, uint32_t fragment)
{
	return warmq_pack(app, fragment);
}

uint32_t warmq_hint_app(uint64_t hint)
{
	return warmq_app(hint);
}

uint32_t warmq_hint_fragment(uint64_t hint)
{
	return warmq_fragment(hint);
}

/* The numbers and paths of warmq_abi.h, for src/abi.rs. */
const char *warmq_hint_pins(void);
const char *warmq_hint_slots(void);

const char *warmq_hint_pins(void)
{
	return WARMQ_PINS;
}

const char *warmq_hint_slots(void)
{
	return WARMQ_SLOTS;
}

const int32_t warmq_hint_prctl_hint = WARMQ_PRCTL_HINT;
const int32_t warmq_hint_answer_move = WARMQ_ANSWER_MOVE;
const uint32_t warmq_hint_max_cpus = WARMQ_MAX_CPUS;
const uint32_t warmq_hint_max_domains = WARMQ_MAX_DOMAINS;
const uint32_t warmq_hint_max_groups = WARMQ_MAX_GROUPS;
const uint32_t warmq_hint_pinned_base = WARMQ_PINNED_BASE;
const uint32_t warmq_hint_group_base = WARMQ_GROUP_BASE;
