//! Loads of CPUs, which group of a domain is the busiest, and how much of its load to move
//! (`find_busiest_group()` of 2.6.24).
//!
//! A group has the capacity for one task, also if it has several CPUs: so the kernel builds it
//! where the CPUs of a group share a core or a cache (`init_sched_groups_power()`). It can
//! also balance to save power (`sched_mc_power_savings`, 0 unless set), which is not modelled.

use warmq_kernel::Context;
use warmq_machine::Access;
use warmq_units::CpuId;

use super::state::{CpuState, LOADS, State};
use super::weights::NICE_0;

impl CpuState {
    /// Brings the averages of the load up to date, at a tick (`update_cpu_load()`).
    pub(super) fn average_load(&mut self) {
        for (shift, average) in (0..LOADS).zip(&mut self.loads) {
            let scale = 1 << shift;
            // Rounded up when it grows, so that it gets there.
            let up = if self.load > *average { scale - 1 } else { 0 };
            *average = (*average * (scale - 1) + self.load + up) >> shift;
        }
    }

    fn average(&self, index: usize) -> u64 {
        match index {
            0 => self.load,
            index => self.loads[index - 1],
        }
    }

    /// A low guess at the load (`source_load()`).
    pub(super) fn source_load(&self, index: usize) -> u64 {
        self.average(index).min(self.load)
    }

    /// A high guess at the load (`target_load()`).
    pub(super) fn target_load(&self, index: usize) -> u64 {
        self.average(index).max(self.load)
    }
}

/// The load of a group of CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GroupLoad {
    /// By the averages that the level asks for.
    pub(super) load: u64,
    /// The sum of the weights of its tasks, and their number.
    pub(super) weighted: u64,
    pub(super) running: u64,
    /// One of its CPUs has more load than another by more than a nice 0 task.
    pub(super) uneven: bool,
}

/// How much load should move from the group `busiest` to the group `this`, the average of all
/// groups of the domain being `average`; `None` if it is balanced, as far as `imbalance_pct` goes.
///
/// All groups come to the average: no more is taken than `busiest` is above it, or `this` below.
/// Where that is less than a task, one task is moved if that makes the difference smaller, or if
/// more gets done.
pub(super) fn imbalance(
    this: &GroupLoad,
    busiest: &GroupLoad,
    average: u64,
    imbalance_pct: u64,
) -> Option<u64> {
    let (low, high) = (this.load, busiest.load);
    if low >= high || low >= average || 100 * high <= imbalance_pct * low {
        return None;
    }
    let mut a_task = busiest.weighted / busiest.running.max(1);
    if busiest.uneven {
        a_task = a_task.min(average);
    }
    if high <= a_task {
        return None;
    }
    let moved = match high < average {
        true => 0,
        false => (high - average).min(high - a_task).min(average - low),
    };
    if moved >= a_task {
        return Some(moved);
    }
    let (own_task, times) = match this.running {
        0 => (NICE_0, 2),
        running => {
            let own_task = this.weighted / running;
            (own_task, if a_task > own_task { 1 } else { 2 })
        }
    };
    if high - low + NICE_0 >= a_task * times {
        return Some(a_task);
    }
    // What gets done now, and what would if a task moved.
    let now = a_task.min(high) + own_task.min(low);
    let there = match high > a_task {
        true => a_task.min(high - a_task),
        false => 0,
    };
    let then = there + own_task.min(low + a_task.min(high));
    Some(if then > now { a_task } else { moved })
}

/// The busiest group of a domain, and how much load should be moved from it.
pub(super) struct Busiest {
    pub(super) group: usize,
    pub(super) load: u64,
}

/// What a look at a domain says.
pub(super) struct Survey {
    pub(super) busiest: Option<Busiest>,
    /// All CPUs of the domain are idle.
    pub(super) all_idle: bool,
    /// Another CPU of the own group balances at this level and above.
    pub(super) others_turn: bool,
}

