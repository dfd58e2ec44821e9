/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sched_ext for one process: dispatch queues, idle CPUs, kicks, time. What the program may call is here;
 * native.c calls the program.
 *
 * Two CPUs at the same time: one thread calls, but at each moment (native_moment()) another CPU may come in
 * between. Left out: bypass, priorities among idle CPUs beyond those that are named below
 * (the kernel spreads tasks over idle CPUs; here the lowest wins).
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#define CPUS WARMQ_MAX_CPUS
#define TASKS 2048
#define CGROUPS 64
#define USER_QUEUES 0x1000 /* where the numbers of user queues begin */
#define QUEUES 0x20000

/* In the order of vtime; equals, and tasks of local queues, in the order in which they came. */
struct native_dsq {
	struct task_struct *first;
	u32 queued;
	u32 lock; /* taken by whoever puts in or takes out */
} __attribute__((aligned(64)));

struct value {
	struct value *next;
	void *map;
	void *key; /* a copy */
	u64 key_size;
	void *value;
};

/* What the program keeps of tasks, as it lies in the kernel: behind a pointer, at the beginning of a line (bpf_local_storage_elem). */
#define STORAGES (2 * TASKS)

struct storage {
	void *map;
	char value[512 - sizeof(void *)];
} __attribute__((aligned(64)));

static struct {
	u32 cpus;
	u64 now;
	u32 cpu; /* where the program is called */
	bool in_interrupt;
	struct task_struct *current;
	struct task_struct *running[CPUS];
	struct cpumask stopped; /* CPUs that a migration thread runs on */
	struct cpumask idle __attribute__((aligned(64))); /* CPUs */
	struct cpumask core[CPUS]; /* the CPUs of a CPU's core */
	u32 distributed[CPUS];
	struct cpumask to_kick[CPUS]; /* by the CPU that kicks them: CPUs that are asked if they idle once it holds no lock */
	struct cpumask kicked, preempted; /* CPUs, since the last time that somebody asked */
	struct native_dsq local[CPUS];
	struct native_dsq queues[QUEUES];
	struct value *values;
	u32 storages; /* that are in use */
	u64 timers_started;
	u32 speed[CPUS]; /* that was asked for */
	u64 looks; /* into queues, for their first tasks */
	u64 passed; /* tasks in queues that may not run where the program looked for one */
	struct task_struct *queueing; /* select_cpu or enqueue is called for it */
	u64 came; /* how many tasks were queued so far */
	void (*meanwhile)(void); /* what another CPU does, once, */
	u32 moments; /* after so many moments */
} model;

static struct storage storages[STORAGES];

struct rq runqueues;
struct pt_regs *__irq_regs;
static struct task_struct idle_task = { .pid = 0 };

static void must(bool holds, char *what)
{
	if (holds)
		return;
	fprintf(stderr, "the program did what sched_ext does not allow: %s\n", what);
	abort();
}

/* Lets another CPU go first, if it is its moment. */
void native_moment(void)
{
	void (*meanwhile)(void) = model.meanwhile;
	struct task_struct *current = model.current, *queueing = model.queueing;
	bool in_interrupt = model.in_interrupt;
	u32 cpu = model.cpu;
	u64 now = model.now;

	if (!meanwhile || model.moments--)
		return;
	model.meanwhile = NULL;
	model.queueing = NULL;
	meanwhile();
	model.cpu = cpu;
	model.now = now;
	model.current = current;
	model.queueing = queueing;
	model.in_interrupt = in_interrupt;
}

static struct native_dsq *queue_of(u64 dsq)
{
	must(dsq >= USER_QUEUES && dsq < USER_QUEUES + QUEUES, "an unknown queue");
	return &model.queues[dsq - USER_QUEUES];
}

/* --- Maps ------------------------------------------------------------------------------------- */

static struct value *find(void *map, void *key, u64 key_size)
{
	struct value *value = model.values;

	while (value && (value->map != map || value->key_size != key_size || memcmp(value->key, key, key_size)))
		value = value->next;
	return value;
}

static struct value *make(void *map, void *key, u64 key_size, u64 size)
{
	struct value *value = calloc(1, sizeof(*value));

