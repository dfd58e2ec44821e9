/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_warmq keeps data warm and starves nobody. docs/scheduler.md says what it does, decide.h how
 * it decides.
 *
 * A task meets the callbacks in this order:
 *   select_cpu   finds an idle CPU, where the task then runs at once
 *   enqueue      the task joins its entity (or stays in it), is queued by deadline, and may preempt
 *   dispatch     a CPU takes the next task of its batch, or of the entity with the least pick key,
 *                or one from elsewhere
 *   running      the task's run time counts from here
 *   tick         the task is charged, and may leave a core that it shares
 *   stopping     the task is charged, and leaves its entity if it sleeps
 */
#include <scx/common.bpf.h>
#include <bpf_experimental.h>

#include "../../../../common/decide/include/decide.h"
#include "../../../hint/include/warmq_abi.h"

#ifndef CLOCK_MONOTONIC
#define CLOCK_MONOTONIC 1
#endif
#ifndef __uptr
#define __uptr __attribute__((btf_type_tag("uptr")))
#endif

char _license[] SEC("license") = "GPL";

UEI_DEFINE(uei);

#include "state.bpf.h"
#include "cgroup.bpf.h"
#include "quota.bpf.h"
#include "entity.bpf.h"
#include "group.bpf.h"
#include "hint.bpf.h"
#include "idle.bpf.h"
#include "wakeup.bpf.h"
#include "infer.bpf.h"
#include "throttle.bpf.h"
#include "balance.bpf.h"
#include "core.bpf.h"
#include "cgroup_ops.bpf.h"
#include "pick.bpf.h"
#include "wait.bpf.h"
#include "power.bpf.h"
#include "dump.bpf.h"

/*
 * Makes a task runnable in the entity where it belongs. If it is there already, brings its weight
 * up to date. `keeps_lag`: it slept long enough to keep positive lag.
 */
__noinline int settle(struct task_struct *p __arg_trusted, struct task_state *t __arg_nonnull, u32 cpu, bool keeps_lag)
{
	u32 entity = entity_for(p, t, cpu);

	if (t->weight && t->entity == entity) {
		reweigh(p, t);
		clamp_task(t);
		return 0;
	}
	leave(t);
	join(p, t, entity, keeps_lag);
	return 0;
}

/* See count_late(). */
__noinline int join_late(struct task_struct *p __arg_trusted, struct task_state *t __arg_nonnull, u32 cpu)
{
	join(p, t, domain_of_cpu(cpu), elapsed(t->slept_at, scx_bpf_now()) >= policy.min_sleep);
	return 0;
}

/*
 * An unmanaged task that woke while a CPU was idle takes nothing from anybody, and most sleep again at once: it is counted
 * in its entity, its domain and its cgroup only if it is still there at a tick or loses its CPU. It is then charged for all
 * that it ran. If it sleeps before, its lag stays what it was. So such wakeups and sleeps change no line that CPUs share.
 */
static __always_inline void count_late(struct task_struct *p, struct task_state *t, u32 cpu)
{
	if (!t->weight && !t->at_once && t->running)
		join_late(p, t, cpu);
}

/* Notes that a task wakes or is new. */
static __always_inline void note_wakeup(struct task_struct *p, struct task_state *t, u32 cpu, bool woken, u64 now)
{
	count(COUNT_WAKEUPS);
	begin_period(p, t, cpu, now);
	if (infer && woken)
		infer_from_wakeup(p, t, cpu, now);
}

s32 BPF_STRUCT_OPS(warmq_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_state *t = task_of(p);
	bool in_group = false;
	u64 now;
	s32 cpu;

	if (!t)
		return prev_cpu;
	look(p, t, prev_cpu);
	if (t->group && keeps_groups && fits(p, group_of(t->group)->home)) {
		u32 home = group_of(t->group)->home;

		in_group = true;
		cpu = idle_at_home(p, home, prev_cpu);
		if (cpu < 0)
			return cpu_of_place(home, prev_cpu);
	} else {
		cpu = select_unmanaged(p, t, prev_cpu, wake_flags);
		if (cpu < 0)
			return prev_cpu;
	}
	if (must_wait(t))
		return cpu;
	if (in_group && !t->weight) {
		now = scx_bpf_now();
		note_wakeup(p, t, cpu, wake_flags & SCX_WAKE_TTWU, now);
		settle(p, t, cpu, elapsed(t->slept_at, now) >= policy.min_sleep);
	} else if (infer && (wake_flags & SCX_WAKE_TTWU)) {
		infer_from_wakeup(p, t, cpu, scx_bpf_now());
	}
	note_found(t, cpu);
	keep_balancing();
	scx_bpf_dsq_insert(p, dsq_of(FOUND_BASE + cpu), slice_in(domain_of_cpu(cpu)), 0);
	return cpu;
}

