// SPDX-License-Identifier: GPL-2.0-only
/* What has to fit a kernel: fields, types and enumerators by CO-RE, options, weak symbols, a struct of
 * callbacks; and code that only other kernels run. */
#include "../../../../lab/bpf-run/tests/programs/kernel.h"

enum scx_enq_flags { SCX_ENQ_WAKEUP = 77, SCX_ENQ_IMMED = 78, SCX_ENQ_NOT_THERE = 79 };

struct sched_ext_entity { int before; u32 weight; u64 slice; } OF_KERNEL;
struct task_struct___mine {
	struct sched_ext_entity scx;
	char comm[16];
	int not_there;
	u32 pid;
	void *cpus_ptr;
} OF_KERNEL;
struct scx_bpf_dsq_insert_vtime_args { u64 dsq_id; } OF_KERNEL;
typedef struct cpumask { u64 bits[128]; } OF_KERNEL cpumask_t;
typedef struct { int before; int counter; } OF_KERNEL atomic_t;
struct pcpu_hot { int preempt_count; } OF_KERNEL;
struct nobody_knows { int field; } OF_KERNEL;

KFUNC WEAK void scx_bpf_kick_cpu(s32 cpu, u64 flags);
KFUNC WEAK void scx_bpf_kick_cpu___other(s32 cpu);
KFUNC WEAK void scx_bpf_not_there(s32 cpu);
KFUNC WEAK int sd_llc_id;
KFUNC WEAK int not_there_either;
CONFIG WEAK u32 CONFIG_HZ;
CONFIG WEAK bool CONFIG_PREEMPT_RT;
CONFIG u32 LINUX_KERNEL_VERSION;

struct part { u32 id; s16 low; union { u64 wide; u32 narrow[2]; }; };

const volatile u64 slice_max = 5;
const volatile bool never;
const volatile u64 __SCX_ENQ_WAKEUP;
struct part parts[3] = { { .id = 9 } };
s8 small = -1;
u64 result;

struct sched_ext_ops___mine {
	int (*select_cpu)(u64 *ctx);
	void (*enqueue)(u64 *ctx);
	u64 flags;
	u32 timeout_ms;
	char name[128];
};

#define exists(what) __builtin_preserve_field_info(what, 2)
#define type_exists(type) __builtin_preserve_type_info(*(type *)0, 0)
#define value_exists(type, value) __builtin_preserve_enum_value(*(typeof(type) *)value, 0)
#define value_of(type, value) __builtin_preserve_enum_value(*(typeof(type) *)value, 1)

SEC("struct_ops/choose") int choose(u64 *ctx)
{
	struct task_struct___mine *p = (void *)ctx[0];

	result = p->scx.weight + p->scx.slice;
	result += ((cpumask_t *)p->cpus_ptr)->bits[2] + ((atomic_t *)ctx[1])->counter;
	return p->comm[3];
}

SEC("struct_ops/queue") void queue(u64 *ctx)
{
	struct task_struct___mine *p = (void *)ctx[0];
	struct pcpu_hot *hot = (void *)ctx[1];

	if (exists(p->not_there))
		result = p->not_there;
	if (type_exists(struct pcpu_hot))
		result = hot->preempt_count;
	if (type_exists(struct scx_bpf_dsq_insert_vtime_args))
		result = 31;
	if (!value_exists(enum scx_enq_flags, SCX_ENQ_NOT_THERE))
		result += value_of(enum scx_enq_flags, SCX_ENQ_WAKEUP);
	if (scx_bpf_not_there)
		scx_bpf_not_there(3);
	if (scx_bpf_kick_cpu___other)
		scx_bpf_kick_cpu___other(3);
	if (&not_there_either)
		result = not_there_either;
	if (never)
		bpf_cpumask_create();
	if (scx_bpf_kick_cpu)
		scx_bpf_kick_cpu(3, CONFIG_HZ);
	if (LINUX_KERNEL_VERSION < 0x60000 || CONFIG_PREEMPT_RT)
		bpf_cpumask_release(0);
	if (slice_max > 1000)
		spin_lock(0);
}

SEC(".struct_ops.link") struct sched_ext_ops___mine mine_ops = {
	.select_cpu = choose, .enqueue = queue, .flags = 5, .timeout_ms = 700, .name = "mine",
};
