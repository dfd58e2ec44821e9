/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Groups that no hint named, inferred from who wakes whom (--infer): within one user, bounded in
 * size; see warmq_meet().
 */
#pragma once

u64 next_inferred = 1;

/* An inferred group is full when it has as many members as it may. */
static bool has_room(u32 group)
{
	return members_of(group_of(group)) < infer_size;
}

static u32 found_group(struct task_struct *p, u32 cpu, u64 now)
{
	struct group_key key = { .uid = user_of(p) + 1 };

	key.hint = WARMQ_INFERRED | __sync_fetch_and_add(&next_inferred, 1);
	return make_group(p, &key, cpu, now, ORIGIN_INFERRED);
}

/* `p` was woken by the current task. */
__noinline int infer_from_wakeup(struct task_struct *p __arg_trusted, struct task_state *t __arg_nonnull, u32 cpu, u64 now)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	struct task_state *w;
	u32 group;

	if (bpf_in_interrupt() || waker->pid == p->pid || (waker->flags & PF_KTHREAD) || (p->flags & PF_KTHREAD) || t->hint)
		return 0;
	w = task_of(waker);
	if (!w || w->hint || user_of(p) != user_of(waker))
		return 0;
	switch (warmq_meet(group_number(t), group_number(w), &t->firmness)) {
	case WARMQ_FOUND:
		group = found_group(p, cpu, now);
		enter_unnamed(t, group, now);
		enter_unnamed(w, group, now);
		count(COUNT_INFERRED);
		break;
	case WARMQ_WAKEE_JOINS:
		if (has_room(group_number(w)))
			enter_unnamed(t, group_number(w), now);
		break;
	case WARMQ_WAKER_JOINS:
		if (has_room(group_number(t)))
			enter_unnamed(w, group_number(t), now);
		break;
	case WARMQ_STRANGERS:
		break;
	}
	return 0;
}
