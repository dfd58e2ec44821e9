/* SPDX-License-Identifier: GPL-2.0-only */
/* Quotas of cgroups. */
#pragma once

/* us in each period of as many us; ~0: no quota. It may keep `burst` us. */
void native_set_quota(u32 number, u64 quota, u64 period, u64 burst, u64 now)
{
	at(model.cpu, now);
	warmq_cgroup_set_bandwidth(&cgroups_of_model[number], period, quota, burst);
}

/* The timer at which periods begin. */
void native_quota_timer(u32 here, u64 now)
{
	at(here, now);
	model.in_interrupt = true;
	begin_periods(NULL, NULL, NULL);
	ask_kicked();
}
