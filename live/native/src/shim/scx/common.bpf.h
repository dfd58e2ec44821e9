/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the BPF program of scx_warmq uses of the kernel, of BPF and of sched_ext, in its own process:
 * types with the fields that it reads, and declarations of what it calls. sched_ext.h defines those.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint64_t u64;
typedef int64_t s64;
typedef uint32_t u32;
typedef uint16_t u16;
typedef uint8_t u8;
typedef int32_t s32;

/* --- The program as C ------------------------------------------------------------------------ */

#define SEC(name)
#define __noinline __attribute__((noinline))
#define __always_inline inline __attribute__((always_inline))
#define __weak __attribute__((weak))
#define __ksym
#define __kptr
#define __uptr
#define __arg_trusted
#define __arg_nonnull
#define barrier_var(var) asm volatile("" : "+r"(var))
#define ctzll(x) ((u32)__builtin_ctzll(x))

#define BPF_STRUCT_OPS(name, ...) name(__VA_ARGS__)
#define BPF_STRUCT_OPS_SLEEPABLE(name, ...) name(__VA_ARGS__)
#define BPF_PROG(name, ...) name(__VA_ARGS__)
#define SCX_OPS_DEFINE(name, ...)
#define UEI_DEFINE(name)
#define UEI_RECORD(name, info)

/* A loader changes what the program only reads. */
#define const

/*
 * Each atomic operation, and each call of the kernel that looks at what CPUs share, is a moment before which another
 * CPU may do something.
 */
void native_moment(void);
#define __sync_fetch_and_add(...) (native_moment(), __sync_fetch_and_add(__VA_ARGS__))
#define __sync_fetch_and_sub(...) (native_moment(), __sync_fetch_and_sub(__VA_ARGS__))
#define __sync_fetch_and_or(...) (native_moment(), __sync_fetch_and_or(__VA_ARGS__))
#define __sync_fetch_and_and(...) (native_moment(), __sync_fetch_and_and(__VA_ARGS__))
#define __sync_val_compare_and_swap(...) (native_moment(), __sync_val_compare_and_swap(__VA_ARGS__))
#define __sync_lock_test_and_set(...) (native_moment(), __sync_lock_test_and_set(__VA_ARGS__))

/* --- Types ------------------------------------------------------------------------------------ */

#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000
#define SCX_TASK_QUEUED 1

#define CPU_WORDS (512 / 64)

struct cpumask {
	u64 bits[CPU_WORDS];
};

struct bpf_cpumask {
	struct cpumask mask;
};

struct kernfs_node {
	u64 id;
};

enum cgroup_subsys_id { cpu_cgrp_id };

struct task_group {
	int idle;
};

struct cgroup {
	int level;
	struct kernfs_node *kn;
	struct cgroup *parent;
	struct cgroup *ancestors[8];
	struct task_group *subsys[1];
};

struct user_namespace {
	int level;
	struct {
		u32 val;
	} owner;
	struct user_namespace *parent;
};

struct cred {
	struct {
		u32 val;
	} uid;
	struct user_namespace *user_ns;
};

struct signal_struct {
	int nr_threads;
};

struct native_dsq;
struct storage;

#define STORAGES_OF_TASK 6

struct pt_regs {
	u64 unused;
};

struct task_struct {
	int pid;
	int tgid;
	u32 flags;
	u32 __state; /* 0: it has not said that it is about to sleep */
	u32 policy;
	int nr_cpus_allowed;
	int rcu_read_lock_nesting;
	char comm[16];
	void *mm;
	struct cpumask allowed;
	struct cpumask *cpus_ptr;
	struct cred *cred;
	struct signal_struct *signal;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct {
		u32 weight;
		u32 flags;
		u64 slice;
		u64 dsq_vtime;
	} scx;
	struct {
		u64 sum_exec_runtime;
		u64 exec_start;
	} se;
	/* Of the model of sched_ext. */
	struct storage *storages[STORAGES_OF_TASK]; /* NULL behind the last */
	struct pt_regs user; /* the registers of its user mode */
	s32 cpu;
	struct native_dsq *dsq;
	u64 came; /* when it was queued, by model.came */
	struct task_struct *next;
	bool migrates;
	bool direct; /* select_cpu or enqueue chose this queue for it */
	u64 direct_dsq;
	u64 direct_flags;
	bool direct_by_vtime;
};

