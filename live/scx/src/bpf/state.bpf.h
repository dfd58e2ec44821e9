/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What scx_warmq knows: CPUs, domains, places, entities, groups, cgroups, tasks. The tables have a
 * fixed size, so that no program can make them grow. decide.h explains the terms (domain, entity,
 * vruntime, V, lag); warmq_abi.h has the sizes and how entities are numbered.
 *
 * The arrays are in .bss, which the loader pins and state.rs reads.
 */
#pragma once

#define SCHED_IDLE 5 /* include/uapi/linux/sched.h */
#define MAX_CGROUPS 2048
#define CGROUP_DEPTH 8

/* The dispatch queue of an entity has the entity's number, plus this. */
#define DSQ_BASE 0x1000
#define NO_ENTITY WARMQ_MAX_ENTITIES
/*
 * CPU n has a queue of this number, plus n, for tasks that woke while it was idle, and run there at once. They do
 * not wait in its local queue: if a real-time task comes first, the kernel (6.18) does not say so of a CPU that was
 * idle (cpu_release), and nobody else may take what is in there.
 */
#define FOUND_BASE (WARMQ_MAX_ENTITIES + 1)
/* Domain n has a queue of this number, plus n, for tasks that have waited for too long: see help_late(). */
#define LATE_BASE (FOUND_BASE + WARMQ_MAX_CPUS)

/* counters.rs has the same order, and schedulers/warmq.toml names it. */
enum counter {
	COUNT_WAKEUPS,
	COUNT_IDLE_PREVIOUS,
	COUNT_IDLE_CORE,
	COUNT_IDLE_DOMAIN,
	COUNT_IDLE_ELSEWHERE,
	COUNT_GRANTED,
	COUNT_TOO_CLOSE,
	COUNT_TOO_SOON,
	COUNT_SHORT_SLEEP,
	COUNT_BATCHES,
	COUNT_BATCHED_RUNS,
	COUNT_GROUP_MOVES,
	COUNT_GROUP_SPLITS,
	COUNT_UNMANAGED_MOVES,
	COUNT_CORE_MOVES,
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
	COUNT_HELPED,
	COUNT_LONGEST_WAIT_NS,	/* a maximum */
	COUNT_LONGEST_BOUND_NS, /* what was promised for that wait */
	COUNT_RAN_HOME_NS,
	COUNT_RAN_AWAY_NS,
	COUNT_RAN_UNMANAGED_NS,
	NR_COUNTERS,
};

/* Read by all CPUs, written only by its own, except preempted_at, found and left_at. */
struct cpu_state {
	u64 preempted_at; /* ns, the last wakeup preemption */
	/* The running task, for wakeups that may preempt it. */
	u64 run_deadline; /* in its domain's time */
	u32 runs;         /* a task of ours runs */
	u32 run_idle;     /* anything else comes before it: is_idle_class() */
	u32 idle;         /* it is counted in its domain's `idle` */
	u64 ticked_at; /* ns, its last tick */
	u64 tick;      /* ns, how long one takes; 0: not known yet */
	u32 found;        /* tasks in its queue of FOUND_BASE, or about to be put there: see note_found() */
	u32 found_rounds; /* of the timer, in which one waited there and none of ours had the CPU */
	u64 crowded_since; /* ns, since when each tick has found a better core for the task that ran; 0: the last has not */
	u64 left_at;       /* ns, when a task last left this core for a better one; of the first CPU of the core */
	/* The batch: tasks of one entity that run here in succession. */
	u64 batch_used; /* ns */
	/* What it needs of its speed, of 1024, and what its tasks had since `used_at`, in ns. Only if sets_speed. */
	u64 busy;
	u64 used_at;
	u32 used;
	u32 unused;
	u32 batch_entity;
	u32 batch_runs;
	u64 counters[NR_COUNTERS];
	u64 waits[WARMQ_WAIT_CLASSES];
} __attribute__((aligned(64)));

/* What changes seldom, so that all CPUs of a domain may have it in their caches; its sums are in struct entity_state. */
struct domain_state {
	u64 may_idle; /* a CPU of it may idle; see note_idle() and idle_domains */
	/* ns, since when each round of the timer has found unmanaged tasks waiting here, and a CPU idle; 0: the last has not */
	u64 beside_idle_since;
	/* The timer asks this domain to take one unmanaged task from that queue. Counted from 1; 0: none. */
	u32 pull_from;
	u32 late; /* tasks may wait in its queue of LATE_BASE */
} __attribute__((aligned(64)));

