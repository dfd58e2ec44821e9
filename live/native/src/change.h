/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Changes of a task or a cgroup, in the order of Linux 6.18: set_user_nice(), __do_set_cpus_allowed() and
 * sched_move_task() take a task that runs or is queued out of its queue, change it, and put it back. Part of
 * native.c.
 */
#pragma once

static bool runs(struct task_struct *p)
{
	return model.running[p->cpu] == p;
}

/* dequeue_task_scx() and put_prev_task_scx(). Returns whether it was runnable. */
static bool take_off(struct task_struct *p)
{
	bool queued = p->scx.flags & SCX_TASK_QUEUED;

	if (!queued)
		return false;
	if (runs(p)) {
		account(p);
		warmq_stopping(p, false);
	}
	p->scx.flags &= ~SCX_TASK_QUEUED;
	if (p->dsq)
		take_out(p);
	return true;
}

/*
 * enqueue_task_scx() and set_next_task_scx(). A task that runs goes through the local queue of its CPU without
 * any word to the program.
 */
static void put_back(struct task_struct *p, bool queued)
{
	if (!queued)
		return;
	p->scx.flags |= SCX_TASK_QUEUED;
	if (!runs(p)) {
		enqueue(p, SCX_ENQ_RESTORE);
		return;
	}
	p->se.exec_start = model.now;
	warmq_running(p);
}

void native_set_weight(u32 id, u32 here, u32 weight, u64 now)
{
	struct task_struct *p = &tasks_of_model[id];
	bool queued;

	at(here, now);
	queued = take_off(p);
	p->scx.weight = weight; /* the program has no ops.set_weight */
	put_back(p, queued);
}

/* Queues a task elsewhere that waits; move_queued_task(). (The kernel chooses any CPU; here the first.) */
static void move(struct task_struct *p)
{
	take_out(p);
	p->cpu = bpf_cpumask_first(p->cpus_ptr);
	enqueue(p, 0);
	/* wakeup_preempt(), as in native_enqueue(). */
	if (!model.running[p->cpu])
		put_cpu(&model.kicked, p->cpu);
}

/* A running task that may no longer run where it does waits for the migration thread: native_migrate(). */
void native_set_cpumask(u32 id, u32 here, u64 allowed, u64 now)
{
	struct task_struct *p = &tasks_of_model[id];
	bool queued;

	if (p->cpus_ptr->bits[0] == allowed)
		return;
	at(here, now);
	queued = take_off(p);
	allow(p, allowed);
	warmq_set_cpumask(p, p->cpus_ptr);
	put_back(p, queued);
	if (queued && !runs(p) && !may_run_on(p, p->cpu))
		move(p);
}

/* The migration thread takes a CPU from a task that may no longer run there, and moves that. */
void native_migrate(u32 here, u64 now)
{
	struct task_struct *p = model.running[here];

	at(here, now);
	account(p);
	warmq_stopping(p, true);
	model.running[here] = model.current = NULL;
	put_cpu(&model.stopped, here);
	p->migrates = true;
	if (p->scx.slice)
		put_last(&model.local[here], p);
	else
		enqueue(p, SCX_ENQ_LAST);
	warmq_cpu_release(here, NULL);
	p->migrates = false;
	move(p);
}

/* __sched_setscheduler(): a task that runs becomes a real-time one, and its CPU is no longer the program's. */
void native_leave_class(u32 id, u32 here, u64 now)
{
	struct task_struct *p = &tasks_of_model[id];

	at(here, now);
	take_off(p);
	warmq_disable(p);
	model.running[here] = model.current = NULL;
	put_cpu(&model.stopped, here);
}

/* A real-time task takes a CPU that idles (put_prev_task_idle()). */
void native_taken_by_realtime(u32 here, u64 now)
{
	at(here, now);
	warmq_update_idle(here, false);
	drop_cpu(&model.idle, here);
	put_cpu(&model.stopped, here);
}

void native_cgroup_init(u32 number, u32 parent, u32 weight)
{
	struct scx_cgroup_init_args args = { .weight = weight, .bw_quota_us = NO_QUOTA };
	struct cgroup *cgroup = &cgroups_of_model[number];

	cgroup_nodes[number].id = number + 1;
	cgroup->kn = &cgroup_nodes[number];
	if (number) {
		cgroup->parent = &cgroups_of_model[parent];
		cgroup->level = cgroup->parent->level + 1;
		memcpy(cgroup->ancestors, cgroup->parent->ancestors, sizeof(cgroup->ancestors));
	}
	cgroup->ancestors[cgroup->level] = cgroup;
	cgroup->subsys[cpu_cgrp_id] = &task_groups[number];
	must(!warmq_cgroup_init(cgroup, &args), "no room for a cgroup");
}

void native_cgroup_exit(u32 number)
{
	warmq_cgroup_exit(&cgroups_of_model[number]);
}

void native_cgroup_set_weight(u32 number, u32 weight)
{
	warmq_cgroup_set_weight(&cgroups_of_model[number], weight);
}

void native_cgroup_set_idle(u32 number, bool idle)
{
	warmq_cgroup_set_idle(&cgroups_of_model[number], idle);
	task_groups[number].idle = idle;
}

/* All numbers of cgroups but one are taken. */
void native_cgroup_leave_one(void)
{
	u32 number;

	for (number = 2; number < MAX_CGROUPS; number++)
		cgroups[number].state = CGROUP_USED;
}

/* How many quotas of cgroups without a number were set. */
u64 native_quotas_refused(void)
{
	return quotas_refused;
}

void native_cgroup_move(u32 id, u32 here, u32 from, u32 to, u64 now)
{
	struct task_struct *p = &tasks_of_model[id];
	bool queued;

	at(here, now);
	queued = take_off(p);
	warmq_cgroup_move(p, &cgroups_of_model[from], &cgroups_of_model[to]);
	put_back(p, queued);
}
