//! What would be fair: how much of a CPU a task is due beside those that want it, too.
//!
//! On one CPU, of those that want it all the time a task of weight w is due w / sum of weights.
//! Whoever wants it for a part `a` of the time counts for that part of its weight:
//!
//! ```text
//!     share = w / (w + sum of the others' w_i * a_i)
//!
//!     a_i := (ran + waited) / time measured, on this CPU
//! ```
//!
//! Real-time and deadline tasks have no share: they are due what others of them leave. Those of
//! SCHED_IDLE are due at least what all others leave: beside who weighs 300 times as much and
//! seldom wants the CPU, the average above is far too low.
//!
//! Groups are entities of their own: a group has its weight, of which a CPU has the part that the
//! load of its runnable members there has of that of all (`calc_group_shares()`), and shares it
//! among them. So it is where the scheduler knows groups; of one of which that is not known a task
//! is taken to be due no more than it would be without. That is an estimate, off by some tenths;
//! rules ask for less than half of it.

use std::collections::BTreeMap;

use warmq_trace::{Header, Who};
use warmq_units::{CpuId, Duration, Instant};

use crate::watch::{Sums, Tally, Watcher};
use crate::weight;
use crate::words::{part, thousandths};

const ALL: u64 = 1_000;

/// What a group wants of a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Wants {
    /// Its members' weights, each times the thousandths of the time for which it wants the CPU.
    weights: u64,
    /// The thousandths of all members.
    time: u64,
}

/// What everybody wants of one CPU.
#[derive(Debug, Default)]
struct Demand {
    /// For how long it was recorded.
    period: Duration,
    groups: BTreeMap<u32, Wants>,
    flat: u64,
    /// What is left to fair tasks, in thousandths: the others are served before.
    left: u64,
    /// As `flat`, of those of SCHED_IDLE.
    flat_idle: u64,
    /// For how long others than those ran, in thousandths.
    busy: u64,
    tasks: u64,
}

/// What everybody wants of each CPU.
#[derive(Debug, Default)]
pub(crate) struct Dues {
    cpus: BTreeMap<CpuId, Demand>,
    /// By group, the weights as [`Wants`] has them, over all CPUs.
    everywhere: BTreeMap<u32, u64>,
    /// Whether the scheduler is known to share by groups.
    by_groups: bool,
    weights: BTreeMap<u32, u64>,
    /// By group, those above it.
    upwards: BTreeMap<u32, Vec<u32>>,
}

/// Whether the scheduler shares by all groups that a trace has: Linux' own, and the lab's models of
/// it.
pub(crate) fn shares_by_groups(header: &Header) -> bool {
    let name = header.scheduler.as_str();
    // Under its layer of affinity, a model of the lab shares as it does without.
    let name = name.strip_prefix("affinity-").unwrap_or(name);
    name == "kernel" || name == "cfs" || name.starts_with("eevdf")
}

impl Dues {
    pub fn of(watcher: &Watcher, sums: &Sums, time: (Instant, Instant)) -> Dues {
        let mut dues = Dues {
            by_groups: shares_by_groups(&watcher.header),
            ..Dues::default()
        };
        for (id, tally) in sums {
            let Some(task) = watcher.tasks.get(*id) else {
                continue;
            };
            let group = task.who.group;
            let upwards = || watcher.groups.upwards(group);
            dues.upwards.entry(group).or_insert_with(upwards);
            dues.count(&task.who, tally, |cpu| watcher.recorded(cpu, time));
        }
        let known: Vec<u32> = dues.upwards.values().flatten().copied().collect();
        for group in known {
            let of_group = weight::of_group(watcher.groups.get(group).weight);
            dues.weights.insert(group, of_group);
        }
        dues.sum_up(watcher);
        dues
    }

    /// Counts a task in its own group, and the time in those above.
    fn count(&mut self, who: &Who, tally: &Tally, recorded: impl Fn(CpuId) -> Duration) {
        let upwards = &self.upwards[&who.group];
        for place in &tally.places {
            let period = recorded(place.cpu);
            let demand = self.cpus.entry(place.cpu).or_default();
            demand.period = period;
            if place.weight == 0 {
                demand.left += thousandths(place.ran, period);
                continue;
            }
            let time = thousandths(place.ran + place.waited, period);
            let weights = place.weight * time;
            demand.flat += weights;
            match place.weight {
                weight::OF_IDLE => demand.flat_idle += weights,
                _ => demand.busy += thousandths(place.ran, period),
            }
            demand.tasks += time;
            demand.groups.entry(who.group).or_default().weights += weights;
            for group in upwards {
                demand.groups.entry(*group).or_default().time += time;
            }
        }
    }