/* Where groups live: a CPU or a domain. */
struct place_state {
	u64 managed; /* weight of the runnable members of the groups that live here */
	u64 imbalanced_since[2]; /* ns, since when another place of the node, and of another node, is much busier; 0: none is */
	u64 founded;          /* groups, since `founded_since`: see warmq_newcomers() */
	u64 founded_since;    /* ns */
	/*
	 * Groups that may have queued tasks, and which words of that may have bits: see mark_group(). A bit is set when a
	 * task is queued, and cleared by whoever finds none.
	 */
	u64 words;
	u64 groups[WARMQ_MAX_GROUPS / 64];
} __attribute__((aligned(64)));

/*
 * What changes with each wakeup and each sleep, in one line: of the unmanaged tasks of a domain it has the sums of the domain as
 * well, since whoever needs the one needs the other.
 */
struct entity_state {
	struct warmq_entity time;
	struct warmq_domain domain; /* of the domain, if this is the entity of its unmanaged tasks */
	u32 queued; /* tasks in its dispatch queue, or about to be put there */
	u32 queued_last; /* when the last of them came, in units of COMING_UNIT */
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct entity_state) == 64, "one line");

#define COMING_UNIT 1024 /* ns */

/* Whose fragment, and which. A uid or tgid of 0: everybody's. */
struct group_key {
	u32 uid;
	u32 tgid;
	u64 hint;
};

/* Why tasks are in a group; stats.rs has the same order. */
enum origin {
	ORIGIN_NAMED,   /* their program or an administrator named its data */
	ORIGIN_INFERRED, /* they wake each other (--infer) */
	ORIGIN_MEMORY,  /* they share their memory (--group-by) */
	ORIGIN_CGROUP,
	ORIGIN_PROCESS,
};

/*
 * Invariant: the key of a group with members leads to it. A group without may be given another key, or one whose members have
 * all slept for long: it then has none, and a new generation.
 */
struct group_state {
	struct group_key key;
	u64 members; /* tasks that named it, asleep or not; in the upper half: its generation */
	u64 running; /* members that have a CPU */
	u32 home;    /* place */
	u32 claimed; /* a CPU is just making it */
	u64 left_at; /* ns, when the last member left */
	u64 ran_at;  /* ns, when a member last ran, or it was made */
	u64 queued_since; /* ns, when the first of its queued tasks came: since then its queue has not been empty */
	u64 first;        /* the deadline of the first task in its queue; see first_of_group() */
	u64 first_known;
	u64 ran_home; /* ns */
	u64 ran_away;
	u64 batches;
	u64 runs;
	u64 moves;
	u64 splits;
	u64 waits[WARMQ_WAIT_CLASSES];
	u32 payer;   /* whose groups it counts among: a uid + 1; 0: nobody's */
	u32 narrow;  /* it has had a member that may not run everywhere, so it does not move */
	u32 origin;  /* enum origin */
} __attribute__((aligned(64)));

/* Cgroup 0 is the root, whose entry is unused. */
struct cgroup_state {
	u64 id;
	u64 weight;  /* that it has: `given`, or that of an idle cgroup */
	u64 given;   /* by cpu.weight */
	u64 active;  /* weights of its runnable tasks and active children */
	u64 counted; /* the weight that it has added to its parent's `active` */
	u64 quota;   /* ns of CPU time in each period; 0: no bound */
	u64 burst;   /* ns that it may keep of earlier quotas */
	u64 period;  /* ns */
	u64 period_at; /* ns of CLOCK_MONOTONIC, when this period began */
	s64 ran;     /* ns that it had in this period, and too much before; negative: what it has kept */
	u32 parent;
	u32 state;
	u32 idle;    /* cpu.idle */
	u32 has_queue; /* for its tasks while it is out of quota */
};

/* A wait that was longer than promised: which task, where, and what was runnable there. */
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

/*
 * The kernel puts a pointer before it: the first line is 56 bytes. The lines of a task go from where it ran to whoever wakes it,
 * and back. So what such a CPU needs, what only the CPU needs where it runs, and what changes seldom are lines apart.
 */
