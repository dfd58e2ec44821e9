//! The statistics of a running scheduler as one value, which is printed as JSON, and which the
//! monitor compares with the one before.

mod interval;
mod print;
#[cfg(test)]
pub mod sample;
pub mod served;
#[cfg(test)]
mod tests;
mod waits;

use std::ffi::OsStr;
use std::num::NonZeroU64;
use std::os::unix::ffi::OsStrExt;

use serde::Serialize;
use warmq_decide::WEIGHT_NICE_0;
use warmq_hint::{abi, unpack};
use warmq_units::printable;

pub use interval::{Interval, Look};
pub use print::print;
pub use waits::Waits;

use crate::bpf_skel::types::{bss, overdue_wait, rodata};
use crate::counters::Counters;
use crate::options::{GroupBy, Place, Scope};
use crate::state::State;

/// All of it, at one time.
#[derive(Clone, Debug, Serialize)]
pub struct Statistics {
    /// When the scheduler was started, in ns of the kernel's clock.
    pub started_at_ns: u64,
    /// What it was started with.
    pub settings: Settings,
    /// Its counters since then.
    pub counters: Counters,
    /// How long tasks waited for a CPU, since then.
    pub waits: Waits,
    /// The cache domains.
    pub domains: Vec<Domain>,
    /// Where groups live.
    pub places: Vec<Home>,
    /// The CPUs that are online.
    pub cpus: Vec<Cpu>,
    /// The groups that have a fragment, with or without members.
    pub groups: Vec<Group>,
    /// The last waits that were over their bound, the latest first.
    pub overdue: Vec<Overdue>,
}

/// What it was started with, and the weight of a task at nice 0.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs, reason = "they are the options of the same names")]
pub struct Settings {
    pub place: &'static str,
    pub slice_ns: u64,
    pub slice_min_ns: u64,
    pub period_ns: u64,
    pub wakeup_lag_max_ns: u64,
    pub lag_max_ns: u64,
    pub alpha_ns: u64,
    pub preempt_interval_ns: u64,
    pub min_sleep_ns: u64,
    pub batch_budget_ns: u64,
    pub imbalance_percent: u64,
    pub patience_ns: u64,
    pub balance_interval_ns: u64,
    pub preempts: bool,
    pub keeps_groups: bool,
    pub scope: &'static str,
    pub groups: u32,
    pub groups_per_process: u32,
    pub groups_per_user: u32,
    pub infer: bool,
    pub group_by: Option<&'static str>,
    pub infer_size: u32,
    pub weight_nice_0: u64,
}

/// CPUs that share a last-level cache.
#[derive(Clone, Debug, Serialize)]
pub struct Domain {
    /// Its number.
    pub domain: usize,
    /// Its CPUs.
    pub cpus: Vec<usize>,
    /// Of everything runnable in it.
    pub weight: u64,
    /// Its runnable tasks.
    pub runnable: u64,
    /// Waiting tasks without a group.
    pub queued: u64,
    /// V, the weighted mean of all vruntimes in it.
    pub avg_vruntime_ns: u64,
}

/// A place: where groups live.
#[derive(Clone, Debug, Serialize)]
pub struct Home {
    /// Its number.
    pub place: usize,
    /// The domain that it is, or that it is in.
    pub domain: usize,
    /// Its CPUs.
    pub cpus: Vec<usize>,
    /// Tasks that wait for it: those of its groups, those that may run on one of its CPUs only,
    /// and, if it is a domain, those without a group.
    pub queued: u64,
    /// The runnable weight: its groups, and its part of the other tasks.
    pub weight: u64,
    /// Of the groups that live here.
    pub managed: u64,
    /// Groups that live here and have members.
    pub groups: usize,
}

/// A CPU.
#[derive(Clone, Debug, Serialize)]
pub struct Cpu {
    /// Its number.
    pub cpu: usize,
    /// Its domain.
    pub domain: usize,
    /// Its place.
    pub place: usize,
    /// Tasks that wait and may run on this CPU only.
    pub queued: u64,
}

