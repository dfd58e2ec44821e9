/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What scx_warmq knows: CPUs, domains, places, entities, groups, cgroups, tasks. All of fixed size, so that nothing that a
 * program does makes it grow. The words (domain, entity, position, clock) are those of decide.h.
 *
 * The arrays are in .bss, which user space pins and reads: see state.rs.
 */
#pragma once

#define MAX_CPUS 512
#define MAX_DOMAINS 128
#define MAX_GROUPS 1024
#define MAX_CGROUPS 2048
#define CGROUP_DEPTH 8

/*
 * Entities by number: the unmanaged tasks of a domain, then the tasks that may run on one CPU only, then groups. Group 0 is
 * never used: 0 means none. An entity's dispatch queue has its number, plus DSQ_BASE.
 */
#define PINNED_BASE 512
#define GROUP_BASE 1024
#define MAX_ENTITIES 2048
#define DSQ_BASE 0x1000
#define NO_ENTITY MAX_ENTITIES

/* Which counter is what: counters.rs has the same order. */
enum counter {
	COUNT_WAKEUPS,
	COUNT_IDLE_PREVIOUS,
	COUNT_IDLE_CORE,
	COUNT_IDLE_DOMAIN,
	COUNT_IDLE_ELSEWHERE,
	COUNT_GRANTED,
	COUNT_NOT_BEHIND,
	COUNT_TOO_SOON,
	COUNT_SHORT_SLEEP,
	COUNT_BATCHES,
	COUNT_BATCHED_RUNS,
	COUNT_GROUP_MOVES,
	COUNT_GROUP_SPLITS,
	COUNT_UNMANAGED_MOVES,
	COUNT_KEPT,
	COUNT_DISPATCHED,
	COUNT_CHANGES,
	COUNT_PROMPT_MOVES,
	COUNT_GROUPS_MADE,
	COUNT_GROUPS_REFUSED,
	COUNT_INFERRED,
	COUNT_HINTS,
	COUNT_FORGED_SLOTS,
	COUNT_OVER_BOUND,
	COUNT_LONGEST_WAIT, /* ns, a maximum */
	COUNT_LONGEST_BOUND, /* ns, the bound that held for it */
	COUNT_RAN_HOME,     /* ns */
	COUNT_RAN_AWAY,     /* ns */
	COUNT_RAN_UNMANAGED, /* ns */
	NR_COUNTERS,
};

/* Written by its own CPU, but for preempted_at; read by all. */
struct cpu_state {
	u64 preempted_at; /* ns, the last preemption by a wakeup */
	/* The running task, for those who would preempt it. weight 0: none of ours. */
	u64 run_position; /* virtual ns, when it was last charged */
	u64 run_charged;  /* ns */
	u64 run_weight;
	/* The succession of tasks of one entity that runs here. */
	u64 batch_used; /* ns */
	u32 batch_entity;
	u32 batch_runs;
	u64 counters[NR_COUNTERS];
} __attribute__((aligned(64)));

struct domain_state {
	struct warmq_domain time;
	u32 pull_from; /* a domain whose unmanaged tasks this one should take one of, plus 1; 0: none */
	u32 unused;
} __attribute__((aligned(64)));

/* Where groups live: a CPU or a domain. */
struct place_state {
	u64 managed; /* weight of the runnable members of the groups that live here */
	u64 imbalanced_since; /* ns; 0: it is not too calm */
	u64 groups[MAX_GROUPS / 64]; /* that may have runnable members: set when one comes, cleared by who finds none */
} __attribute__((aligned(64)));

struct entity_state {
	struct warmq_entity time;
	u64 queued; /* tasks in its dispatch queue, or just about to be */
} __attribute__((aligned(64)));

/* Whose fragment, and which. Zero means everybody's. */
struct group_key {
	u32 uid;
	u32 tgid;
	u64 hint;
};

/* Invariant: a group with members has a key that leads to it; one without may be given to another key. */
struct group_state {
	struct group_key key;
	u64 members; /* tasks that named it, asleep or not */
	u64 running; /* members that have a CPU */
	u32 home;    /* place */
	u32 claimed; /* it is being made */
	u64 left_at; /* ns, when the last member left */
	u64 ran_home; /* ns */
	u64 ran_away;
	u64 batches;
	u64 runs;
	u64 moves;
	u64 splits;
	u32 narrow;  /* has had a member that may not run everywhere: it stays where it is */
	u32 inferred;
} __attribute__((aligned(64)));

/* Weights in parts of WARMQ_WHOLE; number 0 is the root, and unused. */
struct cgroup_state {
	u64 id;
	u64 weight;
	u64 active;  /* weights of its runnable tasks and active children */
	u64 counted; /* what it has added to its parent's `active` */
	u32 parent;
	u32 used;
};

/* A wait that was longer than promised: whose, where, and how much was runnable there. */
#define KEPT_OVERDUE 16

struct overdue_wait {
	u64 at;     /* ns, when it ended */
	u64 waited; /* ns */
	u64 bound;  /* ns */
	u64 weight;
	u64 domain_weight;
	u32 pid;
	u32 cpu;
	u32 entity;
	u32 cpus_allowed;
	char comm[16];
};