struct task_state {
	/* What changes seldom, and is read by whoever wakes it. */
	u64 hint;       /* the hint or label that it follows */
	u64 nonce;      /* that its slot must hold; 0: it has no slot */
	u64 faded_at;   /* ns, when its firmness was last lowered */
	u32 group;      /* its number in the lower GROUP_BITS, its generation above; 0: none */
	u32 cgroup;
	u32 parent;     /* the pid of the task that made it */
	u32 waker;      /* the pid of the task that woke it last */
	u32 turns;      /* see warmq_in_turn() */
	u32 goes_to;    /* the CPU on a better core for which it gives up its own, counted from 1; 0: none */
	u32 firmness;   /* of an inferred group */
	bool fresh;     /* it has never been runnable under this scheduler */
	bool at_once;   /* a kernel thread of one CPU: it runs briefly, and others wait for it */
	bool throttled; /* it waits since its cgroup was out of quota, or has not run since */
	bool labelled;
	/* What changes when it is queued, and when it runs. */
	u64 vtime __attribute__((aligned(8))); /* its vruntime in the time of `entity`, also after it left; virtual ns */
	u64 vruntime;   /* in `domain`, when it last left an entity; virtual ns */
	u64 expected;   /* ns that it runs between two sleeps; 0: nothing is known */
	union {
		u64 slept_at;  /* ns, while it sleeps, and until it is queued */
		u64 queued_at; /* ns, from then on */
	};
	u64 queued_in;  /* the entity in whose dispatch queue it is, or NO_ENTITY; above: who says so, see note_released() */
	u32 weight;     /* that is counted in its entity; 0: it is in none */
	u32 own_weight; /* that is counted in its cgroup */
	u32 queued_weight; /* of its domain, when it was queued, in units of QUEUED_WEIGHT */
	u32 queued_runnable;
	u16 entity;
	u16 domain;
	u16 counted_cgroup; /* the cgroup that own_weight is counted in */
	u16 found_by;   /* the CPU in whose queue of FOUND_BASE it is, counted from 1; 0: in none */
	/* What changes where it runs. */
	u64 charged;    /* ns of its run time (sum_exec_runtime) that were charged */
	u64 ran;        /* ns since it woke */
	u64 owes;       /* ns of run time: the debts of children that exited */
	u64 period_at;  /* ns, when the current count of sleeps began */
	u64 released_at;  /* ns, when it first ran after its cgroup was out of quota */
	u64 waits_since;  /* ns, since when it waits, also out of quota, whatever changes meanwhile; 0: it runs or sleeps */
	u32 sleeps;     /* in this period */
	bool running;
	bool changed;   /* the kernel took it off its CPU to change it, and puts it back at once */
	bool stoppable; /* where it leaves its CPU it may be throttled: see throttle.bpf.h */
	bool yields;
};

_Static_assert(__builtin_offsetof(struct task_state, vtime) == 56 && __builtin_offsetof(struct task_state, charged) == 120,
	       "lines apart");

#define QUEUED_WEIGHT 1024

/*
 * Set by the loader. The policy is not const volatile, because decide.h takes plain pointers to it.
 */
struct warmq_policy policy;
const volatile u32 nr_cpus = 1;
const volatile u32 nr_domains = 1;
const volatile u32 nr_nodes = 1; /* memory nodes with CPUs */
const volatile u32 nr_places = 1;
const volatile u32 nr_groups = WARMQ_MAX_GROUPS;
const volatile u32 groups_per_process = 256;
const volatile u32 groups_per_user = 384;
const volatile bool place_is_cpu;
const volatile bool preempts = true;
const volatile bool keeps_groups = true;
const volatile bool smt_enabled; /* there are cores of several CPUs */
const volatile bool sets_speed; /* the kernel changes clock frequencies by what schedulers say */
const volatile bool infer;
const volatile u32 infer_size = 64;
const volatile u32 group_by; /* the origin of groups of tasks that named nothing; ORIGIN_NAMED: they have none */
const volatile u32 scope; /* 0 process, 1 user, 2 system */
const volatile bool reads_task_hints;
const volatile u64 balance_interval = 10000000; /* ns */
const volatile bool unlike_cpus; /* there are CPUs in one domain that differ in capacity */
const volatile u32 cpu_domain[WARMQ_MAX_CPUS];
const volatile u32 cpu_sibling[WARMQ_MAX_CPUS]; /* the next CPU of the same core, in a ring */
const volatile u8 cpu_fast[WARMQ_MAX_CPUS]; /* it has a high capacity for its domain. Only if unlike_cpus. */
const volatile u32 domain_node[WARMQ_MAX_DOMAINS];
/* By domain: all of them, nearest first; see warmq_nearness(). */
const volatile u8 domain_near[WARMQ_MAX_DOMAINS][WARMQ_MAX_DOMAINS];

struct cpu_state cpus[WARMQ_MAX_CPUS];
struct domain_state domains[WARMQ_MAX_DOMAINS];
/*
 * A bit by domain: its `may_idle`. So whoever looks for an idle CPU under another cache sees in one line that there is none,
 * and else which domains to ask.
 */
