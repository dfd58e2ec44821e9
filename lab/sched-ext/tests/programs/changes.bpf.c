/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes down what it hears of changes of cgroups, and ends with that as its error. */
#include "scx.h"

volatile const u32 most = 16; /* callbacks that are written down */

char written[256];
u32 used, count;

static void letter(char one)
{
	if (used < sizeof(written) - 2)
		written[used++ & 255] = one;
}

static NOINLINE int note(char one, u64 number)
{
	static char format[] = "%s";
	u64 data[1] = { (u64)written };
	u64 by;

	if (count++)
		letter(' ');
	letter(one);
	for (by = 1000; by; by /= 10)
		if (number >= by || by == 1)
			letter('0' + number / by % 10);
	if (count == most)
		scx_bpf_error_bstr(format, data, sizeof(data));
	return 0;
}

CALLBACK(changes_cgroup_set_weight)
{
	return note('w', ctx[1]);
}

CALLBACK(changes_cgroup_set_idle)
{
	return note('i', ctx[1] & 1);
}

CALLBACK(changes_cgroup_set_bandwidth)
{
	return note('b', ctx[2] / 1000);
}

struct sched_ext_ops___changes {
	void (*cgroup_set_weight)(struct cgroup *cgroup, u32 weight);
	void (*cgroup_set_idle)(struct cgroup *cgroup, bool idle);
	void (*cgroup_set_bandwidth)(struct cgroup *cgroup, u64 period, u64 quota, u64 burst);
	char name[128];
};

SEC(".struct_ops.link") struct sched_ext_ops___changes changes_ops = {
	.cgroup_set_weight = (void *)changes_cgroup_set_weight,
	.cgroup_set_idle = (void *)changes_cgroup_set_idle,
	.cgroup_set_bandwidth = (void *)changes_cgroup_set_bandwidth,
	.name = "changes",
};
