//! Tasks and CPUs of unlike capacity: which CPU is large enough for a task, and which task runs on
//! one that is not (`util_fits_cpu()`, `select_idle_capacity()`, `update_misfit_status()`).

use std::cmp::Reverse;

use warmq_kernel::{Context, View};
use warmq_machine::Access;
use warmq_units::{CpuId, TaskId};

use super::domains::{Domain, Unlike};
use super::load::CAPACITY;
use super::state::State;

/// What is noticeably more than 1024.
const NOTICEABLY: u64 = 1_078;

/// Whether a capacity is greater than another by more than 5 % (`capacity_greater()`).
pub(super) fn is_greater(one: u64, other: u64) -> bool {
    one * CAPACITY > other * NOTICEABLY
}

/// Between which capacities a task asks to be run (`uclamp_eff_value()`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clamp {
    pub(super) least: u64,
    pub(super) most: u64,
}

impl Default for Clamp {
    fn default() -> Clamp {
        Clamp {
            least: 0,
            most: CAPACITY,
        }
    }
}

/// What a task needs of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Demand {
    /// How much it uses, or is expected to, in 1024ths of the fastest CPU.
    pub(super) util: u64,
    pub(super) clamp: Clamp,
}

/// How large a CPU is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) whole: u64,
    /// What real-time tasks leave of it.
    pub(super) left: u64,
}

/// Whether a CPU is large enough for a task, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    No,
    /// But for what the task asks for at least.
    ButForLeast,
    Yes,
}

impl Demand {
    /// `util_fits_cpu()`: a task uses less than 80 % of what is left of the CPU, or asks for no
    /// more than there is; and it asks for no more at least, unless it uses more anyway. Nothing is
    /// held back on the largest CPU.
    pub(super) fn fits(self, size: Size) -> Fit {
        let Demand { util, clamp } = self;
        let has_room = util * 1_280 < size.left * 1_024;
        let unbounded = size.whole == CAPACITY && clamp.most == CAPACITY;
        if !has_room && (unbounded || clamp.most > size.whole) {
            return Fit::No;
        }
        let least = clamp.least.min(clamp.most);
        match util < least && least > size.whole {
            true => Fit::ButForLeast,
            false => Fit::Yes,
        }
    }
}

/// How good an idle CPU is that does not fit in all, the best first; of equals the larger one.
type Rank = (u8, Reverse<u64>);

/// The rank of a CPU on a core that is idle, or on which others run; the size counts that the task
/// would have (`ASYM_IDLE_*`).
fn rank(fit: Fit, on_idle_core: bool, size: Size) -> Rank {
    let better = match (on_idle_core, fit) {
        (true, Fit::Yes) => 0,
        (true, Fit::ButForLeast) => 1,
        (true, Fit::No) => 2,
        (false, Fit::Yes) => 3,
        (false, Fit::ButForLeast) => 4,
        (false, Fit::No) => 5,
    };
    let counts = match fit {
        Fit::ButForLeast => size.whole,
        Fit::Yes | Fit::No => size.left,
    };
    (better, Reverse(counts))
}

impl State {
    pub(super) fn size(&self, cpu: CpuId) -> Size {
        let there = self.cpu(cpu);
        Size {
            whole: there.whole,
            left: there.capacity,
        }
    }

    fn demand(&self, task: TaskId) -> Demand {
        Demand {
            util: self.util_of(self.entity_of(task)),
            clamp: self.task(task).clamp,
        }
    }

    /// Whether `cpu` is large enough for `task` in all (`task_fits_cpu()`).
    pub(super) fn fits(&self, task: TaskId, cpu: CpuId) -> bool {
        self.demand(task).fits(self.size(cpu)) == Fit::Yes
    }

    /// Whether a woken task may go to `cpu`, which idles, at once: where CPUs are of unlike
    /// capacity, if it fits (`asym_fits_cpu()`); from 7.2 on, if its core idles, too.
    pub(super) fn suits(&self, task: TaskId, cpu: CpuId) -> bool {
        let core_counts = self.rules.unlike_cores;
        !self.unlike || (!core_counts || self.siblings_idle(cpu)) && self.fits(task, cpu)
    }

    /// The smallest domain of `cpu` whose CPUs have all capacities that there are
    /// (`sd_asym_cpucapacity`).
    pub(super) fn unlike_domain(&self, cpu: CpuId) -> Option<&Domain> {
        let mut domains = self.cpu(cpu).domains.iter();
        domains.find(|domain| domain.capacities == Unlike::All)
    }