    /// Counts groups in those that they are part of, the innermost first.
    fn sum_up(&mut self, watcher: &Watcher) {
        for demand in self.cpus.values_mut() {
            demand.left = ALL.saturating_sub(demand.left);
        }
        let all = self.weights.keys().copied();
        let mut all: Vec<u32> = all.filter(|group| *group != 0).collect();
        all.sort_by_key(|group| std::cmp::Reverse(watcher.groups.upwards(*group).len()));
        for group in all {
            let wants =
                |demand: &Demand| demand.groups.get(&group).map_or(0, |group| group.weights);
            let everywhere = self.cpus.values().map(wants).sum();
            self.everywhere.insert(group, everywhere);
            let parent = watcher.groups.get(group).parent;
            let mut cpus = std::mem::take(&mut self.cpus);
            for demand in cpus.values_mut() {
                let Some(time) = demand.groups.get(&group).map(|group| group.time.min(ALL)) else {
                    continue;
                };
                let weights = self.entity(demand, group) * time;
                demand.groups.entry(parent).or_default().weights += weights;
            }
            self.cpus = cpus;
        }
    }

    /// The part of a group's weight that a CPU has.
    fn entity(&self, demand: &Demand, group: u32) -> u64 {
        let here = demand.groups.get(&group).map_or(0, |group| group.weights);
        let everywhere = self.everywhere.get(&group).copied().unwrap_or(0).max(1);
        let weight = self.weights.get(&group).copied().unwrap_or(1);
        let part = u128::from(weight) * u128::from(here) / u128::from(everywhere);
        (part as u64).max(1)
    }

    /// The part of the weight of `group` that counts on `cpu`.
    pub fn weight_on(&self, cpu: CpuId, group: u32) -> u64 {
        let demand = self.cpus.get(&cpu);
        demand.map_or(0, |demand| self.entity(demand, group))
    }

    /// What those weigh who want `cpu`, by their groups and on average.
    pub fn load_on(&self, cpu: CpuId) -> u64 {
        let demand = self.cpus.get(&cpu);
        let of_root = demand.and_then(|demand| demand.groups.get(&0));
        of_root.map_or(0, |root| root.weights / ALL)
    }

    /// How many tasks want `cpu` on average, in thousandths.
    pub fn tasks_on(&self, cpu: CpuId) -> u64 {
        self.cpus.get(&cpu).map_or(0, |demand| demand.tasks)
    }

    /// What a task is due of the time for which it wanted CPUs by `wanted`; in all, `counted` was
    /// counted of it.
    pub fn due(&self, who: &Who, counted: &Tally, wanted: &Tally) -> Duration {
        let due = wanted.places.iter().map(|place| {
            let wanted = place.ran + place.waited;
            let Some(demand) = self.cpus.get(&place.cpu) else {
                return Duration::ZERO;
            };
            // All that is counted of it here, by the weights that it had meanwhile.
            let there = counted.places.iter().filter(|there| there.cpu == place.cpu);
            if place.weight == 0 {
                let own = there.filter(|there| there.weight == 0);
                let own = thousandths(own.map(|there| there.ran).sum(), demand.period);
                return part(wanted, (demand.left + own).min(ALL));
            }
            let counted = there
                .map(|there| there.weight * thousandths(there.ran + there.waited, demand.period));
            let own = (place.weight, counted.sum());
            let by_groups = self.in_groups(demand, who, own);
            let millionths = match self.by_groups {
                true => by_groups,
                // Where nobody heeds groups.
                false => by_groups.min(share(own, demand.flat)),
            };
            let left_over = match place.weight {
                weight::OF_IDLE => share(own, demand.flat_idle),
                _ => 0,
            };
            let not_busy = demand.left.saturating_sub(demand.busy);
            let least = u128::from(left_over) * u128::from(not_busy);
            let by_weight = u128::from(millionths) * u128::from(demand.left);
            let due = u128::from(wanted.0) * by_weight.max(least);
            Duration((due / 1_000_000 / u128::from(ALL)) as u64)
        });
        due.sum()
    }

    /// The share in millionths where each group has its weight, of who weighs as [`share`] has it.
    fn in_groups(&self, demand: &Demand, who: &Who, own: (u64, u64)) -> u64 {
        let all = |group: u32| demand.groups.get(&group).map_or(0, |group| group.weights);
        let mut millionths = share(own, all(who.group));
        let upwards = self.upwards.get(&who.group).map_or(&[][..], Vec::as_slice);
        let parents = upwards.iter().skip(1).copied().chain([0]);
        for (group, parent) in upwards.iter().zip(parents) {
            let time = demand
                .groups
                .get(group)
                .map_or(0, |group| group.time.min(ALL));
            let weight = self.entity(demand, *group);
            let of_group = share((weight, weight * time), all(parent));
            millionths = millionths * of_group / 1_000_000;
        }
        millionths
    }
}

/// In millionths what an entity of `weight` is due, for which `counted` is in `all`.
fn share((weight, counted): (u64, u64), all: u64) -> u64 {
    let others = all.saturating_sub(counted);
    let own = weight * ALL;
    (u128::from(own) * 1_000_000 / u128::from((own + others).max(1))) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_by_weight_and_by_how_long_others_want_the_cpu() {
        // Beside one of its own weight, all the time.
        let share = |weight, time, all| share((weight, weight * time), all);
        assert_eq!(share(1_024, 1_000, 2_048 * 1_000), 500_000);
        // Beside one that wants the CPU for a tenth of the time.
        assert_eq!(share(1_000, 1_000, 1_000 * 1_100), 909_090);
        // It sleeps half the time: it is due the same of the other half.
        assert_eq!(share(1_024, 500, 1_024 * 1_500), 500_000);
    }
}
