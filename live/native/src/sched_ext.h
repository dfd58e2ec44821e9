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

#define CPUS 64
#define TASKS 512
#define CGROUPS 64
#define USER_QUEUES 0x1000 /* where the numbers of user queues begin */
#define QUEUES 0x20000

/* In the order of vtime; equals, and tasks of local queues, in the order in which they came. */
struct native_dsq {
	struct task_struct *first;
	u32 queued;
};

struct value {
	struct value *next;
	void *map;
	void *key; /* a task, or a copy of the key */
	u64 key_size;
	void *value;
};

static struct {
	u32 cpus;
	u64 now;
	u32 cpu; /* where the program is called */
	bool in_interrupt;
	struct task_struct *current;
	struct task_struct *running[CPUS];
	u64 stopped; /* CPUs that a migration thread runs on */
	u64 idle; /* CPUs */
	u64 core[CPUS]; /* the CPUs of a CPU's core */
	u32 distributed[CPUS];
	u64 to_kick[CPUS]; /* by the CPU that kicks them: CPUs that are asked if they idle once it holds no lock */
	u64 kicked, preempted; /* CPUs, since the last time that somebody asked */
	struct native_dsq local[CPUS];
	struct native_dsq queues[QUEUES];
	struct value *values;
	struct task_struct *queueing; /* select_cpu or enqueue is called for it */
	u64 came; /* how many tasks were queued so far */
	void (*meanwhile)(void); /* what another CPU does, once, */
	u32 moments; /* after so many moments */
} model;

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

	while (value && (value->map != map || value->key_size != key_size ||
			 (key_size ? memcmp(value->key, key, key_size) : value->key != key)))
		value = value->next;
	return value;
}

static struct value *make(void *map, void *key, u64 key_size, u64 size)
{
	struct value *value = calloc(1, sizeof(*value));

	value->map = map;
	value->key_size = key_size;
	value->key = key_size ? memcpy(malloc(key_size), key, key_size) : key;
	value->value = calloc(1, size);
	value->next = model.values;
	model.values = value;
	return value;
}

static void drop(struct value **place)
{
	struct value *value = *place;

	*place = value->next;
	if (value->key_size)
		free(value->key);
	free(value->value);
	free(value);
}

void *native_storage(void *map, struct task_struct *p, u64 size, u64 flags)
{
	struct value *value = find(map, p, 0);

	native_moment();
	if (!value && (flags & BPF_LOCAL_STORAGE_GET_F_CREATE))
		value = make(map, p, 0, size);
	return value ? value->value : NULL;
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

/* --- CPU masks -------------------------------------------------------------------------------- */

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
	mask->mask.bits |= 1ULL << cpu;
}

bool bpf_cpumask_test_cpu(u32 cpu, struct cpumask *mask)
{
	return cpu < CPUS && (mask->bits >> cpu & 1);
}

bool bpf_cpumask_empty(struct cpumask *mask)
{
	return !mask->bits;
}

bool bpf_cpumask_subset(struct cpumask *a, struct cpumask *b)
{
	return !(a->bits & ~b->bits);
}

u32 bpf_cpumask_any_distribute(struct cpumask *mask)
{
	u32 *last = &model.distributed[model.cpu];
	u64 after = *last < CPUS - 1 ? mask->bits & ~0ULL << (*last + 1) : 0, from = after ?: mask->bits;

	if (from)
		*last = ctzll(from);
	return from ? *last : model.cpus;
}

u32 bpf_cpumask_first(struct cpumask *mask)
{
	return mask->bits ? ctzll(mask->bits) : CPUS;
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

static u64 idle_cores(void)
{
	u64 cores = 0;
	u32 cpu;

	for (cpu = 0; cpu < model.cpus; cpu++)
		if (!(model.core[cpu] & ~model.idle))
			cores |= 1ULL << cpu;
	return cores;
}

struct cpumask *scx_bpf_get_idle_cpumask(void)
{
	static struct cpumask mask;

	mask.bits = model.idle;
	return &mask;
}

struct cpumask *scx_bpf_get_idle_smtmask(void)
{
	static struct cpumask mask;

	mask.bits = idle_cores();
	return &mask;
}

bool scx_bpf_test_and_clear_cpu_idle(s32 cpu)
{
	bool idle;

	native_moment();
	idle = model.idle >> cpu & 1;
	model.idle &= ~(1ULL << cpu);
	return idle;
}

static s32 pick_idle(u64 among, u64 flags)
{
	u64 whole, from;
	s32 cpu;

	native_moment();
	whole = among & idle_cores();
	from = whole ?: flags & SCX_PICK_IDLE_CORE ? 0 : among & model.idle;
	cpu = from ? (s32)ctzll(from) : -EBUSY;
	if (cpu >= 0)
		model.idle &= ~(1ULL << cpu);
	return cpu;
}

s32 scx_bpf_pick_idle_cpu(struct cpumask *mask, u64 flags)
{
	return pick_idle(mask->bits, flags);
}

s32 scx_bpf_select_cpu_and(struct task_struct *p, s32 prev, u64 wake_flags, struct cpumask *mask, u64 flags)
{
	u64 among = mask->bits & p->cpus_ptr->bits, own = among & 1ULL << prev;
	s32 cpu = pick_idle(own, SCX_PICK_IDLE_CORE);

	if (cpu < 0)
		cpu = pick_idle(among, SCX_PICK_IDLE_CORE);
	if (cpu >= 0 || (flags & SCX_PICK_IDLE_CORE))
		return cpu;
	cpu = pick_idle(own, 0);
	return cpu >= 0 ? cpu : pick_idle(among, 0);
}

/* --- Kicks --------------------------------------------------------------------------------------- */

/* This CPU no longer holds a lock under which it has kicked others: kick_cpus_irq_workfn(). */
static void ask_kicked(void)
{
	u64 *to_kick = &model.to_kick[model.cpu];
	u32 cpu;

	for (cpu = 0; cpu < model.cpus; cpu++)
		if (*to_kick >> cpu & 1 && !model.running[cpu])
			model.kicked |= 1ULL << cpu;
	*to_kick = 0;
}

void scx_bpf_kick_cpu(s32 cpu, u64 flags)
{
	if (flags & SCX_KICK_PREEMPT) {
		if (model.running[cpu])
			model.running[cpu]->scx.slice = 0;
		model.preempted |= 1ULL << cpu;
	} else {
		model.to_kick[model.cpu] |= 1ULL << cpu;
	}
}

/* --- Dispatch queues -------------------------------------------------------------------------- */

static void take_out(struct task_struct *p)
{
	struct task_struct **place = &p->dsq->first;

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

	while (*place)
		place = &(*place)->next;
	put_before(queue, place, p);
}

static void put_by_vtime(struct native_dsq *queue, struct task_struct *p)
{
	struct task_struct **place = &queue->first;

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
	while (p && !bpf_cpumask_test_cpu(model.cpu, p->cpus_ptr))
		p = p->next;
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

bool native_walk_move(struct native_walk *walk, struct task_struct *p, u64 dsq)
{
	native_moment();
	if (!p->dsq || p->came > walk->began) /* it has been queued again since: nldsq_cursor_lost_task() */
		return false;
	take_out(p);
	if (walk->has_slice)
		p->scx.slice = walk->slice;
	if (walk->has_vtime)
		p->scx.dsq_vtime = walk->vtime;
	put_by_vtime(queue_of(dsq), p);
	return true;
}

/* --- Running tasks ---------------------------------------------------------------------------- */

void scx_bpf_task_set_slice(struct task_struct *p, u64 slice)
{
	p->scx.slice = slice;
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