    /// The idle CPU of `domain` on which `task` fits, the first from `target` on; or else the
    /// largest (`select_idle_capacity()`). From 7.2 on idle cores come first, and not all CPUs are
    /// looked at.
    pub(super) fn idle_of_unlike(
        &self,
        context: &mut Context<'_>,
        task: TaskId,
        (domain, target): (&Domain, CpuId),
    ) -> Option<CpuId> {
        let demand = self.demand(task);
        let span = &domain.span;
        let prefers_cores = self.rules.unlike_cores
            && !self.threads(target).is_empty()
            && span.iter().any(|cpu| self.has_idle_core(*cpu));
        let most = match self.rules.unlike_cores && self.rules.sis_util && !prefers_cores {
            true => self.cpu(span[0]).scanned,
            false => usize::MAX,
        };
        let at = span.iter().position(|cpu| *cpu == target).unwrap_or(0);
        let usable: Vec<CpuId> = span[at..]
            .iter()
            .chain(&span[..at])
            .copied()
            .filter(|cpu| context.task(task).may_run_on(*cpu))
            .take(most)
            .collect();
        let mut best: Option<(Rank, CpuId)> = None;
        for cpu in usable {
            context.touch(self.cpu(cpu).line, Access::Read);
            if !self.is_as_good_as_idle(cpu) {
                continue;
            }
            let on_idle_core = !prefers_cores || self.siblings_idle(cpu);
            let fit = demand.fits(self.size(cpu));
            if fit == Fit::Yes && on_idle_core {
                return Some(cpu);
            }
            let rank = rank(fit, on_idle_core, self.size(cpu));
            if best.is_none_or(|(known, _)| rank < known) {
                best = Some((rank, cpu));
            }
        }
        best.map(|(_, cpu)| cpu)
    }

    /// Notes whether `task`, which runs on `cpu`, needs a larger one that it may have
    /// (`update_misfit_status()`).
    pub(super) fn note_misfit(&mut self, context: &Context<'_>, cpu: CpuId, task: TaskId) {
        if !self.unlike {
            return;
        }
        let view = context.task(task);
        let bound = view.allowed().is_some_and(|cpus| cpus.len() == 1);
        let is_on_largest = self.cpu(cpu).whole == self.largest_allowed(view);
        self.cpu_mut(cpu).misfit = match bound || is_on_largest || self.fits(task, cpu) {
            true => 0,
            false => self.load_of(task).max(1),
        };
    }

    /// The same, if it is a fair task: who runs above it leaves what was known.
    pub(super) fn note_misfit_of_fair(&mut self, context: &Context<'_>, cpu: CpuId, task: TaskId) {
        if !self.task(task).class.is_urgent() {
            self.note_misfit(context, cpu, task);
        }
    }

    /// The capacity of the largest CPU on which a task may run (`max_allowed_capacity`).
    fn largest_allowed(&self, view: View<'_>) -> u64 {
        let cpus = (0..self.cpus.len() as u16).map(CpuId);
        let allowed = cpus.filter(|cpu| view.may_run_on(*cpu));
        allowed.map(|cpu| self.cpu(cpu).whole).max().unwrap_or(0)
    }

    /// The averages of a task that sleeps are brought up to date, as they count where it goes
    /// (`sync_entity_load_avg()`).
    pub(super) fn refresh_demand(&mut self, task: TaskId) {
        let entity = self.entity_of(task);
        if self.unlike && self.entities[entity].attached {
            self.age(entity);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(whole: u64, left: u64) -> Size {
        Size { whole, left }
    }

    #[test]
    fn which_tasks_fit_which_cpus() {
        use Fit::{ButForLeast, No, Yes};
        let (little, big) = (size(446, 446), size(1_024, 1_024));
        for (case, util, (least, most), there, expected) in [
            ("less than 80 % of it", 356, (0, 1_024), little, Yes),
            ("80 % of it", 357, (0, 1_024), little, No),
            ("80 % of what is left", 200, (0, 1_024), size(446, 250), No),
            ("held back to it", 900, (0, 446), little, Yes),
            ("held back to more", 900, (0, 447), little, No),
            ("held back to the largest", 900, (0, 1_024), big, No),
            ("held back below the largest", 900, (0, 1_000), big, Yes),
            (
                "asks for more at least",
                100,
                (447, 1_024),
                little,
                ButForLeast,
            ),
            ("asks for it at least", 100, (446, 1_024), little, Yes),
            (
                "asks for it beside a real-time task",
                100,
                (446, 1_024),
                size(446, 300),
                Yes,
            ),
            ("uses more than it asks for", 500, (447, 1_024), little, No),
            (
                "asks for more than it may have",
                100,
                (900, 400),
                little,
                Yes,
            ),
        ] {
            let clamp = Clamp { least, most };
            assert_eq!(Demand { util, clamp }.fits(there), expected, "{case}");
        }
    }

    #[test]
    fn five_percent_more_is_not_noticed() {
        assert!(is_greater(1_024, 972) && !is_greater(1_024, 973));
        assert!(!is_greater(446, 446));
    }

    /// An idle core goes before a larger thread; then who fits better; then the size.
    #[test]
    fn of_idle_cpus_that_do_not_fit_in_all_the_best_is_taken() {
        let (large, small) = (size(1_024, 800), size(512, 512));
        let ranks = [
            rank(Fit::ButForLeast, true, large),
            rank(Fit::ButForLeast, true, small),
            rank(Fit::No, true, large),
            rank(Fit::No, true, small),
            rank(Fit::Yes, false, large),
            rank(Fit::ButForLeast, false, small),
            rank(Fit::No, false, large),
        ];
        assert!(ranks.is_sorted_by(|one, next| one < next), "{ranks:?}");
    }
}