warmq_units::named! {
    /// Why tasks are in a group, as `enum origin` of state.bpf.h numbers it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Origin {
        /// Their program or an administrator named its data.
        Named = "named",
        /// They wake each other (--infer).
        Inferred = "inferred",
        /// They share their memory (--group-by mm).
        Memory = "memory",
        /// They are in one cgroup.
        Cgroup = "cgroup",
        /// They are of one process.
        Process = "process",
    }
}

impl Origin {
    fn of(number: u32) -> Origin {
        let known = Origin::ALL.get(number as usize);
        known.copied().unwrap_or(Origin::Named)
    }
}

impl From<GroupBy> for Origin {
    fn from(by: GroupBy) -> Origin {
        match by {
            GroupBy::Mm => Origin::Memory,
            GroupBy::Cgroup => Origin::Cgroup,
            GroupBy::Tgid => Origin::Process,
        }
    }
}

/// The tasks of a fragment.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// Its number in the scheduler's table.
    pub slot: usize,
    /// The user it belongs to; none: all users.
    pub uid: Option<u32>,
    /// The user among whose groups it counts: of users of a user namespace the one who made that;
    /// none: nobody.
    pub payer: Option<u32>,
    /// The process it belongs to; none: all processes.
    pub tgid: Option<u32>,
    /// The app that was named; none in a group that nobody named.
    pub app: Option<u32>,
    /// The fragment that was named; none in a group that nobody named.
    pub fragment: Option<u32>,
    /// Why its tasks are together.
    pub origin: Origin,
    /// The place where it lives.
    pub home: u32,
    /// Tasks that named it, asleep or not.
    pub members: u64,
    /// Those that run or wait.
    pub runnable: u64,
    /// Those that run.
    pub running: u64,
    /// Of its runnable members.
    pub weight: u64,
    /// CPU time at home.
    pub ran_home_ns: u64,
    /// CPU time elsewhere.
    pub ran_away_ns: u64,
    /// How often a CPU began a batch of it.
    pub batches: u64,
    /// How many times its tasks ran in those.
    pub runs: u64,
    /// How often it got a new home.
    pub moves: u64,
    /// How often one of its tasks was taken by another place.
    pub splits: u64,
    /// How long its tasks waited for a CPU.
    pub waits: Waits,
    /// It has had a member that may not run everywhere, so it does not move.
    pub narrow: bool,
}

/// A task that waited for a CPU longer than its bound.
#[derive(Clone, Debug, Serialize)]
pub struct Overdue {
    /// When it got one, in ns of the kernel's clock.
    pub at_ns: u64,
    /// How long it waited.
    pub waited_ns: u64,
    /// The bound: how long it should have waited at most.
    pub promised_ns: u64,
    /// Its thread id.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Where it got a CPU.
    pub cpu: u32,
    /// How many CPUs it may run on.
    pub cpus_allowed: u32,
    /// The queue in which it waited.
    pub queue: Queue,
    /// Its weight.
    pub weight: u64,
    /// The runnable weight of its domain that the bound was computed for.
    pub domain_weight: u64,
}

/// What a CPU chooses between: state.bpf.h calls it an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Queue {
    /// The tasks of this domain that belong to no group.
    Domain(u32),
    /// The tasks that may run on this CPU only.
    Cpu(u32),
    /// The group in this slot.
    Group(u32),
}

impl Statistics {
    /// The statistics of a copy of the scheduler's state.
    pub fn of(copy: &State) -> Statistics {
        let view = View::of(copy);
        let state = view.state;
        let cpus: Vec<Cpu> = (0..view.cpu_ids())
            .filter_map(|cpu| view.cpu(cpu))
            .collect();
        let groups: Vec<Group> = (1..state.groups.len())
            .filter_map(|slot| view.group(slot))
            .collect();
        let domains = (0..view.domain_count())
            .map(|domain| view.domain(domain, &cpus))
            .collect();
        let places = view.place_numbers(&cpus).into_iter();
        Statistics {
            started_at_ns: state.started_at,
            settings: view.settings(),
            counters: Counters::sum(
                state.cpus[..view.cpu_ids()]
                    .iter()
                    .map(|cpu| &cpu.counters[..]),
            ),
            waits: Waits::sum(
                state.cpus[..view.cpu_ids()]
                    .iter()
                    .map(|cpu| &cpu.waits[..]),
            ),
            domains,
            places: places
                .map(|place| view.place(place, &cpus, &groups))
                .collect(),
            cpus,
            groups,
            overdue: view.overdue(),
        }
    }
}

