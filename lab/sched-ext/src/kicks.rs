//! Kicks: a CPU is asked to pick again, and `SCX_KICK_WAIT` waits for it.
//!
//! A CPU that kicks with `SCX_KICK_WAIT` one that runs a task of sched_ext notes how often that one
//! has switched by then, and waits busily until it has once more: it picks, if only the same task,
//! or its task is put down.
//!
//! ```text
//!     6.18    in the interrupt that kicks, so that no other interrupt comes in
//!     7.3     after its own next pick, which the kick asks for, with interrupts on
//! ```
//!
//! Two CPUs of 6.18 that wait for each other do so for ever, and the kernel hangs: that ejects the
//! program here. In 7.3 a CPU that waits counts on meanwhile, so that nobody waits for it.
//!
//! (Read in 7.3, and in the machine code of 6.18.15: `kick_cpus_irq_workfn()`, `pick_task_scx()`,
//! `put_prev_task_scx()`.)

use warmq_bpf::KernelTable;
use warmq_kernel::BusyWait;
use warmq_units::CpuId;

use crate::state::{Here, State};
use crate::words::kick as flag;

/// How a kernel waits after `SCX_KICK_WAIT`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum KickWait {
    /// In the interrupt that kicks (6.18).
    InInterrupt,
    /// After the next pick of the CPU that kicks (7.3).
    #[default]
    AfterPick,
}

impl KickWait {
    /// How `kernel` does.
    pub(crate) fn of(kernel: &KernelTable) -> KickWait {
        match kernel.field("scx_rq", "kick_sync_pending") {
            Some(_) => KickWait::AfterPick,
            None => KickWait::InInterrupt,
        }
    }
}

/// What a CPU waits for, and what others wait for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wait {
    /// How often it has switched (`kick_sync`, `pnt_seq` in 6.18).
    switches: u64,
    /// CPUs that it waits for, and their numbers when it kicked them (`cpus_to_sync`).
    of: Vec<(CpuId, u64)>,
    /// It waits after its next pick (`kick_sync_pending`).
    is_due: bool,
    /// It waits now.
    waits: bool,
}

/// Who runs on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Runs {
    Nobody,
    /// A task of sched_ext.
    Own,
    Other,
}

/// What a kick does (`kick_one_cpu()`, `kick_one_cpu_if_idle()`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Kick {
    /// The slice of who runs there ends.
    ends_slice: bool,
    /// The CPU picks again.
    target: bool,
    /// The CPU that kicks waits for it.
    waits: bool,
}

impl Kick {
    /// Who runs a task of a higher class is left alone, and asks the program after that.
    fn of(flags: u64, runs: Runs, online: bool, own: bool) -> Kick {
        let idle = flags & flag::IDLE != 0;
        let skipped = runs == Runs::Other || idle && runs != Runs::Nobody;
        if skipped || !(online || own) {
            return Kick::default();
        }
        Kick {
            ends_slice: flags & flag::PREEMPT != 0 && runs == Runs::Own,
            target: true,
            waits: flags & flag::WAIT != 0 && runs == Runs::Own && !own,
        }
    }
}

impl State {
    fn runs_on(&self, cpu: CpuId) -> Runs {
        match (self.cpu(cpu).current, self.runs(cpu)) {
            (Some(_), _) => Runs::Own,
            (None, Some(_)) => Runs::Other,
            (None, None) => Runs::Nobody,
        }
    }

    fn wait(&mut self, cpu: CpuId) -> &mut Wait {
        &mut self.cpu_mut(cpu).wait
    }

    /// Whether `cpu` has not switched yet since it was kicked, and does not wait itself where that
    /// counts as a switch.
    fn is_awaited(&self, (cpu, switches): (CpuId, u64)) -> bool {
        let there = &self.cpu(cpu).wait;
        let counts_on = there.waits && self.kick_wait == KickWait::AfterPick;
        there.switches == switches && !counts_on
    }

    /// CPUs that `cpu` waits for before it does anything else.
    pub(crate) fn awaited_now(&self, cpu: CpuId) -> Vec<CpuId> {
        match self.cpu(cpu).wait.is_due {
            true => Vec::new(),
            false => self.awaited_by(cpu),
        }
    }

    /// CPUs that `cpu` has kicked and waits for, now or after its next pick.
    fn awaited_by(&self, cpu: CpuId) -> Vec<CpuId> {
        let of = self.cpu(cpu).wait.of.iter();
        let of = of.filter(|one| self.is_awaited(**one));
        of.map(|(cpu, _)| *cpu).collect()
    }

    /// Whether CPUs that `cpu` waits for wait for it, by however many others.
    fn waits_for_itself(&self, cpu: CpuId) -> bool {
        let mut seen = self.awaited_by(cpu);
        let mut next = 0;
        while let Some(other) = seen.get(next).copied() {
            let more = self.awaited_by(other).into_iter();
            let new: Vec<CpuId> = more.filter(|cpu| !seen.contains(cpu)).collect();
            seen.extend(new);
            next += 1;
        }
        seen.contains(&cpu)
    }
}