struct idle_domains {
	u64 bits[WARMQ_MAX_DOMAINS / 64];
} __attribute__((aligned(64))) idle_domains;
struct place_state places[WARMQ_MAX_CPUS];
struct entity_state entities[WARMQ_MAX_ENTITIES];
struct group_state groups[WARMQ_MAX_GROUPS];
struct cgroup_state cgroups[MAX_CGROUPS];
u64 started_at;     /* ns */
struct overdue_wait overdue[KEPT_OVERDUE]; /* a ring of the last ones */
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
 * An index into an array of `size`, a power of two. The mask proves to the verifier that the index
 * is valid. The barrier keeps the compiler from removing the mask where it can prove the same.
 */
static __always_inline u32 within(u32 index, u32 size)
{
	barrier_var(index);
	return index & (size - 1);
}

/* ns from `then` to `now`. The clocks of CPUs differ, so `then` may lie in the future. */
static __always_inline u64 elapsed(u64 then, u64 now)
{
	return warmq_before(now, then) ? 0 : now - then;
}

/*
 * Adds, and orders that with the accesses before and after. Returns what it was before. (Where nobody
 * uses that, clang makes an instruction that orders nothing on some architectures.)
 */
static __always_inline u64 add_in_order(u64 *sum, u64 value)
{
	u64 before = __sync_fetch_and_add(sum, value);

	barrier_var(before);
	return before;
}

static __always_inline void add_bits_in_order(u64 *bits, u64 set)
{
	u64 before = __sync_fetch_and_or(bits, set);

	barrier_var(before);
}

static __always_inline void take_bits_in_order(u64 *bits, u64 cleared)
{
	u64 before = __sync_fetch_and_and(bits, ~cleared);

	barrier_var(before);
}

static __always_inline struct cpu_state *cpu_of(u32 cpu)
{
	return &cpus[within(cpu, WARMQ_MAX_CPUS)];
}

static __always_inline struct entity_state *entity_of(u32 entity)
{
	return &entities[within(entity, WARMQ_MAX_ENTITIES)];
}

static __always_inline struct domain_state *domain_of(u32 domain)
{
	return &domains[within(domain, WARMQ_MAX_DOMAINS)];
}

/* The sums of a domain. */
static __always_inline struct warmq_domain *time_of(u32 domain)
{
	return &entities[within(domain, WARMQ_MAX_DOMAINS)].domain;
}

static __always_inline struct place_state *place_of(u32 place)
{
	return &places[within(place, WARMQ_MAX_CPUS)];
}

static __always_inline struct group_state *group_of(u32 group)
{
	return &groups[within(group, WARMQ_MAX_GROUPS)];
}

static __always_inline u32 domain_of_cpu(u32 cpu)
{
	return cpu_domain[within(cpu, WARMQ_MAX_CPUS)] & (WARMQ_MAX_DOMAINS - 1);
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
	return entity >= WARMQ_GROUP_BASE && entity < WARMQ_MAX_ENTITIES;
}

/* The domain that is tried after `step` others for a CPU of `domain`, which comes first itself. */
static __always_inline u32 near_domain(u32 domain, u32 step)
{
	return domain_near[within(domain, WARMQ_MAX_DOMAINS)][within(step, WARMQ_MAX_DOMAINS)] & (WARMQ_MAX_DOMAINS - 1);
}

static __always_inline u32 node_of(u32 domain)
{
	return nr_nodes == 1 ? 0 : domain_node[within(domain, WARMQ_MAX_DOMAINS)];
}

static __always_inline enum warmq_reach reach_of(u32 domain, u32 other)
{
	if (domain == other)
		return WARMQ_SAME_CACHE;
	return node_of(domain) == node_of(other) ? WARMQ_SAME_NODE : WARMQ_OTHER_NODE;
}

/* The domain whose virtual time an entity's vruntime is in. */
static __always_inline u32 domain_of_entity(u32 entity)
{
	if (is_group(entity))
		return domain_of_place(group_of(entity)->home);
	return entity >= WARMQ_PINNED_BASE ? domain_of_cpu(entity) : entity & (WARMQ_MAX_DOMAINS - 1);
}

/* How many CPUs the members of an entity can have at the same time. */
static __always_inline u64 cpus_of_entity(u32 entity)
{
	if (is_group(entity) ? place_is_cpu : entity >= WARMQ_PINNED_BASE)
		return 1;
	return time_of(domain_of_entity(entity))->cpus;
}

static __always_inline u64 dsq_of(u32 entity)
{
	return DSQ_BASE + entity;
}

static __always_inline void count(enum counter counter)
{
	cpu_of(bpf_get_smp_processor_id())->counters[counter]++;
}

/* The same for a counter that the verifier does not know to be one. */
static __always_inline void count_which(enum counter counter)
{
	if (counter < NR_COUNTERS)
		count(counter);
}

static __always_inline void count_by(enum counter counter, u64 value)
{
	cpu_of(bpf_get_smp_processor_id())->counters[counter] += value;
}
