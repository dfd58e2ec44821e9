/* SPDX-License-Identifier: GPL-2.0-only */
/* Counts its dequeues by their flags, and ends with the counts as its error. Tasks go to a queue of its own, to where
 * they run, or into a list that it keeps itself. */
#include "scx.h"

#define SHARED 0
#define ROOM 8

volatile const u32 most = 16; /* switches */
volatile const u64 first = SHARED; /* the queue that enqueue inserts into; NOWHERE: the list */
volatile const u64 then = DSQ_LOCAL; /* the queue that dispatch inserts a task of the list into */
volatile const bool again; /* what waits in its own queue comes back at each tick, and goes to the CPU's */

#define NOWHERE (-1ULL)

u32 list[ROOM], head, tail, switches;
u32 dispatched, slept, changed, old, other; /* dequeues: no flag, SLEEP, SCHED_CHANGE, SAVE without that */
u32 back;

KFUNC struct task_struct *bpf_task_from_pid(s32 pid);
KFUNC void bpf_task_release(struct task_struct *p);
KFUNC void scx_bpf_dsq_reenq(u64 id, u64 flags);

CALLBACK(custody_enqueue)
{
	struct task_struct *task = (void *)ctx[0];
	u64 flags = ctx[1];

	if (flags & (1ULL << 40)) {
		back++;
		scx_bpf_dsq_insert(task, DSQ_LOCAL, 5000000, 0);
	} else if (first == NOWHERE)
		list[tail++ & (ROOM - 1)] = task->pid;
	else
		scx_bpf_dsq_insert(task, first, 5000000, 0);
	return 0;
}

CALLBACK(custody_dequeue)
{
	u64 flags = ctx[1];

	if (flags & 1)
		slept++;
	else if (flags & (1ULL << 33))
		changed++;
	else if (flags & 2)
		old++;
	else if (flags)
		other++;
	else
		dispatched++;
	return 0;
}

CALLBACK(custody_dispatch)
{
	struct task_struct *task;

	if (head != tail) {
		task = bpf_task_from_pid(list[head++ & (ROOM - 1)]);
		if (task) {
			scx_bpf_dsq_insert(task, then, 5000000, 0);
			bpf_task_release(task);
		}
	}
	scx_bpf_dsq_move_to_local(SHARED);
	return 0;
}

CALLBACK(custody_tick)
{
	if (again)
		scx_bpf_dsq_reenq(SHARED, 0);
	return 0;
}

CALLBACK(custody_running)
{
	static char format[] = "%u dispatched, %u slept, %u changed, %u old, %u other, %u back";
	u64 data[6] = { dispatched, slept, changed, old, other, back };

	if (++switches == most)
		scx_bpf_error_bstr(format, data, sizeof(data));
	return 0;
}

SEC("struct_ops.s/custody_init") int custody_init(u64 *ctx)
{
	return scx_bpf_create_dsq(SHARED, -1);
}

SEC(".struct_ops.link") struct sched_ext_ops custody = {
	.enqueue = (void *)custody_enqueue,
	.dequeue = (void *)custody_dequeue,
	.dispatch = (void *)custody_dispatch,
	.tick = (void *)custody_tick,
	.running = (void *)custody_running,
	.init = (void *)custody_init,
	.name = "custody",
};