struct linux_binprm;
struct scx_exit_info;
struct scx_dump_ctx;
struct scx_cpu_release_args;
struct scx_exit_task_args;

struct scx_init_task_args {
	bool fork;
	struct cgroup *cgroup;
};

struct scx_cgroup_init_args {
	u32 weight;
	u64 bw_period_us;
	u64 bw_quota_us;
	u64 bw_burst_us;
};

typedef int pid_t;
enum cpuhp_state { CPUHP_OFFLINE };

/* The model has no real-time tasks. */
struct rq {
	struct {
		u32 rt_nr_running;
	} rt;
};
extern struct rq runqueues;

struct bpf_timer {
	u64 unused;
};

/* --- BPF -------------------------------------------------------------------------------------- */

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

#define BPF_ANY 0
#define BPF_NOEXIST 1
#define BPF_F_NO_PREALLOC 1
#define BPF_LOCAL_STORAGE_GET_F_CREATE 1

#define __uint(name, value) int(*name)[value]
#define __type(name, of) typeof(of) *name
#define MAP_IS_ARRAY(map) (sizeof(*(map)->type) / sizeof(int) == BPF_MAP_TYPE_ARRAY)
#define MAP_ENTRIES(map) (sizeof(*(map)->max_entries) / sizeof(int))

void *native_storage(void *map, struct task_struct *p, u64 size, u64 flags);
void *native_lookup(void *map, bool array, u64 entries, void *key, u64 key_size, u64 size);
int native_update(void *map, u64 entries, void *key, u64 key_size, void *value, u64 size, u64 flags);
int native_delete(void *map, void *key, u64 key_size);

#define bpf_task_storage_get(map, p, initial, flags) native_storage(map, p, sizeof(*(map)->value), flags)
#define bpf_map_lookup_elem(map, k) \
	native_lookup(map, MAP_IS_ARRAY(map), MAP_ENTRIES(map), k, sizeof(*(map)->key), sizeof(*(map)->value))
#define bpf_map_update_elem(map, k, v, flags) \
	native_update(map, MAP_ENTRIES(map), k, sizeof(*(map)->key), v, sizeof(*(map)->value), flags)
#define bpf_map_delete_elem(map, k) native_delete(map, k, sizeof(*(map)->key))

#define bpf_for(i, from, to) for ((i) = (from); (i) < (to); (i)++)
#define bpf_rcu_read_lock()
#define bpf_rcu_read_unlock()
#define bpf_timer_init(timer, map, clock) 0
#define bpf_timer_set_callback(timer, callback) ((void)(callback))
#define bpf_timer_start(timer, in, flags) native_timer_start()
int native_timer_start(void);
#define bpf_core_field_exists(field) 1
#define bpf_core_field_offset(type, field) offsetof(type, field)
#define bpf_core_enum_value(type, value) (value)
#define bpf_probe_read_kernel(to, size, from) ((void)memcpy(to, from, size))
#define bpf_probe_read_kernel_str(to, size, from) ((void)memcpy(to, from, size))
#define bpf_strncmp(string, size, other) strncmp(string, other, size)
#define bpf_this_cpu_ptr(variable) (variable)
#define bpf_per_cpu_ptr(variable, cpu) (variable)

#define READ_FIELD(p, a) ((p)->a)
#define READ_FIELDS(p, a, b) ((p)->a->b)
#define READ_BY_COUNT(p, a, b, name, ...) name
#define BPF_CORE_READ(...) READ_BY_COUNT(__VA_ARGS__, READ_FIELDS, READ_FIELD)(__VA_ARGS__)

#define bpf_kptr_xchg(place, with)            \
	({                                    \
		typeof(*(place)) was = *(place); \
		*(place) = (with);            \
		was;                          \
	})

struct bpf_cpumask *bpf_cpumask_create(void);
void bpf_cpumask_release(struct bpf_cpumask *mask);
void bpf_cpumask_set_cpu(u32 cpu, struct bpf_cpumask *mask);
bool bpf_cpumask_test_cpu(u32 cpu, struct cpumask *mask);
bool bpf_cpumask_empty(struct cpumask *mask);
bool bpf_cpumask_intersects(struct cpumask *a, struct cpumask *b);
bool bpf_cpumask_subset(struct cpumask *a, struct cpumask *b);
u32 bpf_cpumask_any_distribute(struct cpumask *mask);
u32 bpf_cpumask_first(struct cpumask *mask);
#define cast_mask(of) (&(of)->mask)

struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgrp, int level);
#define bpf_cgroup_release(cgrp) ((void)(cgrp))

u32 bpf_get_smp_processor_id(void);
u64 bpf_ktime_get_ns(void);
bool bpf_in_interrupt(void);
struct task_struct *bpf_get_current_task_btf(void);

/* What a tick interrupts: a task's user mode, or the kernel. */
extern struct pt_regs *__irq_regs;
#define bpf_task_pt_regs(p) (&(p)->user)

/* --- sched_ext -------------------------------------------------------------------------------- */

#define SCX_DSQ_LOCAL (1ULL << 63)
#define SCX_DSQ_ITER_REV 1

#define SCX_WAKE_FORK 0x04
#define SCX_WAKE_TTWU 0x08
#define SCX_WAKE_SYNC 0x10
#define SCX_ENQ_WAKEUP 0x01
#define SCX_ENQ_RESTORE 0x02
#define SCX_ENQ_REENQ (1ULL << 40)
#define SCX_ENQ_LAST (1ULL << 41)
#define SCX_ENQ_PREEMPT (1ULL << 32)
#define SCX_KICK_IDLE 1
#define SCX_KICK_PREEMPT 2
#define SCX_PICK_IDLE_CORE 1
#define SCX_ECODE_RSN_HOTPLUG 0
#define SCX_ECODE_ACT_RESTART 0

u64 scx_bpf_now(void);
s32 scx_bpf_task_cpu(struct task_struct *p);
void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq, u64 slice, u64 flags);
void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq, u64 slice, u64 vtime, u64 flags);
bool scx_bpf_dsq_move_to_local(u64 dsq, u64 flags);
int scx_bpf_create_dsq(u64 dsq, int node);
s32 scx_bpf_dsq_nr_queued(u64 dsq);
void scx_bpf_task_set_slice(struct task_struct *p, u64 slice);
void scx_bpf_kick_cpu(s32 cpu, u64 flags);
void scx_bpf_reenqueue_local(void);
void scx_bpf_cpuperf_set(s32 cpu, u32 perf);
bool scx_bpf_test_and_clear_cpu_idle(s32 cpu);
s32 scx_bpf_pick_idle_cpu(struct cpumask *mask, u64 flags);
s32 scx_bpf_select_cpu_and(struct task_struct *p, s32 prev, u64 wake_flags, struct cpumask *mask, u64 flags);
struct cpumask *scx_bpf_get_idle_cpumask(void);
struct cpumask *scx_bpf_get_idle_smtmask(void);
#define scx_bpf_put_idle_cpumask(mask) ((void)(mask))
#define scx_bpf_exit(code, ...) ((void)0)
#define is_migration_disabled(p) false

struct task_struct *scx_bpf_dsq_peek(u64 dsq);
#define bpf_ksym_exists(function) 1
#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + (c))
#define LINUX_KERNEL_VERSION KERNEL_VERSION(7, 3, 0)
struct bpf_iter_scx_dsq {
	struct task_struct *next;
};
int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq, u64 flags);
struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it);
#define bpf_iter_scx_dsq_destroy(it) ((void)(it))
#define scx_bpf_dump(...) ((void)0)

/* A walk sees the tasks that are queued when it begins, each once. */
struct native_walk {
	u64 began;
	struct task_struct *tasks[2048];
	u32 count, at;
	u64 slice, vtime;
	bool has_slice, has_vtime;
};

void native_walk_begin(struct native_walk *walk, u64 dsq, u64 flags);
struct task_struct *native_walk_next(struct native_walk *walk);
bool native_walk_move(struct native_walk *walk, struct task_struct *p, u64 dsq, bool by_vtime);

#define bpf_for_each(kind, p, dsq, flags)                                  \
	for (struct native_walk walk, *begun = (native_walk_begin(&walk, dsq, flags), &walk); \
	     begun && ((p) = native_walk_next(&walk));)
#define BPF_FOR_EACH_ITER (&walk)
#define scx_bpf_dsq_move_set_slice(walk, with) ((walk)->slice = (with), (walk)->has_slice = true)
#define scx_bpf_dsq_move_set_vtime(walk, with) ((walk)->vtime = (with), (walk)->has_vtime = true)
#define scx_bpf_dsq_move_vtime(walk, p, dsq, flags) native_walk_move(walk, p, dsq, true)
#define scx_bpf_dsq_move(walk, p, dsq, flags) native_walk_move(walk, p, dsq, false)
