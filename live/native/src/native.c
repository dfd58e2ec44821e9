/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The BPF program as it is, a model of sched_ext around it, and the calls that the kernel makes: the
 * order is that of kernel/sched/ext.c of 6.18 (balance_one(), pick_task_scx(), put_prev_task_scx(),
 * enqueue_task_scx(), dequeue_task_scx()). change.h has what is called when a task or a cgroup changes.
 * lib.rs declares the functions at the end.
 */
#include "../../scx/src/bpf/main.bpf.c"
#include "lines.h"
#include "sched_ext.h"

static struct task_struct tasks_of_model[TASKS];
static struct cred creds[TASKS];
static struct signal_struct signals[TASKS];
/* Number 0 is the root. */
static struct cgroup cgroups_of_model[CGROUPS];
static struct kernfs_node cgroup_nodes[CGROUPS];
static struct task_group task_groups[CGROUPS];
static struct warmq_slot slots_of_model[TASKS];

struct native_machine {
	u32 cpus, domains, nodes;
	bool place_is_cpu, unlike_cpus;
	u32 domain_of[CPUS];
	u32 core_of[CPUS];
	bool fast[CPUS];
	u32 node_of[WARMQ_MAX_DOMAINS];
	u8 near[WARMQ_MAX_DOMAINS][WARMQ_MAX_DOMAINS];
	struct warmq_policy policy;
};

static void at(u32 cpu, u64 now)
{
	model.cpu = cpu;
	lines_on(cpu);
	model.now = now;
	model.current = model.running[cpu];
	model.in_interrupt = false;
}

/* As update_curr_scx(): what a task ran is taken off its slice. */
static void account(struct task_struct *p)
{
	u64 ran = model.now - p->se.exec_start;

	p->se.exec_start = model.now;
	p->se.sum_exec_runtime += ran;
	p->scx.slice -= ran < p->scx.slice ? ran : p->scx.slice;
}

/* Everything that the program keeps outside of maps. */
static void forget_everything(void)
{
	memset(cpus, 0, sizeof(cpus));
	memset(domains, 0, sizeof(domains));
	memset(places, 0, sizeof(places));
	memset(entities, 0, sizeof(entities));
	memset(groups, 0, sizeof(groups));
	memset(cgroups, 0, sizeof(cgroups));
	memset(overdue, 0, sizeof(overdue));
	memset(domain_errors, 0, sizeof(domain_errors));
	memset(runnable_errors, 0, sizeof(runnable_errors));
	memset(place_errors, 0, sizeof(place_errors));
	memset(task_groups, 0, sizeof(task_groups));
	nr_idle_cgroups = quotas_refused = 0;
	nr_overdue = balance_rounds = nr_quotas = nr_throttled = releases = releasing = 0;
	next_group = groups_used = next_inferred = 1;
	while (model.values)
		drop(&model.values);
	memset(slots_of_model, 0, sizeof(slots_of_model));
	memset(&model, 0, sizeof(model));
	memset(tasks_of_model, 0, sizeof(tasks_of_model));
	memset(cgroups_of_model, 0, sizeof(cgroups_of_model));
}

/* The other CPUs of a core, in a ring. */
static u32 sibling_of(struct native_machine *machine, u32 cpu)
{
	u32 other = cpu;

	do
		other = (other + 1) % machine->cpus;
	while (machine->core_of[other] != machine->core_of[cpu]);
	return other;
}

void native_cgroup_init(u32 number, u32 parent, u32 weight);