	value->map = map;
	value->key_size = key_size;
	value->key = memcpy(malloc(key_size), key, key_size);
	value->value = calloc(1, size);
	value->next = model.values;
	model.values = value;
	return value;
}

static void drop(struct value **place)
{
	struct value *value = *place;

	*place = value->next;
	free(value->key);
	free(value->value);
	free(value);
}

/* A task's storage of a map; its first that is unused, if there is none and `make` it. */
static struct storage *storage_of(struct task_struct *p, void *map, bool make)
{
	struct storage **place = p->storages;

	while (*place && (*place)->map != map)
		place++;
	if (*place || !make)
		return *place;
	must(place < p->storages + STORAGES_OF_TASK - 1 && model.storages < STORAGES, "too many storages");
	*place = &storages[model.storages++];
	memset(*place, 0, sizeof(**place));
	(*place)->map = map;
	return *place;
}

void *native_storage(void *map, struct task_struct *p, u64 size, u64 flags)
{
	struct storage *storage = storage_of(p, map, flags & BPF_LOCAL_STORAGE_GET_F_CREATE);

	native_moment();
	must(size <= sizeof(storage->value), "a large storage");
	return storage ? storage->value : NULL;
}

void *native_lookup(void *map, bool array, u64 entries, void *key, u64 key_size, u64 size)
{
	struct value *value;

	native_moment();
	value = find(map, key, key_size);
	if (!value && array && *(u32 *)key < entries)
		value = make(map, key, key_size, size);
	return value ? value->value : NULL;
}

int native_update(void *map, u64 entries, void *key, u64 key_size, void *from, u64 size, u64 flags)
{
	struct value *value;

	native_moment();
	value = find(map, key, key_size);
	if (value && flags == BPF_NOEXIST)
		return -EEXIST;
	if (!value)
		value = make(map, key, key_size, size);
	memcpy(value->value, from, size);
	return 0;
}

int native_delete(void *map, void *key, u64 key_size)
{
	struct value **place = &model.values;

	while (*place && ((*place)->map != map || (*place)->key_size != key_size || memcmp((*place)->key, key, key_size)))
		place = &(*place)->next;
	if (!*place)
		return -ENOENT;
	drop(place);
	return 0;
}

int native_timer_start(void)
{
	model.timers_started++;
	return 0;
}

/* --- CPU masks -------------------------------------------------------------------------------- */

static u64 bit_of(u32 cpu)
{
	return 1ULL << cpu % 64;
}

static void put_cpu(struct cpumask *mask, u32 cpu)
{
	__atomic_fetch_or(&mask->bits[cpu / 64], bit_of(cpu), __ATOMIC_SEQ_CST);
}

static void drop_cpu(struct cpumask *mask, u32 cpu)
{
	__atomic_fetch_and(&mask->bits[cpu / 64], ~bit_of(cpu), __ATOMIC_SEQ_CST);
}

/* The first CPU of both from `cpu` on; CPUS: there is none. */
static u32 next_of_both(const struct cpumask *a, const struct cpumask *b, u32 cpu)
{
	u32 word;

	for (word = cpu / 64; word < CPU_WORDS; word++) {
		u64 bits = a->bits[word] & b->bits[word] & (word == cpu / 64 ? ~0ULL << cpu % 64 : ~0ULL);

		if (bits)
			return word * 64 + ctzll(bits);
	}
	return CPUS;
}

struct bpf_cpumask *bpf_cpumask_create(void)
{
	return calloc(1, sizeof(struct bpf_cpumask));
}

void bpf_cpumask_release(struct bpf_cpumask *mask)
{
	free(mask);
}

void bpf_cpumask_set_cpu(u32 cpu, struct bpf_cpumask *mask)
{
	put_cpu(&mask->mask, cpu);
}

bool bpf_cpumask_test_cpu(u32 cpu, struct cpumask *mask)
{
	return cpu < CPUS && (mask->bits[cpu / 64] & bit_of(cpu));
}

u32 bpf_cpumask_first(struct cpumask *mask)
{
	return next_of_both(mask, mask, 0);
}