impl Here<'_, '_> {
    /// Sends what the callbacks have kicked (`kick_cpus_irq_workfn()`).
    pub(crate) fn send_kicks(&mut self) {
        let this = self.context.cpu();
        for (cpu, flags) in std::mem::take(&mut self.state.own.kicks) {
            // An interrupt does it once this CPU has switched (`kick_cpus_irq_workfn()`).
            let (runs, online) = (self.state.runs_on(cpu), self.context.is_online(cpu));
            let kick = Kick::of(flags, runs, online, cpu == this);
            if kick.ends_slice {
                self.end_slice(cpu);
            }
            if kick.target {
                self.context.reschedule(cpu);
            }
            if kick.waits {
                self.wait_for(cpu);
            }
        }
    }

    /// This CPU is to wait for `cpu`, which it has kicked.
    fn wait_for(&mut self, cpu: CpuId) {
        let this = self.context.cpu();
        let switches = self.state.cpu(cpu).wait.switches;
        let wait = self.state.wait(this);
        wait.of.retain(|(other, _)| *other != cpu);
        wait.of.push((cpu, switches));
        if !self.state.waiting.contains(&this) {
            self.state.waiting.push(this);
        }
        match self.state.kick_wait {
            KickWait::InInterrupt => self.context.wait_busily(BusyWait::InterruptsOff),
            KickWait::AfterPick => {
                self.state.wait(this).is_due = true;
                self.context.reschedule(this);
            }
        }
    }

    /// This CPU looks for a task of sched_ext: it waits for others after that, if that is due.
    pub(crate) fn begin_pick(&mut self, cpu: CpuId) {
        self.count_switch(cpu);
        if std::mem::take(&mut self.state.wait(cpu).is_due) {
            self.context.wait_busily(BusyWait::InterruptsOn);
        }
    }

    /// `cpu` picks, or its task of sched_ext is put down: nobody waits for it any longer.
    pub(crate) fn count_switch(&mut self, cpu: CpuId) {
        self.state.wait(cpu).switches += 1;
        self.look_again(cpu);
    }

    /// CPUs that wait for `cpu` look whether they still have to.
    fn look_again(&mut self, cpu: CpuId) {
        for other in &self.state.waiting {
            let of = &self.state.cpu(*other).wait.of;
            if of.iter().any(|(awaited, _)| *awaited == cpu) {
                self.context.looks_again(*other);
            }
        }
    }

    /// Whether this CPU goes on waiting for others (`kick_sync_wait_bal_cb()`).
    pub(crate) fn keeps_waiting(&mut self, cpu: CpuId) -> bool {
        let waits = !self.state.awaited_by(cpu).is_empty();
        let wait = self.state.wait(cpu);
        wait.waits = waits;
        if !waits {
            wait.of.clear();
            self.state.waiting.retain(|other| *other != cpu);
        } else if self.state.waits_for_itself(cpu) {
            self.eject(format!(
                "{cpu} and others that it has kicked with SCX_KICK_WAIT wait for each other with \
                 interrupts off: this kernel hangs"
            ));
        }
        if waits && self.state.kick_wait == KickWait::AfterPick {
            self.look_again(cpu);
        }
        waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kicks_are_as_in_the_kernel() {
        let kick = |ends_slice, target, waits| Kick {
            ends_slice,
            target,
            waits,
        };
        let (yes, no) = (true, false);
        let (idle, runs, other) = (Runs::Nobody, Runs::Own, Runs::Other);
        let table = [
            // flags, who runs there, online, own
            ((0, idle, yes, no), kick(no, yes, no)),
            ((0, runs, yes, no), kick(no, yes, no)),
            ((flag::IDLE, idle, yes, no), kick(no, yes, no)),
            ((flag::IDLE, runs, yes, no), kick(no, no, no)),
            ((flag::IDLE, other, yes, no), kick(no, no, no)),
            ((flag::PREEMPT, runs, yes, no), kick(yes, yes, no)),
            ((flag::PREEMPT, other, yes, no), kick(no, no, no)),
            ((flag::WAIT, other, yes, no), kick(no, no, no)),
            ((flag::WAIT, idle, yes, no), kick(no, yes, no)),
            ((flag::PREEMPT, idle, yes, no), kick(no, yes, no)),
            ((flag::WAIT, runs, yes, no), kick(no, yes, yes)),
            ((flag::WAIT, runs, yes, yes), kick(no, yes, no)),
            (
                (flag::PREEMPT | flag::WAIT, runs, yes, no),
                kick(yes, yes, yes),
            ),
            ((flag::WAIT, runs, no, no), kick(no, no, no)),
            ((flag::PREEMPT, runs, no, no), kick(no, no, no)),
            ((0, idle, no, yes), kick(no, yes, no)),
        ];
        for ((flags, runs, online, own), expected) in table {
            let found = Kick::of(flags, runs, online, own);
            assert_eq!(found, expected, "{flags} {runs:?} {online} {own}");
        }
    }
}