void native_load(struct native_machine *machine)
{
	u32 cpu, other;

	lines_end();
	forget_everything();
	model.cpus = machine->cpus;
	policy = machine->policy;
	nr_cpus = machine->cpus;
	nr_domains = machine->domains;
	nr_nodes = machine->nodes;
	unlike_cpus = machine->unlike_cpus;
	memcpy(cpu_fast, machine->fast, sizeof(cpu_fast));
	memcpy(domain_node, machine->node_of, sizeof(domain_node));
	memcpy(domain_near, machine->near, sizeof(domain_near));
	nr_places = machine->place_is_cpu ? machine->cpus : machine->domains;
	place_is_cpu = machine->place_is_cpu;
	smt_enabled = false;
	sets_speed = true;
	nr_groups = WARMQ_MAX_GROUPS;
	groups_per_user = WARMQ_MAX_GROUPS;
	memset(creds, 0, sizeof(creds));
	scope = SCOPE_SYSTEM; /* the same hint of any two tasks means the same data */
	for (cpu = 0; cpu < WARMQ_MAX_CPUS; cpu++)
		cpu_domain[cpu] = WARMQ_MAX_DOMAINS;
	for (cpu = 0; cpu < machine->cpus; cpu++) {
		cpu_domain[cpu] = machine->domain_of[cpu];
		cpu_sibling[cpu] = sibling_of(machine, cpu);
		smt_enabled |= cpu_sibling[cpu] != cpu;
		for (other = 0; other < machine->cpus; other++)
			if (machine->core_of[other] == machine->core_of[cpu])
				put_cpu(&model.core[cpu], other);
		put_cpu(&model.idle, cpu);
	}
	must(!warmq_init(), "it did not start");
	native_cgroup_init(0, 0, 100);
}

/* `allowed`: of the first 64 CPUs; all its bits: every CPU. */
static void allow(struct task_struct *p, u64 allowed)
{
	memset(&p->allowed, allowed == ~0ULL ? 0xff : 0, sizeof(p->allowed));
	p->allowed.bits[0] = allowed;
	p->nr_cpus_allowed = allowed == ~0ULL ? CPUS : __builtin_popcountll(allowed);
}

static bool may_run_on(struct task_struct *p, u32 cpu)
{
	return bpf_cpumask_test_cpu(cpu, p->cpus_ptr);
}

void native_fork(u32 id, s32 parent, u32 weight, u64 allowed, u32 cgroup, u32 cpu, u64 now)
{
	struct task_struct *p = &tasks_of_model[id];
	struct scx_init_task_args args = { .fork = parent >= 0, .cgroup = &cgroups_of_model[cgroup] };

	at(cpu, now);
	model.current = parent < 0 ? NULL : &tasks_of_model[parent];
	p->pid = p->tgid = id + 1;
	p->cpus_ptr = &p->allowed;
	allow(p, allowed);
	p->cred = &creds[id];
	p->signal = &signals[id];
	p->group_leader = p;
	p->real_parent = parent < 0 ? &idle_task : &tasks_of_model[parent];
	p->cpu = cpu;
	p->scx.weight = weight;
	must(!warmq_init_task(p, &args), "no memory");
	warmq_enable(p);
}

/* select_fallback_rq(): a CPU of the same node where a task may run, or any. */
static s32 allowed_near(struct task_struct *p, s32 near)
{
	u32 cpu;

	if (may_run_on(p, near))
		return near;
	for (cpu = 0; cpu < model.cpus; cpu++)
		if (may_run_on(p, cpu) && node_of(domain_of_cpu(cpu)) == node_of(domain_of_cpu(near)))
			return cpu;
	return bpf_cpumask_first(p->cpus_ptr);
}

s32 native_select(u32 id, u32 here, s32 prev, s32 waker, bool sync, u64 now)
{
	struct task_struct *p = &tasks_of_model[id];
	u64 flags = waker == -2 ? SCX_WAKE_FORK : SCX_WAKE_TTWU;

	at(here, now);
	model.current = waker < 0 ? NULL : &tasks_of_model[waker];
	model.in_interrupt = waker == -1;
	p->direct = false;
	p->cpu = prev;
	if (p->nr_cpus_allowed == 1) /* the kernel does not ask; select_task_rq() */
		return p->cpu = bpf_cpumask_first(p->cpus_ptr);
	model.queueing = p;
	p->cpu = warmq_select_cpu(p, prev, flags | (sync ? SCX_WAKE_SYNC : 0));
	model.queueing = NULL;
	return p->cpu = allowed_near(p, p->cpu);
}