bool bpf_cpumask_intersects(struct cpumask *a, struct cpumask *b)
{
	return next_of_both(a, b, 0) < CPUS;
}

bool bpf_cpumask_empty(struct cpumask *mask)
{
	return bpf_cpumask_first(mask) == CPUS;
}

bool bpf_cpumask_subset(struct cpumask *a, struct cpumask *b)
{
	u64 beyond = 0;
	u32 word;

	for (word = 0; word < CPU_WORDS; word++)
		beyond |= a->bits[word] & ~b->bits[word];
	return !beyond;
}

/* The next CPU of both after the last that this one found; CPUS: there is none. cpumask_any_and_distribute() */
static u32 distribute(const struct cpumask *a, const struct cpumask *b)
{
	u32 *last = &model.distributed[model.cpu], cpu = *last < CPUS - 1 ? next_of_both(a, b, *last + 1) : CPUS;

	if (cpu == CPUS)
		cpu = next_of_both(a, b, 0);
	if (cpu < CPUS)
		*last = cpu;
	return cpu;
}

u32 bpf_cpumask_any_distribute(struct cpumask *mask)
{
	u32 cpu = distribute(mask, mask);

	return cpu == CPUS ? model.cpus : cpu;
}

struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgrp, int level)
{
	while (cgrp && cgrp->level > level)
		cgrp = cgrp->parent;
	return cgrp;
}

/* --- Who, where, when ------------------------------------------------------------------------- */

u32 bpf_get_smp_processor_id(void)
{
	return model.cpu;
}

u64 bpf_ktime_get_ns(void)
{
	return model.now;
}

u64 scx_bpf_now(void)
{
	return model.now;
}

bool bpf_in_interrupt(void)
{
	return model.in_interrupt;
}

struct task_struct *bpf_get_current_task_btf(void)
{
	return model.current ?: &idle_task;
}

s32 scx_bpf_task_cpu(struct task_struct *p)
{
	return p->cpu;
}

/* --- Idle CPUs -------------------------------------------------------------------------------- */

static bool is_whole_core_idle(u32 cpu)
{
	return bpf_cpumask_subset(&model.core[cpu], &model.idle);
}

struct cpumask *scx_bpf_get_idle_cpumask(void)
{
	return &model.idle;
}

struct cpumask *scx_bpf_get_idle_smtmask(void)
{
	static struct cpumask mask;
	u32 cpu;

	memset(&mask, 0, sizeof(mask));
	for (cpu = 0; cpu < model.cpus; cpu++)
		if (is_whole_core_idle(cpu))
			put_cpu(&mask, cpu);
	return &mask;
}

bool scx_bpf_test_and_clear_cpu_idle(s32 cpu)
{
	bool idle;

	native_moment();
	idle = bpf_cpumask_test_cpu(cpu, &model.idle);
	if (idle)
		drop_cpu(&model.idle, cpu);
	return idle;
}

static s32 pick_idle(struct cpumask *among, u64 flags)
{
	struct cpumask cores = {};
	u32 cpu;

	native_moment();
	for (cpu = 0; cpu < model.cpus; cpu++)
		if (bpf_cpumask_test_cpu(cpu, &model.idle) && is_whole_core_idle(cpu))
			put_cpu(&cores, cpu);
	cpu = distribute(among, &cores);
	if (cpu == CPUS && !(flags & SCX_PICK_IDLE_CORE))
		cpu = distribute(among, &model.idle);
	if (cpu == CPUS)
		return -EBUSY;
	drop_cpu(&model.idle, cpu);
	return cpu;
}

s32 scx_bpf_pick_idle_cpu(struct cpumask *mask, u64 flags)
{
	return pick_idle(mask, flags);
}

