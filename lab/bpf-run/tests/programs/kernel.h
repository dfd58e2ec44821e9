/* SPDX-License-Identifier: GPL-2.0-only */
/* What the test programs need of the kernel and of libbpf. */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long long s64;
typedef _Bool bool;

#define SEC(name) __attribute__((section(name), used))
#define KFUNC extern __attribute__((section(".ksyms")))
#define WEAK __attribute__((weak))
#define CONFIG extern __attribute__((section(".kconfig")))
#define OF_KERNEL __attribute__((preserve_access_index))
#define __kptr __attribute__((btf_type_tag("kptr")))
#define __arena __attribute__((address_space(1)))
#define NOINLINE __attribute__((noinline))

#define UINT(name, value) int (*name)[value]
#define TYPE(name, type) typeof(type) *name

enum {
	HASH = 1, ARRAY = 2, PERCPU_ARRAY = 6, ARRAY_OF_MAPS = 12, QUEUE = 22, STACK = 23,
	RINGBUF = 27, TASK_STORAGE = 29, ARENA = 33,
};

struct bpf_timer { u64 hidden[2]; };
struct bpf_spin_lock { u32 val; };
struct bpf_iter_num { u64 hidden[1]; };
struct bpf_cpumask { u64 bits[128]; int users; };
struct task_struct { int pid; } OF_KERNEL;

static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static long (*map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*map_delete)(void *map, const void *key) = (void *)3;
static u64 (*ktime_get_ns)(void) = (void *)5;
static u32 (*get_cpu)(void) = (void *)8;
static long (*map_push)(void *map, const void *value, u64 flags) = (void *)87;
static long (*map_pop)(void *map, void *value) = (void *)88;
static long (*map_peek)(void *map, void *value) = (void *)89;
static long (*spin_lock)(struct bpf_spin_lock *lock) = (void *)93;
static long (*spin_unlock)(struct bpf_spin_lock *lock) = (void *)94;
static long (*probe_read)(void *to, u32 size, const void *from) = (void *)113;
static long (*probe_read_str)(void *to, u32 size, const void *from) = (void *)115;
static long (*ringbuf_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;
static void *(*ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*ringbuf_submit)(void *data, u64 flags) = (void *)132;
static void (*ringbuf_discard)(void *data, u64 flags) = (void *)133;
static u64 (*ringbuf_query)(void *ring, u64 what) = (void *)134;
static void *(*task_storage_get)(void *map, void *task, void *value, u64 flags) = (void *)156;
static long (*task_storage_delete)(void *map, void *task) = (void *)157;
static long (*timer_init)(struct bpf_timer *timer, void *map, u64 flags) = (void *)169;
static long (*timer_set_callback)(struct bpf_timer *timer, void *callback) = (void *)170;
static long (*timer_start)(struct bpf_timer *timer, u64 ns, u64 flags) = (void *)171;
static long (*loop)(u32 count, void *callback, void *context, u64 flags) = (void *)181;
static long (*strncmp_)(const char *text, u32 size, const char *other) = (void *)182;
static long (*get_func_arg)(void *ctx, u32 n, u64 *value) = (void *)183;
static long (*get_func_ret)(void *ctx, u64 *value) = (void *)184;
static void *(*kptr_xchg)(void *place, void *pointer) = (void *)194;
static void *(*map_lookup_percpu)(void *map, const void *key, u32 cpu) = (void *)195;

KFUNC int bpf_iter_num_new(struct bpf_iter_num *it, int from, int to);
KFUNC int *bpf_iter_num_next(struct bpf_iter_num *it);
KFUNC void bpf_iter_num_destroy(struct bpf_iter_num *it);
KFUNC struct bpf_cpumask *bpf_cpumask_create(void);
KFUNC void bpf_cpumask_release(struct bpf_cpumask *mask);
KFUNC void bpf_cpumask_set_cpu(u32 cpu, struct bpf_cpumask *mask);

char _license[] SEC("license") = "GPL";