/*
 * Kicks an idle CPU, if there is one, for a task that was queued in `entity`. Returns whether there
 * was one.
 */
static __always_inline bool kick_idle(struct task_struct *p, u32 entity, s32 cpu)
{
	s32 idle;

	if (entity >= WARMQ_PINNED_BASE && entity < WARMQ_GROUP_BASE)
		idle = scx_bpf_test_and_clear_cpu_idle(cpu) ? cpu : -1;
	else if (is_group(entity))
		idle = idle_at_home(p, group_of(entity)->home, cpu);
	else
		idle = idle_to_kick(p, cpu);
	if (idle < 0) {
		kick_searching(p, entity);
		return false;
	}
	scx_bpf_kick_cpu(idle, SCX_KICK_IDLE);
	return true;
}

void BPF_STRUCT_OPS(warmq_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_state *t = task_of(p);
	s32 cpu = scx_bpf_task_cpu(p);
	u64 now, slept, slice, deadline;
	bool waking, moves;
	u32 entity;

	if (!t) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, policy.slice_max, enq_flags);
		return;
	}
	if (t->at_once && (enq_flags & SCX_ENQ_WAKEUP)) {
		/* Before a task of ours at once; behind another such thread in the order of their wakeups. */
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, policy.slice_max, enq_flags | (cpu_of(cpu)->runs ? SCX_ENQ_PREEMPT : 0));
		return;
	}
	now = scx_bpf_now();
	if (!t->waits_since)
		t->waits_since = now;
	/* It leaves its queue without running if its affinity or its class changed. */
	leave_queues(t);
	if (must_wait(t) && throttle(p, t, enq_flags)) {
		t->goes_to = 0;
		return;
	}
	waking = !t->weight && !t->throttled;
	slept = elapsed(t->slept_at, now);
	if (waking)
		note_wakeup(p, t, cpu, enq_flags & SCX_ENQ_WAKEUP, now);
	look(p, t, cpu);
	entity = t->entity;
	settle(p, t, cpu, waking && slept >= policy.min_sleep);
	moves = !waking && !t->throttled && entity != t->entity && is_group(t->entity);
	entity = t->entity;
	if (smt_enabled && t->goes_to && go_to_room(p, t, enq_flags))
		return;
	t->queued_at = now;
	t->queued_weight = time_of(t->domain)->weight / QUEUED_WEIGHT;
	t->queued_runnable = time_of(t->domain)->runnable;
	note_queued(t, entity, now);
	keep_balancing();
	slice = slice_of(t);
	deadline = deadline_of(t, slice);
	note_first(entity, in_entity(entity, deadline));
	if (t->waits_since != now && is_late_again(entity, t, now))
		insert_late(p, domain_of_entity(entity), slice, enq_flags);
	else
		scx_bpf_dsq_insert_vtime(p, dsq_of(entity), slice, in_entity(entity, deadline), enq_flags);
	/* Its affinity has changed, and the kernel is about to queue it elsewhere. (No wakeup is sent there.) */
	if (!(enq_flags & SCX_ENQ_WAKEUP) && !bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
		return;
	if (kick_idle(p, entity, cpu) || !preempts)
		return;
	if (moves) /* treated as a wakeup at its new home */
		preempt(p, t, cpu_of_place(group_of(entity)->home, cpu), deadline, policy.min_sleep, now);
	else if (waking)
		preempt(p, t, cpu, deadline, slept, now);
}

/* Whether a task that runs away from its group's home goes on there while nobody else wants the CPU. */
static __always_inline bool is_split_off(struct task_struct *p, struct task_state *t, u32 cpu)
{
	u32 home = is_group(t->entity) ? group_of(t->entity)->home : 0;

	return t->weight && t->entity == entity_for(p, t, cpu) && !is_any_idle_at(home);
}

