/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes down the names of cgroups in an order, once so many are there, and ends with that as its error. */
#include "scx.h"

struct kernfs_node { u64 id; const char *name; } OF_KERNEL;
struct cgroup_subsys_state { struct cgroup *cgroup; } OF_KERNEL;
struct cgroup { struct cgroup_subsys_state self; struct kernfs_node *kn; } OF_KERNEL;
struct bpf_iter_css { u64 hidden[3]; };

KFUNC struct cgroup *bpf_cgroup_from_id(u64 id);
KFUNC void bpf_cgroup_release(struct cgroup *cgroup);
KFUNC int bpf_iter_css_new(struct bpf_iter_css *it, struct cgroup_subsys_state *start, u32 flags);
KFUNC struct cgroup_subsys_state *bpf_iter_css_next(struct bpf_iter_css *it);
KFUNC void bpf_iter_css_destroy(struct bpf_iter_css *it);

volatile const u32 order, most;
u32 groups;
char written[256];

SEC("struct_ops/groups_cgroup_init") int groups_cgroup_init(u64 *ctx)
{
	static char format[] = "%s";
	u64 data[1] = { (u64)written };
	struct cgroup *first = order == 4 ? (void *)ctx[0] : bpf_cgroup_from_id(1);
	struct cgroup_subsys_state *css;
	struct bpf_iter_css it;
	u32 used = 0;

	if (++groups < most || !first)
		return 0;
	if (bpf_iter_css_new(&it, &first->self, order))
		written[used++] = '!';
	while ((css = bpf_iter_css_next(&it))) {
		if (used > sizeof(written) - 16)
			break;
		written[used++] = '/';
		used += probe_read_str(written + used, 8, css->cgroup->kn->name) - 1;
	}
	bpf_iter_css_destroy(&it);
	scx_bpf_error_bstr(format, data, sizeof(data));
	return 0;
}

struct sched_ext_ops___groups {
	s32 (*cgroup_init)(struct cgroup *cgroup, void *args);
	char name[128];
};

SEC(".struct_ops.link") struct sched_ext_ops___groups groups_ops = {
	.cgroup_init = (void *)groups_cgroup_init,
	.name = "groups",
};
