//! CPUs whose tasks look at a spin lock of user space that is held.
//!
//! No event happens for a look in vain. A CPU is busy until the last look of its bout; a release
//! makes that end at the next look, and an interrupt ends it at once. So a task looks as soon as it
//! runs again.

use warmq_machine::Access;
use warmq_units::{CpuId, Duration, TaskId};

use crate::core::Core;
use crate::core::memory::Within;
use crate::words::{Look, Spinlock, Step};

/// A bout of looks is at most this long: what a busy sibling stretches is rounded, by a millionth
/// of a look each. No whole number of ms, as a look in vain sees nothing that happens at its time.
const LONGEST_BOUT: Duration = Duration::from_us(2_003);

impl Core {
    /// The task of `cpu`, which finds a lock held, looks at it again; the look after that is on the
    /// stack. Returns how long it computes until then.
    pub(crate) fn look_on(&mut self, cpu: CpuId, look: Look) -> Duration {
        let pause = Duration(look.pause.0.max(1));
        let bout = look.left.min((LONGEST_BOUT.0 / pause.0).max(1));
        let left = look.left - bout;
        self.sync.spinlocks[look.lock].looking.insert(cpu);
        let here = self.cpu(cpu);
        here.looks_at = Some(look.lock);
        here.stack.push(Step::Look(Look { left, bout, ..look }));
        pause * bout
    }

    /// The step in progress on `cpu` is over: if that was a bout of looks, so is the bout.
    #[inline]
    pub(crate) fn end_bout(&mut self, cpu: CpuId) {
        if let Some(lock) = self.cpu(cpu).looks_at.take() {
            self.sync.spinlocks[lock].looking.remove(&cpu);
        }
    }

    /// The bout of `cpu` is interrupted, `left` before its end: what is left of it stays on the
    /// stack.
    pub(crate) fn interrupt_bout(&mut self, cpu: CpuId, left: Duration) {
        self.end_bout(cpu);
        if let Some(Step::Look(look)) = self.cpu(cpu).stack.last_mut() {
            // A time that a busy sibling stretched is rounded.
            look.left += left.0.div_ceil(look.pause.0.max(1)).min(look.bout);
            look.bout = 0;
        }
    }

    /// `lock` is free: whoever looks at it sees that at its next look, which is no look that it is
    /// at already.
    pub(crate) fn seen_free(&mut self, lock: Spinlock) {
        let looking: Vec<CpuId> = self.sync.spinlocks[lock].looking.iter().copied().collect();
        for cpu in looking {
            let (now, here) = (self.now(), &self.cpus[cpu.index()]);
            let left = here.left(now);
            let Some(Step::Look(look)) = here.stack.last() else {
                continue;
            };
            let pause = self.stretched(cpu, look.pause).0.max(1);
            let after = left.0.saturating_sub(1) / pause;
            let next = now + Duration(left.0 - after * pause);
            if let Some(Step::Look(look)) = self.cpu(cpu).stack.last_mut() {
                let after = after.min(look.bout);
                look.left += after;
                look.bout -= after;
            }
            self.step_ends_at(cpu, next);
        }
    }

    /// The line of a lock is written on `cpu`; returns how long that takes.
    pub(crate) fn write_lock(&mut self, cpu: CpuId, lock: Spinlock) -> Duration {
        let (address, now) = (self.sync.spinlocks[lock].line, self.now());
        let access = Access::Write;
        let fetched = self
            .memory
            .access(cpu, address, access, now, Within::Elsewhere);
        fetched + self.times.lock_uncontended
    }

    /// `task` takes `lock` if it is free.
    pub(crate) fn take_if_free(&mut self, lock: Spinlock, task: TaskId) -> bool {
        let owner = &mut self.sync.spinlocks[lock].owner;
        let is_free = owner.is_none();
        owner.get_or_insert(task);
        is_free
    }
}
