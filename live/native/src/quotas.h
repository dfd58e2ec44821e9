/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Quotas of cgroups, and what two CPUs do at the same time: the one of them what is asked for, the other what
 * native_meanwhile() says, at the last moment that the kernel's locks allow.
 */
#pragma once

/* us in each period of as many us; ~0: no quota. */
void native_set_quota(u32 number, u64 quota, u64 period, u64 now)
{
	at(model.cpu, now);
	warmq_cgroup_set_bandwidth(&cgroups_of_model[number], period, quota, 0);
}

/* The timer at which periods begin. */
void native_quota_timer(u32 here, u64 now)
{
	at(here, now);
	model.in_interrupt = true;
	begin_periods(NULL, NULL, NULL);
}

static struct task_struct *requeued;

static void requeue(void)
{
	take_out(requeued);
	warmq_enqueue(requeued, SCX_ENQ_RESTORE);
}

static u32 lifted;

static void lift(void)
{
	warmq_cgroup_set_bandwidth(&cgroups_of_model[lifted], 100000, NO_QUOTA, 0);
	begin_periods(NULL, NULL, NULL);
}

/* Before the next task is queued or moved, the kernel queues this one again: its nice value has changed. */
void native_requeue_meanwhile(u32 id)
{
	requeued = &tasks_of_model[id];
	model.meanwhile = requeue;
}

/* The same: the last quota is lifted, and the timer expires for the last time. */
void native_lift_meanwhile(u32 number)
{
	lifted = number;
	model.meanwhile = lift;
}

/* The same: the other timer releases tasks, too. */
void native_release_meanwhile(void)
{
	model.meanwhile = release_due;
}

/* Whether each entity counts the tasks that are in its queue. */
bool native_counts_are_right(void)
{
	u32 entity;

	for (entity = 0; entity < WARMQ_MAX_ENTITIES; entity++)
		if (entities[entity].queued != queue_of(dsq_of(entity))->queued)
			return false;
	return true;
}
