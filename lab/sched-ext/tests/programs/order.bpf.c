/* SPDX-License-Identifier: GPL-2.0-only */
/* One queue for all. Writes down which callbacks come in which order, and ends with that as its error. */
#include "scx.h"

#define SHARED 0

volatile const u32 most = 16; /* callbacks that are written down */
volatile const u64 slice = 5000000;
volatile const bool at_once; /* SCX_ENQ_IMMED, and the queue for those that come back */
volatile const bool always_at_once;
volatile const bool gives_back; /* what waits in the own queue of a CPU that is lost */

char written[256];
u32 used, count;

static void letter(char one)
{
	if (used < sizeof(written) - 2)
		written[used++ & 255] = one;
}

static NOINLINE int note(char one, char other)
{
	static char format[] = "%s";
	u64 data[1] = { (u64)written };

	if (count++)
		letter(' ');
	letter(one);
	if (other)
		letter(other);
	if (count == most)
		scx_bpf_error_bstr(format, data, sizeof(data));
	return 0;
}

CALLBACK(order_select_cpu)
{
	note('S', 0);
	return ctx[1];
}

CALLBACK(order_enqueue)
{
	u64 flags = ctx[1];

	bool again = flags & (1ULL << 40);

	note('Q', again ? 'a' : flags & 1 ? 'w' : flags & 2 ? 'r' : flags & (1ULL << 41) ? 'l' : 0);
	if (always_at_once || at_once && !again) {
		scx_bpf_dsq_insert((void *)ctx[0], DSQ_LOCAL, slice, 1ULL << 33);
		return 0;
	}
	scx_bpf_dsq_insert((void *)ctx[0], SHARED, slice, flags);
	return 0;
}

CALLBACK(order_dequeue)
{
	u64 flags = ctx[1];

	return note('D', flags & 1 ? 's' : flags & (1ULL << 33) ? 'c' : flags & 2 ? 'o' : flags ? '?' : 0);
}

CALLBACK(order_dispatch)
{
	note('d', 0);
	scx_bpf_dsq_move_to_local(SHARED);
	return 0;
}

CALLBACK(order_tick)
{
	return note('t', 0);
}

CALLBACK(order_runnable)
{
	return note('R', 0);
}

CALLBACK(order_running)
{
	return note('+', 0);
}

CALLBACK(order_stopping)
{
	return note('-', (bool)ctx[1] ? '1' : '0');
}

CALLBACK(order_quiescent)
{
	return note('q', 0);
}

CALLBACK(order_set_weight)
{
	return note('W', 0);
}

CALLBACK(order_set_cpumask)
{
	return note('M', 0);
}

CALLBACK(order_init_task)
{
	return note('I', 0);
}

CALLBACK(order_exit_task)
{
	return note('X', 0);
}

CALLBACK(order_enable)
{
	return note('E', 0);
}

CALLBACK(order_disable)
{
	return note('x', 0);
}

CALLBACK(order_cpu_release)
{
	note('L', 0);
	if (gives_back)
		scx_bpf_reenqueue_local();
	return 0;
}

CALLBACK(order_cpu_acquire)
{
	return note('A', 0);
}

SEC("struct_ops.s/order_init") int order_init(u64 *ctx)
{
	return scx_bpf_create_dsq(SHARED, -1);
}

SEC(".struct_ops.link") struct sched_ext_ops order = {
	.select_cpu = (void *)order_select_cpu,
	.enqueue = (void *)order_enqueue,
	.dequeue = (void *)order_dequeue,
	.dispatch = (void *)order_dispatch,
	.tick = (void *)order_tick,
	.runnable = (void *)order_runnable,
	.running = (void *)order_running,
	.stopping = (void *)order_stopping,
	.quiescent = (void *)order_quiescent,
	.set_weight = (void *)order_set_weight,
	.set_cpumask = (void *)order_set_cpumask,
	.init_task = (void *)order_init_task,
	.exit_task = (void *)order_exit_task,
	.enable = (void *)order_enable,
	.disable = (void *)order_disable,
	.cpu_release = (void *)order_cpu_release,
	.cpu_acquire = (void *)order_cpu_acquire,
	.init = (void *)order_init,
	.name = "order",
};
