/* SPDX-License-Identifier: GPL-2.0-only */
/* A scheduler that does nothing but call one thing many times in one callback: scripts/bpf-costs.sh. */
#include "../../../lab/sched-ext/tests/programs/scx.h"

#define SHARED 7
#define EMPTY 8

struct cpumask { u64 bits[1]; } OF_KERNEL;
struct cgroup { int level; } OF_KERNEL;
struct task_struct___cost { int pid; const struct cpumask *cpus_ptr; } OF_KERNEL;

static u32 (*random)(void) = (void *)7;
static struct task_struct *(*current)(void) = (void *)158;
KFUNC u64 scx_bpf_now(void) WEAK;
KFUNC s32 scx_bpf_task_cpu(const struct task_struct *p);
KFUNC bool scx_bpf_task_running(const struct task_struct *p);
KFUNC int scx_bpf_cpu_node(s32 cpu) WEAK;
KFUNC u32 scx_bpf_nr_cpu_ids(void);
KFUNC s32 scx_bpf_dsq_nr_queued(u64 id);
KFUNC struct task_struct *scx_bpf_dsq_peek(u64 id) WEAK;
KFUNC const struct cpumask *scx_bpf_get_idle_cpumask(void);
KFUNC void scx_bpf_put_idle_cpumask(const struct cpumask *mask);
KFUNC bool scx_bpf_test_and_clear_cpu_idle(s32 cpu);
KFUNC s32 scx_bpf_pick_idle_cpu(const struct cpumask *mask, u64 flags);
KFUNC u32 scx_bpf_cpuperf_cap(s32 cpu);
KFUNC void scx_bpf_cpuperf_set(s32 cpu, u32 performance);
KFUNC bool scx_bpf_task_set_slice(struct task_struct *p, u64 slice) WEAK;
KFUNC bool scx_bpf_task_set_dsq_vtime(struct task_struct *p, u64 vtime) WEAK;
KFUNC struct cgroup *scx_bpf_task_cgroup(struct task_struct *p);
KFUNC void bpf_cgroup_release(struct cgroup *group);
KFUNC struct task_struct *bpf_task_from_pid(s32 pid);
KFUNC void bpf_task_release(struct task_struct *p);
KFUNC bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *mask);
KFUNC u32 bpf_cpumask_first(const struct cpumask *mask);
KFUNC bool bpf_cpumask_empty(const struct cpumask *mask);
KFUNC void bpf_rcu_read_lock(void);
KFUNC void bpf_rcu_read_unlock(void);
KFUNC void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 id, u64 slice, u64 vtime, u64 flags);

struct value {
	u64 number;
	struct bpf_timer timer;
	struct bpf_spin_lock lock;
	struct bpf_cpumask __kptr *mask;
};

struct { UINT(type, ARRAY); UINT(max_entries, 1); TYPE(key, u32); TYPE(value, struct value); } array SEC(".maps");
struct { UINT(type, HASH); UINT(max_entries, 64); TYPE(key, u32); TYPE(value, u64); } hash SEC(".maps");
struct { UINT(type, PERCPU_ARRAY); UINT(max_entries, 1); TYPE(key, u32); TYPE(value, u64); } percpu SEC(".maps");
struct { UINT(type, TASK_STORAGE); UINT(map_flags, 1); TYPE(key, int); TYPE(value, u64); } storage SEC(".maps");

volatile u64 global;

static NOINLINE int function(u64 number)
{
	asm volatile("" ::: "memory");
	return (int)number;
}

static int expired(void *map, u32 *key, struct value *value)
{
	return 0;
}

#define MASK(p) (((struct task_struct___cost *)(p))->cpus_ptr)

#define R1(x) x
#define R8(x) x x x x x x x x
#if TIMES == 1
#define REPEAT(x) R1(x)
#elif TIMES == 8
#define REPEAT(x) R8(x)
#elif TIMES == 40
#define REPEAT(x) R8(x) R8(x) R8(x) R8(x) R8(x)
#else
#define REPEAT(x)
#endif
#ifndef PREPARE
#define PREPARE
#endif
#ifndef AFTER
#define AFTER
#endif
#ifndef CALL
#define CALL
#endif

#ifdef RUNNING
CALLBACK(cost_running)
{
	struct task_struct *p = (void *)ctx[0];
	u32 key = 0;
	u64 one = 1;
	struct value *value;

	PREPARE
	REPEAT(CALL)
	AFTER
	return 0;
}
#endif

#ifdef ENQUEUE
CALLBACK(cost_enqueue)
{
	struct task_struct *p = (void *)ctx[0];
	u64 flags = ctx[1];

	ENQUEUE
	return 0;
}
#endif

#ifdef DISPATCH
CALLBACK(cost_dispatch)
{
	REPEAT(DISPATCH)
	scx_bpf_dsq_move_to_local(SHARED);
	return 0;
}
#endif

SEC("struct_ops.s/cost_init") int cost_init(u64 *ctx)
{
	u32 key = 0;
	struct value *value = map_lookup(&array, &key);
	u64 one = 1;

	map_update(&hash, &key, &one, 0);
	if (value) {
		/* So that the type of what it points to is in every object. */
		struct bpf_cpumask *old = kptr_xchg(&value->mask, 0);

		if (old)
			bpf_cpumask_release(old);
		timer_init(&value->timer, &array, 1);
		timer_set_callback(&value->timer, expired);
	}
	scx_bpf_create_dsq(EMPTY, -1);
	return scx_bpf_create_dsq(SHARED, -1);
}

SEC(".struct_ops.link") struct sched_ext_ops cost = {
	.init = (void *)cost_init,
#ifdef RUNNING
	.running = (void *)cost_running,
#endif
#ifdef ENQUEUE
	.enqueue = (void *)cost_enqueue,
#endif
#ifdef DISPATCH
	.dispatch = (void *)cost_dispatch,
#endif
	.timeout_ms = 20000,
	.name = "cost",
};