/*
 * Charges the task that ran on `cpu` and is runnable, and brings its weight and its entity up to date.
 * Returns whether it may go on there beside others: not if it belongs elsewhere.
 */
static __always_inline bool may_go_on(struct task_struct *p, struct task_state *t, u32 cpu)
{
	u32 entity;

	charge(p, t, cpu);
	look(p, t, cpu);
	if (!t->weight)
		return t->at_once;
	entity = entity_for(p, t, cpu);
	if (is_group(entity) && group_of(entity)->home != place_of_cpu(cpu))
		return false;
	if (t->entity == entity) {
		reweigh(p, t);
		return true;
	}
	if (is_group(t->entity))
		__sync_fetch_and_sub(&group_of(t->entity)->running, 1);
	settle(p, t, cpu, false);
	if (is_group(t->entity))
		__sync_fetch_and_add(&group_of(t->entity)->running, 1);
	return true;
}

void BPF_STRUCT_OPS(warmq_dispatch, s32 cpu, struct task_struct *prev)
{
	struct cpu_state *c = cpu_of(cpu);
	struct task_state *t = NULL;
	bool may_stay = false, comes = false;
	u32 entity;

	if (prev && (prev->scx.flags & SCX_TASK_QUEUED)) {
		t = task_of(prev);
		if (t)
			count_late(prev, t, cpu);
		if (t && (must_wait(t) || (smt_enabled && t->goes_to))) {
			charge(prev, t, cpu);
			t = NULL;
		}
		may_stay = t && may_go_on(prev, t, cpu);
	}
	if (!prev && is_realtime_next(cpu))
		return;
	if (take_found(cpu)) {
		if (c->idle && entity_of(domain_of_cpu(cpu))->queued)
			pass_on(cpu, true);
		return;
	}
	if (take_late(domain_of_cpu(cpu)) || pull_requested(domain_of_cpu(cpu)))
		return;
	entity = batch_goes_on(c, cpu) ? c->batch_entity : first_entity(cpu);
	if (entity == NO_ENTITY) {
		if (may_stay || (t && is_split_off(prev, t, cpu)))
			go_on(prev, t, c);
		else if (!pull(cpu))
			take_found(cpu);
		return;
	}
	if (may_stay && goes_first(t, entity)) {
		count(COUNT_KEPT);
		go_on(prev, t, c);
		return;
	}
	if (take(c, entity) || take_any(c, cpu, &comes)) {
		if (c->idle)
			pass_on(cpu, c->batch_entity == WARMQ_PINNED_BASE + cpu);
		return;
	}
	if (may_stay) { /* what waits may not run here */
		go_on(prev, t, c);
		return;
	}
	if (pull(cpu) || take_found(cpu)) /* one may have come while the lock of this run queue was given up */
		return;
	if (comes)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	if (c->idle)
		pass_on(cpu, false);
}

void BPF_STRUCT_OPS(warmq_running, struct task_struct *p)
{
	struct task_state *t = task_of(p);
	u32 cpu = scx_bpf_task_cpu(p);
	struct cpu_state *c = cpu_of(cpu);
	bool deadline_known = false, found, put_back;
	u64 now;

	if (!t)
		return;
	found = t->found_by;
	put_back = t->changed && !t->weight; /* it was not counted, and still need not be */
	note_idle(cpu, false);
	now = scx_bpf_now();
	leave_found(t);
	if ((u32)t->queued_in != NO_ENTITY) {
		unqueue(t);
		if (t->weight) {
			judge_wait(p, t, c, now);
			/* As it was queued. */
			c->run_deadline = warmq_vruntime(&entity_of(t->entity)->time, p->scx.dsq_vtime);
			deadline_known = true;
		}
	}
	if (must_wait(t)) { /* it was queued before the others had it all: it leaves without having run */
		c->runs = false;
		scx_bpf_task_set_slice(p, 0);
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		return;
	}
	t->stoppable = false;
	t->running = true;
	t->waits_since = 0;
	t->yields = false;
	if (!put_back)
		t->charged = p->se.sum_exec_runtime;
	if (t->at_once && !t->weight) {
		c->runs = false;
		return;
	}
	if ((found || put_back) && !t->weight && !t->throttled && entity_for(p, t, cpu) < WARMQ_PINNED_BASE) {
		if (found)
			note_wakeup(p, t, cpu, false, now);
		t->changed = false;
		note_uncounted(p, t, c, cpu);
		goto runs;
	}
	/*
	 * The kernel put the task on this CPU itself, without enqueue: it was changed just before it slept (see
	 * is_changed()), and the kernel dequeued it and put it back. That was no sleep, and the task is
	 * charged as any other.
	 */
	if (!t->weight) {
		t->sleeps -= t->sleeps > 0 && !t->throttled && !put_back && !found;
		settle(p, t, cpu, !t->throttled);
	} else if (t->changed || t->entity != entity_for(p, t, cpu)) { /* or taken from another cache */
		settle(p, t, cpu, false);
		deadline_known = false;
	}
	t->changed = false;
	unthrottle(t);
	if (is_group(t->entity))
		__sync_fetch_and_add(&group_of(t->entity)->running, 1);
	if (!deadline_known)
		note_deadline(p, t, c);
runs:
	c->runs = true;
	c->run_idle = is_idle_class(p, t);
}

