//! Stopping and restarting the tick, and taking CPUs offline and online.

use warmq_units::CpuId;

use crate::core::{Event, NeedResched};
use crate::paths::System;

impl System {
    /// Takes `target` offline or online, as a write to `/sys/devices/system/cpu/cpuN/online` does.
    /// The caller has asked `Core::may_set_online`.
    pub(crate) fn set_online(&mut self, cpu: CpuId, target: CpuId, online: bool) {
        self.core.mark(target, online);
        if online {
            self.core.start_tick(target);
        } else {
            self.vacate(cpu, target);
        }
        self.core.cpu(target).need_resched = NeedResched::Now;
        if target != cpu {
            // As an event: `target` may be in the middle of a step, or not have begun its first.
            let (from, to) = (cpu, target);
            let now = self.core.now();
            self.core.schedule(now, Event::Reschedule { from, to });
        }
    }

    /// Has the scheduler move, on `cpu`, the tasks that wait for `target`, which went offline.
    fn vacate(&mut self, cpu: CpuId, target: CpuId) {
        self.core.move_softirqs(target);
        self.unthrottle_offline(cpu, target);
        for task in self.core.left_behind_by(target) {
            self.leave_forbidden_cpu(task);
            self.set_cpumask(cpu, task);
        }
        self.call(cpu, |scheduler, context| {
            scheduler.cpu_offline(context, target)
        });
    }
}