void native_enqueue(u32 id, u32 here, u32 cpu, s32 waker, u64 now)
{
	struct task_struct *p = &tasks_of_model[id];
	bool selected;

	at(here, now);
	must(!p->direct || p->cpu == cpu, "a task is queued elsewhere than where it was sent");
	p->cpu = cpu;
	model.current = waker < 0 ? NULL : &tasks_of_model[waker];
	model.in_interrupt = waker == -1;
	p->__state = 0;
	p->scx.flags |= SCX_TASK_QUEUED;
	/* wakeup_preempt(): a CPU that idles reschedules for whatever wakes on it. */
	selected = p->direct;
	enqueue(p, SCX_ENQ_WAKEUP);
	if (selected && !model.running[p->cpu])
		put_cpu(&model.kicked, p->cpu);
}

#include "change.h"

/* A running task sleeps or exits. */
void native_sleep(u32 id, u32 here, bool exits, u64 now)
{
	struct task_struct *p = &tasks_of_model[id];

	at(here, now);
	if (exits) { /* sched_autogroup_exit_task() */
		p->flags |= PF_EXITING;
		put_back(p, take_off(p));
	}
	account(p);
	p->__state = 1;
	p->scx.flags &= ~SCX_TASK_QUEUED;
	warmq_stopping(p, false);
}

/* As native_sleep(), in a state in which no signal wakes it. */
void native_sleep_deeply(u32 id, u32 here, u64 now)
{
	struct task_struct *p = &tasks_of_model[id];

	at(here, now);
	account(p);
	p->__state = 2; /* TASK_UNINTERRUPTIBLE */
	p->scx.flags &= ~SCX_TASK_QUEUED;
	warmq_stopping(p, false);
}

void native_exit(u32 id, u32 here, u64 now)
{
	at(here, now);
	warmq_exit_task(&tasks_of_model[id], NULL);
}

/* balance_one(): whether a CPU has a task to run, with `prev` if that goes on. */
static bool keeps(struct task_struct *prev)
{
	return prev && (prev->scx.flags & SCX_TASK_QUEUED) && prev->scx.slice;
}

/* A CPU whose task sleeps, or that idles, takes another. */
static s32 take_next(u32 here, bool was_idle)
{
	struct task_struct *next = model.local[here].first;

	model.running[here] = next;
	if (!next) {
		native_moment();
		put_cpu(&model.idle, here);
		if (!was_idle) /* the program is told once that a CPU goes idle */
			warmq_update_idle(here, true);
		return -1;
	}
	take_out(next);
	if (was_idle) { /* put_prev_task_idle() */
		warmq_update_idle(here, false);
		drop_cpu(&model.idle, here);
	}
	next->se.exec_start = model.now;
	warmq_running(next);
	return next->pid - 1;
}

s32 native_pick(u32 here, u64 now)
{
	struct task_struct *prev = model.running[here];
	bool was_idle = !prev && !bpf_cpumask_test_cpu(here, &model.stopped);
	bool awake = prev && (prev->scx.flags & SCX_TASK_QUEUED);
	s32 next;

	at(here, now);
	if (awake)
		account(prev);
	if (keeps(prev))
		return prev->pid - 1;
	if (!model.local[here].first)
		warmq_dispatch(here, prev);
	if (keeps(prev))
		return prev->pid - 1;
	if (awake) {
		warmq_stopping(prev, true);
		enqueue(prev, 0);
	}
	drop_cpu(&model.stopped, here);
	next = take_next(here, was_idle);
	ask_kicked();
	if (next >= 0 || !bpf_cpumask_test_cpu(here, &model.kicked))
		return next;
	/* It asked itself to look once more. */
	drop_cpu(&model.kicked, here);
	if (!model.local[here].first)
		warmq_dispatch(here, NULL);
	next = take_next(here, true);
	ask_kicked();
	return next;
}

#include "quotas.h"

/* A tick in user mode or, `inside`, in the kernel. Returns whether the task of this CPU is to be preempted. */
bool native_tick(u32 here, bool inside, u64 now)
{
	struct task_struct *p = model.running[here];

	at(here, now);
	account(p);
	__irq_regs = inside ? NULL : &p->user;
	warmq_tick(p);
	return !p->scx.slice;
}