s32 scx_bpf_select_cpu_and(struct task_struct *p, s32 prev, u64 wake_flags, struct cpumask *mask, u64 flags)
{
	struct cpumask among = {};
	bool own;
	s32 cpu;
	u32 word;

	for (word = 0; word < CPU_WORDS; word++)
		among.bits[word] = mask->bits[word] & p->cpus_ptr->bits[word];
	own = bpf_cpumask_test_cpu(prev, &among);
	if (own && is_whole_core_idle(prev) && scx_bpf_test_and_clear_cpu_idle(prev))
		return prev;
	cpu = pick_idle(&among, SCX_PICK_IDLE_CORE);
	if (cpu >= 0 || (flags & SCX_PICK_IDLE_CORE))
		return cpu;
	if (own && scx_bpf_test_and_clear_cpu_idle(prev))
		return prev;
	for (cpu = 0; cpu < (s32)model.cpus; cpu++) {
		if (cpu != prev && bpf_cpumask_test_cpu(cpu, &model.core[prev]) && bpf_cpumask_test_cpu(cpu, &among) &&
		    scx_bpf_test_and_clear_cpu_idle(cpu))
			return cpu;
	}
	return pick_idle(&among, 0);
}

/* --- Kicks --------------------------------------------------------------------------------------- */

/* This CPU no longer holds a lock under which it has kicked others: kick_cpus_irq_workfn(). */
static void ask_kicked(void)
{
	struct cpumask *to_kick = &model.to_kick[model.cpu];
	u32 cpu = bpf_cpumask_first(to_kick);

	while (cpu < CPUS) {
		if (!model.running[cpu])
			put_cpu(&model.kicked, cpu);
		drop_cpu(to_kick, cpu);
		cpu = bpf_cpumask_first(to_kick);
	}
}

void scx_bpf_kick_cpu(s32 cpu, u64 flags)
{
	if (flags & SCX_KICK_PREEMPT) {
		if (model.running[cpu])
			model.running[cpu]->scx.slice = 0;
		put_cpu(&model.preempted, cpu);
	} else {
		put_cpu(&model.to_kick[model.cpu], cpu);
	}
}

/* --- Dispatch queues -------------------------------------------------------------------------- */

static void lock(struct native_dsq *queue)
{
	__atomic_exchange_n(&queue->lock, 1, __ATOMIC_SEQ_CST);
}

static void take_out(struct task_struct *p)
{
	struct task_struct **place = &p->dsq->first;

	lock(p->dsq);
	while (*place != p)
		place = &(*place)->next;
	*place = p->next;
	p->dsq->queued--;
	p->dsq = NULL;
	p->next = NULL;
}

static void put_before(struct native_dsq *queue, struct task_struct **place, struct task_struct *p)
{
	must(!p->dsq, "a task was put into a second queue");
	p->came = ++model.came;
	p->next = *place;
	*place = p;
	p->dsq = queue;
	queue->queued++;
}

static void put_last(struct native_dsq *queue, struct task_struct *p)
{
	struct task_struct **place = &queue->first;

	lock(queue);
	while (*place)
		place = &(*place)->next;
	put_before(queue, place, p);
}

static void put_by_vtime(struct native_dsq *queue, struct task_struct *p)
{
	struct task_struct **place = &queue->first;

	lock(queue);
	while (*place && (s64)(p->scx.dsq_vtime - (*place)->scx.dsq_vtime) >= 0)
		place = &(*place)->next;
	put_before(queue, place, p);
}

static void put(struct task_struct *p, u64 dsq, u64 flags, bool by_vtime)
{
	if (dsq == SCX_DSQ_LOCAL) {
		put_last(&model.local[p->cpu], p);
		if (flags & SCX_ENQ_PREEMPT)
			scx_bpf_kick_cpu(p->cpu, SCX_KICK_PREEMPT);
	} else if (by_vtime) {
		put_by_vtime(queue_of(dsq), p);
	} else {
		put_last(queue_of(dsq), p);
	}
}

/* A task joins the queue that was chosen for it once select_cpu or enqueue has returned (direct_dispatch()). */
static void choose(struct task_struct *p, u64 dsq, u64 flags, bool by_vtime)
{
	native_moment();
	must(p == model.queueing && !p->direct, "a task was put into a queue that is not to be queued");
	p->direct = true;
	p->direct_dsq = dsq;
	p->direct_flags = flags;
	p->direct_by_vtime = by_vtime;
}