/// A copy, and access to its parts. Its numbers are not trusted, because others might replace the
/// map that they come from.
#[derive(Clone, Copy)]
struct View<'a> {
    settings: &'a rodata,
    state: &'a bss,
}

impl<'a> View<'a> {
    fn of(copy: &'a State) -> View<'a> {
        View {
            settings: &copy.settings,
            state: &copy.state,
        }
    }

    fn cpu_ids(self) -> usize {
        (self.settings.nr_cpus as usize).min(abi::MAX_CPUS as usize)
    }

    fn domain_count(self) -> usize {
        (self.settings.nr_domains as usize).min(abi::MAX_DOMAINS as usize)
    }

    /// Of the CPUs that are online.
    fn place_numbers(self, cpus: &[Cpu]) -> Vec<usize> {
        let mut places: Vec<usize> = cpus.iter().map(|cpu| cpu.place).collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    fn settings(self) -> Settings {
        let (settings, policy) = (self.settings, &self.state.policy);
        let place = if settings.place_is_cpu {
            Place::Cpu
        } else {
            Place::Llc
        };
        let scope = Scope::ALL.get(settings.scope as usize);
        Settings {
            place: place.name(),
            slice_ns: policy.slice_max,
            slice_min_ns: policy.slice_min,
            period_ns: policy.period,
            wakeup_lag_max_ns: policy.wakeup_lag_max,
            lag_max_ns: policy.lag_max,
            alpha_ns: policy.alpha,
            preempt_interval_ns: policy.preempt_interval,
            min_sleep_ns: policy.min_sleep,
            batch_budget_ns: policy.batch_budget,
            imbalance_percent: policy.imbalance,
            patience_ns: policy.patience,
            balance_interval_ns: settings.balance_interval,
            preempts: settings.preempts,
            keeps_groups: settings.keeps_groups,
            scope: scope.map_or("unknown", |scope| scope.name()),
            groups: settings.nr_groups.saturating_sub(1),
            groups_per_process: settings.groups_per_process,
            groups_per_user: settings.groups_per_user,
            infer: settings.infer,
            group_by: Some(Origin::of(settings.group_by).name()).filter(|_| settings.group_by != 0),
            infer_size: settings.infer_size,
            weight_nice_0: WEIGHT_NICE_0,
        }
    }

    fn cpu(self, cpu: usize) -> Option<Cpu> {
        let domain = self.settings.cpu_domain[cpu] as usize;
        let place = if self.settings.place_is_cpu {
            cpu
        } else {
            domain
        };
        let queued = self.state.entities[pinned(cpu)].queued.into();
        (domain < abi::MAX_DOMAINS as usize).then_some(Cpu {
            cpu,
            domain,
            place,
            queued,
        })
    }

    fn domain(self, domain: usize, cpus: &[Cpu]) -> Domain {
        let time = &self.state.entities[domain].domain;
        Domain {
            domain,
            cpus: numbers(cpus, |cpu| cpu.domain == domain),
            weight: time.weight,
            runnable: time.runnable.into(),
            queued: self.state.entities[domain].queued.into(),
            avg_vruntime_ns: time.avg_vruntime,
        }
    }

    fn place(self, place: usize, cpus: &[Cpu], groups: &[Group]) -> Home {
        let own = numbers(cpus, |cpu| cpu.place == place);
        let domain = self.settings.cpu_domain[own[0]] as usize;
        let pinned = own.iter().map(|cpu| &self.state.entities[pinned(*cpu)]);
        let at_home = groups.iter().filter(|group| group.home as usize == place);
        let waiting = at_home
            .clone()
            .map(|group| group.runnable.saturating_sub(group.running));
        let unmanaged = if self.settings.place_is_cpu {
            0
        } else {
            u64::from(self.state.entities[domain].queued)
        };
        Home {
            place,
            domain,
            queued: unmanaged
                + pinned
                    .map(|entity| u64::from(entity.queued))
                    .chain(waiting)
                    .sum::<u64>(),
            weight: self.load(place, domain),
            managed: self.state.places[place].managed,
            groups: at_home.filter(|group| group.members > 0).count(),
            cpus: own,
        }
    }

    /// The same as load_of_place() of group.bpf.h.
    fn load(self, place: usize, domain: usize) -> u64 {
        let time = &self.state.entities[domain].domain;
        if !self.settings.place_is_cpu {
            return time.weight;
        }
        let unmanaged = self.state.entities[domain].time.weight / u64::from(time.cpus.max(1));
        let pinned = self.state.entities[pinned(place)].time.weight;
        self.state.places[place]
            .managed
            .saturating_add(unmanaged)
            .saturating_add(pinned)
    }

    /// Read from the ring that they are kept in.
    fn overdue(self) -> Vec<Overdue> {
        let (kept, total) = (&self.state.overdue, self.state.nr_overdue);
        let last = total.min(kept.len() as u64);
        (1..=last)
            .map(|back| overdue(&kept[((total - back) % kept.len() as u64) as usize]))
            .collect()
    }

    fn group(self, slot: usize) -> Option<Group> {
        let group = &self.state.groups[slot];
        let entity = &self.state.entities[abi::GROUP_BASE as usize + slot];
        let hint = NonZeroU64::new(group.key.hint)?;
        let origin = Origin::of(group.origin);
        let named = (origin == Origin::Named).then(|| unpack(hint));
        Some(Group {
            slot,
            uid: group.key.uid.checked_sub(1),
            payer: group.payer.checked_sub(1),
            tgid: Some(group.key.tgid).filter(|tgid| *tgid != 0),
            app: named.map(|(app, _)| app),
            fragment: named.map(|(_, fragment)| fragment),
            origin,
            home: group.home,
            // The upper half is a generation.
            members: group.members & u64::from(u32::MAX),
            runnable: group.running.saturating_add(entity.queued.into()),
            running: group.running,
            weight: entity.time.weight,
            ran_home_ns: group.ran_home,
            ran_away_ns: group.ran_away,
            batches: group.batches,
            runs: group.runs,
            moves: group.moves,
            splits: group.splits,
            waits: Waits::sum([&group.waits[..]].into_iter()),
            narrow: group.narrow != 0,
        })
    }
}

fn overdue(wait: &overdue_wait) -> Overdue {
    let name = wait.comm.iter().map(|byte| *byte as u8);
    let name: Vec<u8> = name.take_while(|byte| *byte != 0).collect();
    Overdue {
        at_ns: wait.at,
        waited_ns: wait.waited,
        promised_ns: wait.bound,
        pid: wait.pid,
        name: printable(OsStr::from_bytes(&name)).to_string(),
        cpu: wait.cpu,
        cpus_allowed: wait.cpus_allowed,
        queue: queue(wait.entity),
        weight: wait.weight,
        domain_weight: wait.domain_weight,
    }
}

/// The entity of the tasks that may run on `cpu` only.
fn pinned(cpu: usize) -> usize {
    abi::PINNED_BASE as usize + cpu
}

fn queue(entity: u32) -> Queue {
    let (group, cpu) = (
        entity.checked_sub(abi::GROUP_BASE),
        entity.checked_sub(abi::PINNED_BASE),
    );
    match (group, cpu) {
        (Some(group), _) => Queue::Group(group),
        (None, Some(cpu)) => Queue::Cpu(cpu),
        (None, None) => Queue::Domain(entity),
    }
}

fn numbers(cpus: &[Cpu], which: impl Fn(&Cpu) -> bool) -> Vec<usize> {
    cpus.iter()
        .filter(|cpu| which(cpu))
        .map(|cpu| cpu.cpu)
        .collect()
}
