/* SPDX-License-Identifier: GPL-2.0-only */
/* What the kernel's dump of tasks and CPUs says of us, when it throws a scheduler out or somebody presses SysRq-D. */
#pragma once

void BPF_STRUCT_OPS(warmq_dump, struct scx_dump_ctx *dump)
{
	scx_bpf_dump("groups_used %u  quotas %u  throttled %llu  releases %llu  balance_rounds %llu", groups_used, nr_quotas,
		     nr_throttled, releases, balance_rounds);
}

void BPF_STRUCT_OPS(warmq_dump_cpu, struct scx_dump_ctx *dump, s32 cpu, bool idle)
{
	struct cpu_state *c = cpu_of(cpu);
	u32 domain = domain_of_cpu(cpu);

	if (idle && c->idle && !c->found)
		return;
	scx_bpf_dump("runs %u  idle %u  found %u  batch of entity %u\n", c->runs, c->idle, c->found, c->batch_entity);
	scx_bpf_dump("queued: %u for it only, %u in domain %u of weight %llu, CPUs of which may idle: %llu",
		     entity_of(WARMQ_PINNED_BASE + cpu)->queued, entity_of(domain)->queued, domain,
		     time_of(domain)->weight, domain_of(domain)->may_idle);
}

void BPF_STRUCT_OPS(warmq_dump_task, struct scx_dump_ctx *dump, struct task_struct *p)
{
	struct task_state *t = task_of(p);

	if (!t)
		return;
	scx_bpf_dump("entity %u  weight %u  queued in %u  found by %u  group %u  cgroup %u\n", t->entity, t->weight,
		     (u32)t->queued_in, t->found_by, group_number(t), t->cgroup);
	scx_bpf_dump("lag %lld ns  throttled %u  waits since %llu  stoppable %u", lag_of(t), t->throttled, t->waits_since, t->stoppable);
}