void native_timer(u32 here, u64 now)
{
	at(here, now);
	model.in_interrupt = true;
	balance(NULL, NULL, NULL);
	ask_kicked();
}

void native_yield(u32 here, u64 now)
{
	at(here, now);
	account(model.running[here]);
	warmq_yield(model.running[here], NULL);
}

/* A running task names its data. Returns whether it is asked to yield, as it then does (warmq.h). */
bool native_hint(u32 here, u64 hint, u64 now)
{
	bool moves;

	at(here, now);
	moves = hear(WARMQ_PRCTL_HINT, hint) == WARMQ_ANSWER_MOVE;
	if (moves)
		native_yield(here, now);
	return moves;
}

/* CPUs that were asked to reschedule since the last call: idle ones in the first place. */
void native_kicks(struct cpumask *kicked, struct cpumask *preempted)
{
	*kicked = model.kicked;
	*preempted = model.preempted;
	memset(&model.kicked, 0, sizeof(model.kicked));
	memset(&model.preempted, 0, sizeof(model.preempted));
}

/* The number behind that of the last group that is in use, or was so lately. */
u32 native_groups_used(void)
{
	return groups_used;
}

/* The speed that a CPU was asked for, of 1024. */
u32 native_speed(u32 cpu)
{
	return model.speed[cpu];
}

/* How often the program has armed a timer. */
u64 native_timers_started(void)
{
	return model.timers_started;
}

/* How often the program has looked into a dispatch queue for its first task. */
u64 native_looks(void)
{
	return model.looks;
}

/* How many tasks in queues were passed by CPUs where they may not run. */
u64 native_passed(void)
{
	return model.passed;
}

/* From now on lines count; see lines.h. */
void native_count_lines(void)
{
	lines_begin();
	lines_of(LINES_CPUS, cpus, sizeof(cpus));
	lines_of(LINES_DOMAINS, domains, sizeof(domains));
	lines_of(LINES_DOMAINS, &idle_domains, sizeof(idle_domains));
	lines_of(LINES_PLACES, places, sizeof(places));
	lines_of(LINES_ENTITIES, entities, sizeof(entities));
	lines_of(LINES_GROUPS, groups, sizeof(groups));
	lines_of(LINES_CGROUPS, cgroups, sizeof(cgroups));
	lines_of(LINES_TASKS, storages, sizeof(storages));
	lines_of(LINES_QUEUES, model.queues, sizeof(model.queues));
	lines_of(LINES_IDLE, &model.idle, sizeof(model.idle));
}

/* A task has a slot from now on, and writes a hint into it. */
void native_write_slot(u32 id, u64 hint)
{
	struct task_struct *p = &tasks_of_model[id];
	struct slot_pointer *pointer = bpf_task_storage_get(&slots, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	pointer->slot = &slots_of_model[id];
	pointer->slot->hint = hint;
	task_of(p)->nonce = pointer->slot->nonce = id + 1;
}

/* The hint that a task's group is of; 0: it is in none. */
u64 native_hint_of(u32 id)
{
	struct task_state *t = task_of(&tasks_of_model[id]);

	return is_evicted(t) ? 0 : group_of(t->group)->key.hint;
}

/* The program has room for so many groups, and for so many of a user; hints are those of a process. */
void native_limit_groups(u32 most, u32 of_user)
{
	nr_groups = most + 1;
	groups_per_user = of_user;
	scope = SCOPE_PROCESS;
}

/* A task is of a user in a user namespace that another has made. */
void native_set_user(u32 id, u32 uid, u32 owner)
{
	static struct user_namespace initial, made[TASKS];

	made[id] = (struct user_namespace){ .level = 1, .owner = { owner }, .parent = &initial };
	creds[id].uid.val = uid;
	creds[id].user_ns = &made[id];
}

/* Whether one task comes before another where they may not share a core. */
bool native_core_sched_before(u32 a, u32 b)
{
	return warmq_core_sched_before(&tasks_of_model[a], &tasks_of_model[b]);
}

#include "meanwhile.h"
