/* SPDX-License-Identifier: GPL-2.0-only */
/* What the test programs need of sched_ext. */
#pragma once
#include "../../../bpf-run/tests/programs/kernel.h"

#define DSQ_LOCAL 0x8000000000000002ULL
#define DSQ_LOCAL_ON 0xc000000000000000ULL
#define DSQ_GLOBAL 0x8000000000000001ULL

struct scx_exit_info;
struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev, u64 flags);
	void (*enqueue)(struct task_struct *p, u64 flags);
	void (*dequeue)(struct task_struct *p, u64 flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*tick)(struct task_struct *p);
	void (*runnable)(struct task_struct *p, u64 flags);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*quiescent)(struct task_struct *p, u64 flags);
	void (*set_weight)(struct task_struct *p, u32 weight);
	void (*set_cpumask)(struct task_struct *p, void *mask);
	void (*update_idle)(s32 cpu, bool idle);
	void (*cpu_acquire)(s32 cpu, void *args);
	void (*cpu_release)(s32 cpu, void *args);
	s32 (*init_task)(struct task_struct *p, void *args);
	void (*exit_task)(struct task_struct *p, void *args);
	void (*enable)(struct task_struct *p);
	void (*disable)(struct task_struct *p);
	s32 (*init)(void);
	u64 flags;
	u32 timeout_ms;
	char name[128];
};

KFUNC s32 scx_bpf_create_dsq(u64 id, s32 node);
KFUNC u32 scx_bpf_reenqueue_local(void);
KFUNC void scx_bpf_dsq_insert(struct task_struct *p, u64 id, u64 slice, u64 flags);
KFUNC bool scx_bpf_dsq_move_to_local(u64 id);
KFUNC void scx_bpf_kick_cpu(s32 cpu, u64 flags);
KFUNC void scx_bpf_error_bstr(char *format, u64 *data, u32 bytes);

#define CALLBACK(name) SEC("struct_ops/" #name) int name(u64 *ctx)
