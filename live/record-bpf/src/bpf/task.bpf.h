/* SPDX-License-Identifier: GPL-2.0-only */
/* Who runs, who wakes whom, and the lives of tasks. */
#ifndef TASK_BPF_H
#define TASK_BPF_H

#define COPY_COMM(to, task) bpf_probe_read_kernel(to, sizeof(to), (task)->comm)

/* States of tasks (linux/sched.h). */
#define STATES_REPORTED 0x7f
#define STATE_IDLE_REPORTED 0x80
#define STATE_UNINTERRUPTIBLE 0x2
#define STATE_IDLE 0x402
#define STATE_RTLOCK_WAIT 0x1000
#define STATE_FROZEN 0x8000

/* The state in which a task leaves its CPU, as sched_switch reports it; 0 if it could go on. */
static __always_inline u32 reported_state(bool preempted, u32 state, u32 exit_state)
{
	if (preempted)
		return 0;
	if ((state & STATE_IDLE) == STATE_IDLE)
		return STATE_IDLE_REPORTED;
	if (state & (STATE_RTLOCK_WAIT | STATE_FROZEN))
		return STATE_UNINTERRUPTIBLE;
	return (state | exit_state) & STATES_REPORTED;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(sched_switch, bool preempted, struct task_struct *prev, struct task_struct *next, u32 prev_state)
{
	struct sched_switch_event *event = BEGIN(sched_switch);

	if (!event)
		return 0;
	COPY_COMM(event->prev_comm, prev);
	event->prev_pid = prev->pid;
	event->prev_state = reported_state(preempted, prev_state, prev->exit_state);
	COPY_COMM(event->next_comm, next);
	event->next_pid = next->pid;
	return end(event);
}

#define WAKES(name) \
SEC("tp_btf/" #name) \
int BPF_PROG(name, struct task_struct *task) \
{ \
	struct name##_event *event = BEGIN(name); \
\
	if (!event) \
		return 0; \
	COPY_COMM(event->comm, task); \
	event->pid = task->pid; \
	event->target_cpu = task->thread_info.cpu; \
	return end(event); \
}

WAKES(sched_waking)
WAKES(sched_wakeup)
WAKES(sched_wakeup_new)

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(sched_migrate_task, struct task_struct *task, int dest_cpu)
{
	struct sched_migrate_task_event *event = BEGIN(sched_migrate_task);

	if (!event)
		return 0;
	COPY_COMM(event->comm, task);
	event->pid = task->pid;
	event->orig_cpu = task->thread_info.cpu;
	event->dest_cpu = dest_cpu;
	return end(event);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(sched_process_fork, struct task_struct *parent, struct task_struct *child)
{
	struct sched_process_fork_event *event = BEGIN(sched_process_fork);

	if (!event)
		return 0;
	COPY_COMM(event->parent_comm, parent);
	event->parent_pid = parent->pid;
	COPY_COMM(event->child_comm, child);
	event->child_pid = child->pid;
	return end(event);
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(sched_process_exec, struct task_struct *task, int old_pid)
{
	struct sched_process_exec_event *event = BEGIN(sched_process_exec);

	if (!event)
		return 0;
	event->pid = task->pid;
	event->old_pid = old_pid;
	return end(event);
}

SEC("tp_btf/task_rename")
int BPF_PROG(task_rename, struct task_struct *task, const char *comm)
{
	struct task_rename_event *event = BEGIN(task_rename);

	if (!event)
		return 0;
	event->pid = task->pid;
	/* The name may be shorter than the field, and lie at the end of what can be read. */
	if (bpf_probe_read_kernel_str(event->newcomm, sizeof(event->newcomm), comm) < 0)
		event->newcomm[0] = 0;
	return end(event);
}

#endif