void BPF_STRUCT_OPS(warmq_tick, struct task_struct *p)
{
	struct task_state *t = task_of(p);
	u32 cpu = bpf_get_smp_processor_id();
	struct cpu_state *c;
	bool ends;
	u64 now;

	if (!t)
		return;
	now = scx_bpf_now();
	c = cpu_of(cpu);
	c->tick = warmq_tick_length(c->tick, elapsed(c->ticked_at, now));
	c->ticked_at = now;
	keep_balancing();
	count_late(p, t, cpu);
	charge(p, t, cpu);
	set_speed(cpu, now);
	t->stoppable = nr_quotas && interrupts_user(p);
	begin_period(p, t, cpu, now);
	look(p, t, cpu);
	if (!t->weight)
		return;
	if (!waits_at(cpu))
		forgive(t);
	note_deadline(p, t, c);
	/* It must move before it runs on, or wait, or its slice is over. */
	ends = (smt_enabled && leaves_core(p, t, cpu, now)) || t->entity != entity_for(p, t, cpu) || must_wait(t) ||
	       warmq_slice_ends(p->scx.slice, c->tick);
	if (ends)
		scx_bpf_task_set_slice(p, 0);
	t->stoppable &= ends;
}

/*
 * Whether a task that no longer counts as runnable neither sleeps nor exits. The kernel (6.18) takes a task off
 * its CPU while it changes its nice value, its affinity or its cgroup, and then puts it back without enqueue.
 * A task sets its state before it sleeps.
 */
static __always_inline bool is_changed(const struct task_struct *p)
{
	return !p->__state; /* TASK_RUNNING */
}

void BPF_STRUCT_OPS(warmq_stopping, struct task_struct *p, bool runnable)
{
	struct task_state *t = task_of(p);
	u32 cpu = scx_bpf_task_cpu(p);

	if (!t)
		return;
	if (runnable)
		count_late(p, t, cpu);
	else if (!t->weight && is_changed(p)) { /* it is put back as it was */
		t->changed = true;
		return;
	}
	charge(p, t, cpu);
	if (t->running && t->weight && is_group(t->entity))
		__sync_fetch_and_sub(&group_of(t->entity)->running, 1);
	t->running = false;
	cpu_of(cpu)->runs = false;
	if (runnable)
		return;
	t->stoppable = sleeps_interruptibly(p);
	if (is_changed(p)) {
		t->changed = true;
		return;
	}
	t->slept_at = scx_bpf_now();
	t->waits_since = 0; /* it may not have been allowed to run: see warmq_running() */
	if (t->goes_to)
		t->goes_to = 0;
	t->sleeps++;
	t->expected = warmq_expect(t->expected, t->ran);
	t->ran = 0;
	if (p->flags & PF_EXITING)
		leave_debt(p, t);
	leave_all(t);
}

/* A real-time task takes the CPU: whatever waits in its local queue may run elsewhere. */
void BPF_STRUCT_OPS(warmq_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	scx_bpf_reenqueue_local();
}

bool BPF_STRUCT_OPS(warmq_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_state *t = task_of(from);

	if (t)
		t->yields = true;
	scx_bpf_task_set_slice(from, 0);
	return false;
}