struct task_state {
	u64 position;   /* virtual ns in `domain`, where it stood when it last left an entity */
	u64 weight;     /* that its entity has for it; 0: it is in none */
	u64 own_weight; /* that its cgroup has for it */
	u64 charged;    /* ns of its run time (sum_exec_runtime) that it has paid for */
	u64 queued_at;  /* ns */
	u64 queued_weight; /* of its domain, when it was queued */
	u64 slept_at;   /* ns */
	u64 period_at;  /* ns, when the counting of sleeps began anew */
	u64 faded_at;   /* ns, when its inferred group was last questioned */
	u64 hint;       /* that it follows */
	u64 nonce;      /* that its slot must hold; 0: it has none */
	u32 entity;
	u32 queued_in;  /* the entity in whose dispatch queue it is; NO_ENTITY: none */
	u32 domain;
	u32 group;      /* 0: none */
	u32 cgroup;
	u32 counted_cgroup; /* that has own_weight */
	u32 sleeps;     /* in this period */
	u32 firmness;   /* of an inferred group */
	bool fresh;     /* has never been runnable here */
	bool at_once;   /* a kernel thread of one CPU: it is short, and others wait for it */
	bool running;
	bool yields;
	bool inferred;
	bool labelled;
};

/* Set by user space before the program is loaded. The policy is not constant: what decide.h gets a pointer to is not volatile. */
struct warmq_policy policy;
const volatile u32 nr_cpus = 1;
const volatile u32 nr_domains = 1;
const volatile u32 nr_places = 1;
const volatile u32 nr_groups = MAX_GROUPS;
const volatile u32 groups_per_process = 256;
const volatile bool place_is_cpu;
const volatile bool preempts = true;
const volatile bool keeps_groups = true;
const volatile bool infer;
const volatile u32 infer_size = 64;
const volatile u32 scope; /* 0 process, 1 user, 2 system */
const volatile u64 balance_interval = 10000000; /* ns */
const volatile u32 cpu_domain[MAX_CPUS];
const volatile u32 cpu_sibling[MAX_CPUS]; /* the next CPU of the same core, round and round */

struct cpu_state cpus[MAX_CPUS];
struct domain_state domains[MAX_DOMAINS];
struct place_state places[MAX_CPUS];
struct entity_state entities[MAX_ENTITIES];
struct group_state groups[MAX_GROUPS];
struct cgroup_state cgroups[MAX_CGROUPS];
u64 managed_queued; /* tasks in the dispatch queues of groups */
u64 started_at;     /* ns */
struct overdue_wait overdue[KEPT_OVERDUE]; /* the last ones, round and round */
u64 nr_overdue;

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_state);
} tasks SEC(".maps");

static __always_inline struct task_state *task_of(struct task_struct *p)
{
	return bpf_task_storage_get(&tasks, p, 0, 0);
}

/*
 * An index into an array of `size`, a power of two. The verifier believes a mask; the barrier keeps the compiler, which may know
 * better, from taking it away.
 */
static __always_inline u32 within(u32 index, u32 size)
{
	barrier_var(index);
	return index & (size - 1);
}

static __always_inline struct cpu_state *cpu_of(u32 cpu)
{
	return &cpus[within(cpu, MAX_CPUS)];
}

static __always_inline struct entity_state *entity_of(u32 entity)
{
	return &entities[within(entity, MAX_ENTITIES)];
}

static __always_inline struct domain_state *domain_of(u32 domain)
{
	return &domains[within(domain, MAX_DOMAINS)];
}

static __always_inline struct place_state *place_of(u32 place)
{
	return &places[within(place, MAX_CPUS)];
}

static __always_inline struct group_state *group_of(u32 group)
{
	return &groups[within(group, MAX_GROUPS)];
}

static __always_inline u32 domain_of_cpu(u32 cpu)
{
	return cpu_domain[within(cpu, MAX_CPUS)] & (MAX_DOMAINS - 1);
}

static __always_inline u32 place_of_cpu(u32 cpu)
{
	return place_is_cpu ? cpu : domain_of_cpu(cpu);
}

static __always_inline u32 domain_of_place(u32 place)
{
	return place_is_cpu ? domain_of_cpu(place) : place;
}

static __always_inline bool is_group(u32 entity)
{
	return entity >= GROUP_BASE && entity < MAX_ENTITIES;
}

/* The domain in whose time an entity stands. */
static __always_inline u32 domain_of_entity(u32 entity)
{
	if (is_group(entity))
		return domain_of_place(group_of(entity)->home);
	return entity >= PINNED_BASE ? domain_of_cpu(entity) : entity & (MAX_DOMAINS - 1);
}

static __always_inline u64 dsq_of(u32 entity)
{
	return DSQ_BASE + entity;
}

static __always_inline void count(enum counter counter)
{
	cpu_of(bpf_get_smp_processor_id())->counters[counter]++;
}

static __always_inline void count_by(enum counter counter, u64 value)
{
	cpu_of(bpf_get_smp_processor_id())->counters[counter] += value;
}