void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq, u64 slice, u64 flags)
{
	p->scx.slice = slice;
	choose(p, dsq, flags, false);
}

void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq, u64 slice, u64 vtime, u64 flags)
{
	p->scx.slice = slice;
	p->scx.dsq_vtime = vtime;
	choose(p, dsq, flags, true);
}

/* A task that is runnable joins a queue: do_enqueue_task(). Only then do CPUs hear that they were kicked. */
static void enqueue(struct task_struct *p, u64 flags)
{
	if (!p->direct) {
		model.queueing = p;
		warmq_enqueue(p, flags);
		model.queueing = NULL;
	}
	native_moment();
	must(p->direct, "a task is in no queue");
	p->direct = false;
	put(p, p->direct_dsq, p->direct_flags, p->direct_by_vtime);
	ask_kicked();
}

bool scx_bpf_dsq_move_to_local(u64 dsq, u64 flags)
{
	struct task_struct *p;

	native_moment();
	p = queue_of(dsq)->first;
	for (; p && !bpf_cpumask_test_cpu(model.cpu, p->cpus_ptr); p = p->next)
		model.passed++;
	if (!p)
		return false;
	take_out(p);
	p->cpu = model.cpu;
	put_last(&model.local[model.cpu], p);
	return true;
}

int scx_bpf_create_dsq(u64 dsq, int node)
{
	queue_of(dsq);
	return 0;
}

s32 scx_bpf_dsq_nr_queued(u64 dsq)
{
	native_moment();
	return queue_of(dsq)->queued;
}

int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq, u64 flags)
{
	it->next = queue_of(dsq)->first;
	return 0;
}

struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it)
{
	struct task_struct *p = it->next;

	it->next = p ? p->next : NULL;
	return p;
}

struct task_struct *scx_bpf_dsq_peek(u64 dsq)
{
	model.looks++;
	return queue_of(dsq)->first;
}

void native_walk_begin(struct native_walk *walk, u64 dsq, u64 flags)
{
	struct task_struct *p;
	u32 i;

	walk->count = walk->at = 0;
	walk->began = model.came;
	for (p = queue_of(dsq)->first; p && walk->count < TASKS; p = p->next)
		walk->tasks[walk->count++] = p;
	for (i = 0; flags & SCX_DSQ_ITER_REV && i < walk->count / 2; i++) {
		p = walk->tasks[i];
		walk->tasks[i] = walk->tasks[walk->count - 1 - i];
		walk->tasks[walk->count - 1 - i] = p;
	}
}

struct task_struct *native_walk_next(struct native_walk *walk)
{
	walk->has_slice = walk->has_vtime = false;
	return walk->at < walk->count ? walk->tasks[walk->at++] : NULL;
}

bool native_walk_move(struct native_walk *walk, struct task_struct *p, u64 dsq, bool by_vtime)
{
	native_moment();
	if (!p->dsq || p->came > walk->began) /* it has been queued again since: nldsq_cursor_lost_task() */
		return false;
	take_out(p);
	if (walk->has_slice)
		p->scx.slice = walk->slice;
	if (walk->has_vtime)
		p->scx.dsq_vtime = walk->vtime;
	if (by_vtime)
		put_by_vtime(queue_of(dsq), p);
	else
		put_last(queue_of(dsq), p);
	return true;
}

/* --- Running tasks ---------------------------------------------------------------------------- */

void scx_bpf_task_set_slice(struct task_struct *p, u64 slice)
{
	p->scx.slice = slice;
}

void scx_bpf_cpuperf_set(s32 cpu, u32 perf)
{
	model.speed[cpu] = perf;
}

/* All tasks of the CPU's local queue but the one that is about to be moved. */
void scx_bpf_reenqueue_local(void)
{
	struct native_dsq *queue = &model.local[model.cpu], taken = {};
	struct task_struct *p, *next;

	for (p = queue->first; p; p = next) {
		next = p->next;
		if (p->migrates)
			continue;
		take_out(p);
		put_last(&taken, p);
	}
	while ((p = taken.first)) {
		take_out(p);
		enqueue(p, SCX_ENQ_REENQ);
	}
}
