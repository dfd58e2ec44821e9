/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only */
/* Memory nodes: which domains are tried first, and when work goes to another node. Included by decide.h. */
#ifndef WARMQ_DECIDE_NODE_H
#define WARMQ_DECIDE_NODE_H

/* How far a CPU or a domain is from another. */
enum warmq_reach {
	WARMQ_SAME_CACHE = 0, /* the same domain */
	WARMQ_SAME_NODE = 1,
	WARMQ_OTHER_NODE = 2,
};

/*
 * Who of all domains is tried before another by a CPU of `domain`: the one with the lesser number. `distance` is 0 for the
 * parts of one last-level cache, else that of their nodes (/sys/devices/system/node/nodeN/distance: 10 within a node). Of
 * those that are equally far, each CPU begins with the next behind its own, so that not all of them go to the first.
 */
WARMQ_INLINE u64 warmq_nearness(u32 domain, u32 other, u32 domains, u32 distance)
{
	return ((u64)distance << 32) | (other + domains - domain) % domains;
}

/*
 * Whether an idle CPU takes a task that waits at a place of another node. There all memory that the task has used so far is
 * remote, and only the page faults of the kernel's NUMA balancing bring it after the task, within seconds. At home a task that
 * waits is served within about a slice (4 ms), while no more tasks wait than there are CPUs. So it stays unless more than
 * that wait or, since slices may be longer and tasks heavier, a CPU has idled beside what waits for `lasted` ns.
 *
 * A task that may go waits no longer for that than `patience` and a round of the balance timer (10 ms), which looks.
 */
WARMQ_INLINE bool warmq_crosses_node(const struct warmq_policy *policy, u64 waiting, u64 cpus, u64 lasted)
{
	return waiting > cpus || (waiting && lasted >= policy->patience);
}

/*
 * Whether a new group gets a home on another node than that of the task which named it. Nobody knows where its data is:
 * if it has any yet, where the task is. So it goes only if the best home of that node has work for all its CPUs already
 * (weights: one task of nice 0 each), and is busier than the other by more than the policy allows.
 */
WARMQ_INLINE bool warmq_founds_far(const struct warmq_policy *policy, u64 near, u64 near_cpus, u64 far, u64 far_cpus)
{
	return near >= near_cpus * WARMQ_WEIGHT_NICE_0 && warmq_imbalanced(policy, near, near_cpus, far, far_cpus);
}

#endif /* WARMQ_DECIDE_NODE_H */
