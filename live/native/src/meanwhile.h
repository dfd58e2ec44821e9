/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What two CPUs do at the same time: the one what is asked for, the other what was said before by one of the functions
 * native_..._meanwhile(), after so many moments of the first (native_moment()). Part of native.c.
 */
#pragma once

static void meanwhile(void (*other)(void), u32 moments)
{
	model.meanwhile = other;
	model.moments = moments;
}

/* Whether the other CPU has done its part. If not, there were not so many moments. */
bool native_came_in(void)
{
	bool came_in = !model.meanwhile;

	model.meanwhile = NULL;
	return came_in;
}

static struct task_struct *requeued;

static void requeue(void)
{
	take_out(requeued);
	enqueue(requeued, SCX_ENQ_RESTORE);
}

/* The kernel queues a task again that waits: its nice value has changed. */
void native_requeue_meanwhile(u32 id, u32 moments)
{
	requeued = &tasks_of_model[id];
	meanwhile(requeue, moments);
}

static u32 lifted;

static void lift(void)
{
	warmq_cgroup_set_bandwidth(&cgroups_of_model[lifted], 100000, NO_QUOTA, 0);
	begin_periods(NULL, NULL, NULL);
}

/* The last quota is lifted, and the timer expires for the last time. */
void native_lift_meanwhile(u32 number, u32 moments)
{
	lifted = number;
	meanwhile(lift, moments);
}

/* The other timer releases tasks, too. */
void native_release_meanwhile(u32 moments)
{
	meanwhile(release_due, moments);
}

static u32 idling;

static void go_idle(void)
{
	u32 id = model.running[idling]->pid - 1;

	native_sleep(id, idling, false, model.now);
	native_pick(idling, model.now);
}

/* The task of a CPU sleeps, and the CPU looks for another. */
void native_go_idle_meanwhile(u32 cpu, u32 moments)
{
	idling = cpu;
	meanwhile(go_idle, moments);
}

static void look_again(void)
{
	native_pick(idling, model.now);
}

/* An idle CPU that somebody has kicked looks for a task. */
void native_look_meanwhile(u32 cpu, u32 moments)
{
	idling = cpu;
	meanwhile(look_again, moments);
}

static u32 woken;

static void wake(void)
{
	native_enqueue(woken, 0, native_select(woken, 0, 0, -1, false, model.now), -1, model.now);
}

/* An interrupt on CPU 0 wakes a task that was last there. */
void native_wake_meanwhile(u32 id, u32 moments)
{
	woken = id;
	meanwhile(wake, moments);
}

static u32 weighed, new_weight;

static void weigh(void)
{
	native_cgroup_set_weight(weighed, new_weight);
}

/* The weight of a cgroup changes. */
void native_cgroup_weight_meanwhile(u32 number, u32 weight, u32 moments)
{
	weighed = number;
	new_weight = weight;
	meanwhile(weigh, moments);
}

static void interrupt(void)
{
	native_tick(model.cpu, false, model.now);
}

/* A tick interrupts the task that runs. */
void native_tick_meanwhile(u32 moments)
{
	meanwhile(interrupt, moments);
}

/* Whether each entity counts the tasks that are in its queue, and each CPU those in its own. */
static bool queues_are_right(void)
{
	u32 number;

	for (number = 0; number < WARMQ_MAX_ENTITIES; number++)
		if (entities[number].queued != queue_of(dsq_of(number))->queued)
			return false;
	for (number = 0; number < model.cpus; number++)
		if (cpus[number].found != queue_of(dsq_of(FOUND_BASE + number))->queued)
			return false;
	return true;
}

/* Whether each cgroup counts the weights of what is active in it. */
static bool cgroups_are_right(void)
{
	u64 active[MAX_CGROUPS] = {};
	u32 number;

	for (number = 1; number < MAX_CGROUPS; number++)
		active[cgroups[number].parent] += cgroups[number].counted;
	for (number = 0; number < TASKS; number++) {
		struct task_state *t = tasks_of_model[number].pid ? task_of(&tasks_of_model[number]) : NULL;

		if (t)
			active[t->counted_cgroup] += t->own_weight;
	}
	for (number = 1; number < MAX_CGROUPS; number++)
		if (cgroups[number].active != active[number] ||
		    cgroups[number].counted != (active[number] ? cgroups[number].weight : 0))
			return false;
	return true;
}

/* Whether each group counts its members. */
static bool groups_are_right(void)
{
	u64 members[WARMQ_MAX_GROUPS] = {};
	u32 number;

	for (number = 0; number < TASKS; number++) {
		struct task_state *t = tasks_of_model[number].pid ? task_of(&tasks_of_model[number]) : NULL;

		if (t && !is_evicted(t))
			members[group_number(t)]++;
	}
	for (number = 1; number < WARMQ_MAX_GROUPS; number++)
		if (members_of(&groups[number]) != members[number])
			return false;
	return true;
}

bool native_counts_are_right(void)
{
	return queues_are_right() && cgroups_are_right() && groups_are_right();
}