/* A CPU that goes idle is kicked if tasks wait: they may have been queued since it dispatched. */
void BPF_STRUCT_OPS(warmq_update_idle, s32 cpu, bool idle)
{
	note_idle(cpu, idle);
	if (!idle)
		return;
	set_speed(cpu, scx_bpf_now());
	cpu_of(cpu)->batch_entity = NO_ENTITY;
	cpu_of(cpu)->crowded_since = 0;
	if (waits_at(cpu) || found_waits(cpu))
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/*
 * Kernel threads of one CPU run briefly, and others wait for them. Not so ksoftirqd, where packets
 * starve other tasks.
 */
static bool runs_at_once(const struct task_struct *p)
{
	char comm[16] = {};

	if (!(p->flags & PF_KTHREAD) || p->nr_cpus_allowed != 1)
		return false;
	bpf_probe_read_kernel_str(comm, sizeof(comm), p->comm);
	return bpf_strncmp(comm, 9, "ksoftirqd") != 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(warmq_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_state *t = bpf_task_storage_get(&tasks, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!t)
		return -ENOMEM;
	t->fresh = true;
	t->queued_in = NO_ENTITY;
	t->entity = 0;
	t->cgroup = number_of_cgroup(args->cgroup);
	if (args->fork)
		t->parent = bpf_get_current_task_btf()->pid;
	return 0;
}

void BPF_STRUCT_OPS(warmq_enable, struct task_struct *p)
{
	struct task_state *t = task_of(p);
	u64 now = scx_bpf_now();

	if (!t)
		return;
	t->at_once = runs_at_once(p);
	t->slept_at = t->period_at = now;
	remember(p, t, scx_bpf_task_cpu(p));
}

/* The task leaves for another scheduling class, or exits. */
void BPF_STRUCT_OPS(warmq_disable, struct task_struct *p)
{
	struct task_state *t = task_of(p);

	if (!t)
		return;
	leave_queues(t);
	leave_all(t);
	unthrottle(t);
	if (t->running) /* stopping took it for changed, but it goes on in another class */
		cpu_of(scx_bpf_task_cpu(p))->runs = false;
	t->running = false;
	t->changed = false;
	t->stoppable = false;
}

void BPF_STRUCT_OPS(warmq_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	struct task_state *t = task_of(p);

	if (!t)
		return;
	leave_queues(t);
	leave_all(t);
	unthrottle(t);
	enter_group(t, 0, scx_bpf_now());
}

void BPF_STRUCT_OPS(warmq_set_cpumask, struct task_struct *p, const struct cpumask *mask)
{
	struct task_state *t = task_of(p);

	if (!t)
		return;
	t->goes_to = 0;
	if (p->flags & PF_KTHREAD)
		t->at_once = runs_at_once(p);
}

void BPF_STRUCT_OPS(warmq_cgroup_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	struct task_state *t = task_of(p);

	if (!t)
		return;
	move_to_cgroup(t, number_of_cgroup(to));
	if (group_by == ORIGIN_CGROUP)
		leave_usual_group(t, scx_bpf_now());
}

/* How long after V of its domain the deadline of a runnable task is. */
static __always_inline s64 deadline_after(struct task_state *t)
{
	if (!t || !t->weight)
		return 0;
	return deadline_of(t, slice_of(t)) - time_of(domain_of_entity(t->entity))->avg_vruntime;
}

/*
 * Core scheduling (sched_core_enabled()): which of two tasks that may not share a core at the same time comes first. They
 * may be of two domains, each with a time of its own.
 */
bool BPF_STRUCT_OPS(warmq_core_sched_before, struct task_struct *a, struct task_struct *b)
{
	return deadline_after(task_of(a)) < deadline_after(task_of(b));
}

static __always_inline bool is_online(u32 cpu)
{
	return cpu_domain[within(cpu, WARMQ_MAX_CPUS)] < WARMQ_MAX_DOMAINS;
}

/* The online CPUs of a domain, or only the fast ones. */
static struct bpf_cpumask *make_mask(u32 domain, bool fast)
{
	struct bpf_cpumask *mask = bpf_cpumask_create();
	u32 cpu;

	if (!mask)
		return NULL;
	bpf_for(cpu, 0, nr_cpus) {
		if (is_online(cpu) && domain_of_cpu(cpu) == domain && (!fast || is_fast(cpu)))
			bpf_cpumask_set_cpu(cpu, mask);
	}
	return mask;
}

/* Gives a mask to a table, in place of the one that it has. Returns whether there was one to give. */
static __always_inline bool keep_mask(struct bpf_cpumask **place, struct bpf_cpumask *made)
{
	if (!made)
		return false;
	made = bpf_kptr_xchg(place, made);
	if (made)
		bpf_cpumask_release(made);
	return true;
}

static s32 make_domain(u32 domain)
{
	struct domain_mask *value = bpf_map_lookup_elem(&domain_masks, &domain);
	u32 cpu, online = 0;

	if (!value || !keep_mask(&value->mask, make_mask(domain, false)))
		return -ENOMEM;
	if (unlike_cpus && !keep_mask(&value->fast, make_mask(domain, true)))
		return -ENOMEM;
	bpf_for(cpu, 0, nr_cpus)
		online += is_online(cpu) && domain_of_cpu(cpu) == domain;
	time_of(domain)->cpus = online;
	/* The kernel does not say which idle already. */
	set_may_idle(domain);
	return scx_bpf_create_dsq(dsq_of(domain), -1) ?: scx_bpf_create_dsq(dsq_of(LATE_BASE + domain), -1);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(warmq_init)
{
	u32 i;
	s32 error;

	bpf_for(i, 0, nr_domains) {
		error = make_domain(i);
		if (error)
			return error;
	}
	bpf_for(i, 0, nr_cpus) {
		cpu_of(i)->batch_entity = NO_ENTITY;
		cpu_of(i)->idle = 1;
		error = scx_bpf_create_dsq(dsq_of(WARMQ_PINNED_BASE + i), -1) ?: scx_bpf_create_dsq(dsq_of(FOUND_BASE + i), -1);
		if (error)
			return error;
	}
	bpf_for(i, 1, nr_groups) {
		error = scx_bpf_create_dsq(dsq_of(WARMQ_GROUP_BASE + i), -1);
		if (error)
			return error;
	}
	started_at = scx_bpf_now();
	error = prepare_quota_timer();
	return error ?: start_balance();
}

void BPF_STRUCT_OPS(warmq_exit, struct scx_exit_info *ei)
{
	UEI_RECORD(uei, ei);
}

#ifdef WARMQ_RACE
#include "race.bpf.h"
#endif

SCX_OPS_DEFINE(warmq_ops,
	       .select_cpu = (void *)warmq_select_cpu,
	       .enqueue = (void *)warmq_enqueue,
	       .dispatch = (void *)warmq_dispatch,
	       .running = (void *)warmq_running,
	       .tick = (void *)warmq_tick,
	       .stopping = (void *)warmq_stopping,
	       .yield = (void *)warmq_yield,
	       .cpu_release = (void *)warmq_cpu_release,
	       .update_idle = (void *)warmq_update_idle,
	       .init_task = (void *)warmq_init_task,
	       .exit_task = (void *)warmq_exit_task,
	       .enable = (void *)warmq_enable,
	       .disable = (void *)warmq_disable,
	       .set_cpumask = (void *)warmq_set_cpumask,
	       .cgroup_init = (void *)warmq_cgroup_init,
	       .cgroup_exit = (void *)warmq_cgroup_exit,
	       .cgroup_move = (void *)warmq_cgroup_move,
	       .cgroup_set_weight = (void *)warmq_cgroup_set_weight,
	       .cgroup_set_idle = (void *)warmq_cgroup_set_idle,
	       .cgroup_set_bandwidth = (void *)warmq_cgroup_set_bandwidth,
	       .core_sched_before = (void *)warmq_core_sched_before,
	       .dump = (void *)warmq_dump,
	       .dump_cpu = (void *)warmq_dump_cpu,
	       .dump_task = (void *)warmq_dump_task,
	       .init = (void *)warmq_init,
	       .exit = (void *)warmq_exit,
	       .flags = SCX_OPS_KEEP_BUILTIN_IDLE | SCX_OPS_ENQ_LAST | SCX_OPS_ENQ_MIGRATION_DISABLED,
	       .timeout_ms = 20000,
	       .name = "warmq");