impl State {
    /// Looks at the groups of a domain of `cpu`, except the CPUs `without`. `index` says which
    /// average counts; a newly idle CPU looks whoever's turn it is.
    pub(super) fn survey(
        &self,
        context: &mut Context<'_>,
        (cpu, domain): (CpuId, usize),
        (index, newly_idle): (usize, bool),
        without: &[CpuId],
    ) -> Survey {
        let domain = &self.cpu(cpu).domains[domain];
        let lines = domain.span.iter().map(|cpu| self.cpu(*cpu).line);
        context.touch_all(lines, Access::Read);
        let counts = |cpu: &CpuId| context.is_online(*cpu) && !without.contains(cpu);
        let mut survey = Survey {
            busiest: None,
            all_idle: domain
                .span
                .iter()
                .filter(|cpu| counts(cpu))
                .all(|cpu| self.cpu(*cpu).running == 0),
            others_turn: false,
        };
        let (mut groups, mut total) = (0, 0);
        let (mut this, mut busiest) = (GroupLoad::default(), None);
        for (number, group) in domain.groups.iter().enumerate() {
            let members: Vec<CpuId> = group.iter().copied().filter(counts).collect();
            let own = number == 0;
            if own && !newly_idle && self.balances_for(&members) != Some(cpu) {
                survey.others_turn = true;
                return survey;
            }
            if members.is_empty() {
                continue;
            }
            let load = self.load_of(&members, index, own);
            groups += 1;
            total += load.load;
            let most = busiest
                .as_ref()
                .map_or(0, |(_, most): &(usize, GroupLoad)| most.load);
            if own {
                this = load;
            } else if load.load > most && (load.running > 1 || load.uneven) {
                busiest = Some((number, load));
            }
        }
        survey.busiest = busiest.and_then(|(group, busiest)| {
            let pct = domain.level.imbalance_pct;
            let load = imbalance(&this, &busiest, total / groups, pct)?;
            Some(Busiest { group, load })
        });
        survey
    }

    /// The CPU of a group that balances for it: the first idle one, else the first.
    fn balances_for(&self, group: &[CpuId]) -> Option<CpuId> {
        let idle = group.iter().find(|cpu| self.cpu(**cpu).current.is_none());
        idle.or(group.first()).copied()
    }

    fn load_of(&self, group: &[CpuId], index: usize, own: bool) -> GroupLoad {
        let mut sum = GroupLoad::default();
        let (mut least, mut most) = (u64::MAX, 0);
        for cpu in group.iter().map(|cpu| self.cpu(*cpu)) {
            let load = match own {
                true => cpu.target_load(index),
                false => cpu.source_load(index),
            };
            least = least.min(load);
            most = most.max(load);
            sum.load += load;
            sum.weighted += cpu.load;
            sum.running += cpu.running;
        }
        sum.uneven = !own && most.saturating_sub(least) > NICE_0;
        sum
    }

    /// The busiest CPU of a group, if moving `load` from it makes sense (`find_busiest_queue()`).
    pub(super) fn busiest_cpu(
        &self,
        context: &Context<'_>,
        group: &[CpuId],
        load: u64,
        without: &[CpuId],
    ) -> Option<CpuId> {
        let mut busiest: Option<CpuId> = None;
        for cpu in group {
            let there = self.cpu(*cpu);
            let one_too_heavy = there.running == 1 && there.load > load;
            if !context.is_online(*cpu) || without.contains(cpu) || one_too_heavy {
                continue;
            }
            if there.load > busiest.map_or(0, |busiest| self.cpu(busiest).load) {
                busiest = Some(*cpu);
            }
        }
        busiest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks(weights: &[u64]) -> GroupLoad {
        let weighted = weights.iter().sum();
        GroupLoad {
            load: weighted,
            weighted,
            running: weights.len() as u64,
            uneven: false,
        }
    }

    fn moved(this: &[u64], busiest: &[u64]) -> Option<u64> {
        let (this, busiest) = (tasks(this), tasks(busiest));
        imbalance(&this, &busiest, (this.load + busiest.load) / 2, 125)
    }

    /// By hand, after find_busiest_group().
    #[test]
    fn how_much_load_moves() {
        let n = NICE_0;
        assert_eq!(moved(&[], &[n]), None, "nobody waits");
        assert_eq!(moved(&[], &[n, n]), Some(n));
        assert_eq!(moved(&[], &[n, n, n, n]), Some(2 * n));
        assert_eq!(moved(&[n], &[n, n, n]), Some(n));
        assert_eq!(moved(&[n, n], &[n, n]), None);
        assert_eq!(moved(&[n; 4], &[n; 5]), None, "within 25 %");
        assert_eq!(
            moved(&[88_761], &[n; 4]),
            None,
            "a heavy task is load enough"
        );
        // 2 against 1: one that moved would only turn it round, but a difference of one task and
        // the tolerance of one is enough to try.
        assert_eq!(moved(&[n], &[n, n]), Some(n));
    }

    #[test]
    fn averages_get_to_a_constant_load_from_below_and_from_above() {
        for (from, to) in [(0, 1_000), (1_000, 0), (7, 1_024)] {
            let mut averages = [from; LOADS];
            for _ in 0..200 {
                for (shift, average) in (0..LOADS).zip(&mut averages) {
                    let scale = 1 << shift;
                    let up = if to > *average { scale - 1 } else { 0 };
                    *average = (*average * (scale - 1) + to + up) >> shift;
                }
            }
            assert_eq!(averages, [to; LOADS]);
        }
    }
}
