/* SPDX-License-Identifier: GPL-2.0-only */
/* A scheduler that leaves all to the kernel and writes down what happens; it ends with that as its error. */
#include "scx.h"

volatile const u32 most = 16; /* events that are written down */

char written[256];
u32 used, count;

/* A letter, and the pids of two tasks; the idle one has 0. */
static NOINLINE int note(char one, struct task_struct *task, struct task_struct *other)
{
	static char format[] = "%s";
	u64 data[1] = { (u64)written };
	u32 pids[2] = { task ? task->pid : -1U, other ? other->pid : -1U }, i;

	if (used > sizeof(written) - 8)
		return 0;
	if (count++)
		written[used++ & 255] = ' ';
	written[used++ & 255] = one;
	for (i = 0; i < 2; i++)
		if (pids[i] != -1U)
			written[used++ & 255] = pids[i] ? 'a' + pids[i] - 1000 : '-';
	if (count == most)
		scx_bpf_error_bstr(format, data, sizeof(data));
	return 0;
}

#define EVENT(name) SEC("tp_btf/sched_" #name) int on_##name(u64 *ctx)
#define TASK(at) ((struct task_struct *)ctx[at])

/* preempted, still runnable, sleeping, dead */
EVENT(switch)
{
	return note(ctx[0] ? 'p' : ctx[3] == 0 ? 'r' : ctx[3] == 0x80 ? 'd' : 's', TASK(1), TASK(2));
}

EVENT(waking) { return note('k', TASK(0), 0); }
EVENT(wakeup) { return note('w', TASK(0), 0); }
EVENT(wakeup_new) { return note('n', TASK(0), 0); }
EVENT(process_fork) { return note('f', TASK(0), TASK(1)); }
EVENT(process_exit) { return note('x', TASK(0), 0); }
EVENT(migrate_task) { return note('0' + ctx[1], TASK(0), 0); }

/* Its loader does not turn it on. */
SEC("?tp_btf/sched_process_exec") int on_exec(u64 *ctx) { return note('e', TASK(0), 0); }

SEC("?fentry/scx_tick") int on_tick(u64 *ctx)
{
	return note(ctx[0] ? 't' : '?', 0, 0);
}

SEC("struct_ops.s/events_init") int events_init(u64 *ctx)
{
	return 0;
}

SEC(".struct_ops.link") struct sched_ext_ops events = {
	.init = (void *)events_init,
	.name = "events",
};
