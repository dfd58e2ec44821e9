//! The cgroups of a run.
//!
//! On a machine of other programs, all tasks of a scenario that has groups live in a group
//! `warmq-PID` below that of the player, and the scenario's groups below that: tasks without a
//! group compete with the groups, as they do at the root. In a guest there is nobody else, and the
//! scenario's groups are made at the root itself.

mod cpusets;
mod tree;

use std::io;
use std::sync::Mutex;

use warmq_record::Mounts;
use warmq_scenario::program::{self, CgroupSpec, Cpus, GroupSpec, To};
use warmq_scenario::{Bound, ObjectKind, Set, Target};
use warmq_trace::Record;
use warmq_units::{CpuSet, Duration};

use crate::error::PlayError;
use crate::specs::group_number;
use tree::Tree;

/// A group of the scenario.
#[derive(Clone, Debug)]
struct Group {
    /// The folder's name.
    name: String,
    /// What it is given at the start.
    spec: CgroupSpec,
}

impl Group {
    /// The number of its parent; 0 for none.
    fn parent(&self) -> u32 {
        self.spec.parent.map_or(0, group_number)
    }
}

/// The cgroups of a run; group 0 is where tasks without a group are.
#[derive(Debug, Default)]
pub struct Groups {
    /// By number, from 1; none for an autogroup.
    list: Vec<Option<Group>>,
    /// Weights and quotas.
    cpu: Option<Tree>,
    /// Freezing, where that is a hierarchy of its own.
    freezer: Option<Tree>,
    /// CPUs, where that is a hierarchy of its own.
    cpuset: Option<Tree>,
    /// Whether any group has CPUs of its own.
    has_cpusets: bool,
    /// The CPUs that each asks for now, in the order of `list`.
    cpus: Mutex<Vec<Option<CpuSet>>>,
}

/// Removes the groups of earlier runs that could not do it themselves.
pub fn sweep() {
    let mounts = Mounts::read();
    let (cpu, freezer) = (mounts.cpu(), mounts.freezer());
    cpu.iter().chain(&freezer).for_each(tree::sweep);
}

impl Groups {
    /// Those of a scenario; `guest` is true where the machine is the scenario's own.
    ///
    /// # Errors
    /// A number that cannot be computed; no hierarchy in which there could be groups.
    pub fn plan(bound: &Bound, guest: bool, cpus: &Cpus) -> Result<Groups, PlayError> {
        let list = list(bound, cpus)?;
        if list.iter().all(Option::is_none) {
            return Ok(Groups::default());
        }
        let mounts = Mounts::read();
        let cpu = mounts.cpu().ok_or_else(|| PlayError::Refused {
            what: "the scenario has groups, and the controller `cpu` is in no cgroup hierarchy"
                .to_owned(),
            why: "none is mounted".to_owned(),
            fix: "mount cgroup2 at /sys/fs/cgroup".to_owned(),
        })?;
        let freezer = match freezes(bound) && !cpu.is_unified() {
            true => Some(mounts.freezer().ok_or_else(|| PlayError::Refused {
                what: "the scenario freezes groups".to_owned(),
                why: "no cgroup hierarchy that can is mounted".to_owned(),
                fix: "mount the freezer, or cgroup2".to_owned(),
            })?),
            false => None,
        };
        let has_cpusets = has_cpusets(bound);
        let cpuset = match has_cpusets && !cpu.is_unified() {
            true => Some(mounts.cpuset().ok_or_else(|| PlayError::Refused {
                what: "the scenario has groups with CPUs of their own".to_owned(),
                why: "the controller `cpuset` is in no cgroup hierarchy".to_owned(),
                fix: "mount it, or cgroup2".to_owned(),
            })?),
            false => None,
        };
        let asked = list.iter().map(|group| group.as_ref()?.spec.cpus.clone());
        Ok(Groups {
            cpus: Mutex::new(asked.collect()),
            list,
            cpu: Some(Tree::new(cpu, guest, cpuset.is_none() && has_cpusets)),
            freezer: freezer.map(|mount| Tree::new(mount, guest, false)),
            cpuset: cpuset.map(|mount| Tree::new(mount, guest, true)),
            has_cpusets,
        })
    }

    fn trees(&self) -> impl DoubleEndedIterator<Item = &Tree> {
        self.cpu.iter().chain(&self.freezer).chain(&self.cpuset)
    }

    /// Group `number`, if it is a cgroup.
    fn cgroup(&self, number: u32) -> Option<&Group> {
        let place = number.checked_sub(1)?;
        self.list.get(place as usize)?.as_ref()
    }

    /// The folders from the top to group `number`.
    fn path(&self, number: u32) -> Vec<&str> {
        let mut path = Vec::new();
        let mut at = number;
        while let Some(group) = self.cgroup(at) {
            path.push(group.name.as_str());
            at = group.parent();
        }
        path.reverse();
        path
    }

    /// Those of the cgroups.
    fn numbers(&self) -> impl DoubleEndedIterator<Item = u32> {
        (1..=self.list.len() as u32).filter(|number| self.cgroup(*number).is_some())
    }

    /// Makes them, and moves this process to where tasks without a group are.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn make(&self) -> Result<(), PlayError> {
        for tree in self.trees() {
            tree.make_top().map_err(refused)?;
        }
        // Parents come before their children: a group names one that stands before it, or not.
        let mut left: Vec<u32> = self.numbers().collect();
        left.sort_by_key(|number| self.path(*number).len());
        for number in left {
            let path = self.path(number);
            for tree in self.trees() {
                tree.make(&path).map_err(refused)?;
            }
            let Some(group) = self.cgroup(number) else {
                continue;
            };
            let at_group = |error| refused((group.name.clone(), error));
            let spec = &group.spec;
            let weight = match spec.idle {
                true => To::Idle(true),
                false => To::Weight(spec.weight),
            };
            let burst = Some(spec.burst).filter(|burst| *burst > Duration::ZERO);
            let quota = spec.quota.map(|(quota, _)| To::Quota(quota));
            let sets = [Some(weight), quota, burst.map(To::Burst)];
            let mut sets = sets.iter().flatten();
            sets.try_for_each(|to| self.set(number, to))
                .map_err(at_group)?;
        }
        self.write_cpusets()
            .map_err(|error| refused(("the CPUs of groups".to_owned(), error)))?;
        self.join(0)
            .map_err(|error| refused(("the top".to_owned(), error)))
    }

    /// Moves this thread into group `number`. Whoever is to be in an autogroup is there already.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn join(&self, number: u32) -> io::Result<()> {
        match number != 0 && self.cgroup(number).is_none() {
            true => Ok(()),
            false => self.move_thread(0, number),
        }
    }

    /// Moves this thread back to where the player was: below a cgroup that has the controller
    /// `cpu`, autogroups have no effect.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn leave(&self) -> io::Result<()> {
        self.trees().try_for_each(Tree::leave)
    }

    /// Moves thread `tid` (0: this one) into group `number`.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn move_thread(&self, tid: i32, number: u32) -> io::Result<()> {
        let path = self.path(number);
        self.trees().try_for_each(|tree| tree.join(&path, tid))
    }

    /// Sets the weight, the quota of each period, what is kept of quotas, or that it is idle.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn set(&self, number: u32, to: &To) -> io::Result<()> {
        let path = self.path(number);
        let own = self.cgroup(number).and_then(|group| group.spec.quota);
        let period = own.map_or(Duration::from_ms(100), |(_, period)| period);
        self.cpu.iter().try_for_each(|tree| match to {
            To::Weight(weight) => tree.set_weight(&path, (*weight).into()),
            To::Quota(quota) => tree.set_quota(&path, quota.as_us(), period.as_us()),
            To::Burst(burst) => tree.set_burst(&path, burst.as_us()),
            To::Idle(idle) => tree.set_idle(&path, *idle),
            _ => Ok(()),
        })
    }

    /// What the kernel has counted of quotas by now.
    pub fn quotas(&self) -> Vec<Record> {
        let of = |group| {
            let quota = self.cpu.as_ref()?.quota(&self.path(group))?;
            Some(Record::Quota {
                group,
                periods: quota.periods,
                throttled: quota.throttled,
                span: Duration::from_us(quota.throttled_us),
            })
        };
        self.numbers().filter_map(of).collect()
    }

    /// For how long quotas held groups back, as the kernel counted.
    pub fn throttled(&self) -> Vec<Record> {
        let of = |group| {
            let us = |tree: &Tree| tree.throttled_us(&self.path(group));
            let span = Duration::from_us(self.cpu.as_ref().map_or(0, us));
            (span > Duration::ZERO).then_some(Record::Throttled { group, span })
        };
        self.numbers().filter_map(of).collect()
    }

    /// Freezes or thaws a group.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn freeze(&self, number: u32, frozen: bool) -> io::Result<()> {
        let path = self.path(number);
        let mut tree = self.freezer.iter().chain(&self.cpu);
        tree.next()
            .map_or(Ok(()), |tree| tree.freeze(&path, frozen))
    }

    /// Thaws all groups, so that their tasks can die.
    pub fn thaw_all(&self) {
        if self.freezer.is_some() {
            self.numbers().for_each(|number| {
                let _ = self.freeze(number, false);
            });
        }
    }

    /// Removes them, when nobody but the caller is in them any more.
    pub fn remove(&self) {
        // Where that fails, its folder is left behind, and a later run sweeps it away.
        let _ = self.leave();
        let mut paths: Vec<Vec<&str>> = self.numbers().map(|number| self.path(number)).collect();
        paths.sort_by_key(|path| std::cmp::Reverse(path.len()));
        for tree in self.trees() {
            tree.remove(&paths);
        }
    }
}

fn refused((path, error): (String, io::Error)) -> PlayError {
    let fix = "play it as root, or in a cgroup that is delegated to you";
    PlayError::refused(format!("a cgroup cannot be made: {path}"), &error, fix)
}

/// The groups of a scenario, in the order of their numbers; none for an autogroup.
fn list(bound: &Bound, cpus: &Cpus) -> Result<Vec<Option<Group>>, PlayError> {
    let group = |group: program::Group| {
        let name = &bound.scenario().object(group.table).name;
        let GroupSpec::Cgroup(spec) = group.spec else {
            return Ok(None);
        };
        Ok(Some(Group {
            name: format!("{name}-{}", group.number),
            spec: CgroupSpec {
                cpus: cpus_of(spec.cpus, name)?,
                ..spec
            },
        }))
    };
    bound.groups(cpus)?.into_iter().map(group).collect()
}

/// `cpus` of the group `name`, of which there must be some.
fn cpus_of(cpus: Option<CpuSet>, name: &str) -> Result<Option<CpuSet>, PlayError> {
    match cpus {
        Some(cpus) if cpus.is_empty() => Err(PlayError::Refused {
            what: format!("`cpus` of the group {name}"),
            why: "this machine has no such CPU".to_owned(),
            fix: "write CPUs that it has".to_owned(),
        }),
        cpus => Ok(cpus),
    }
}

/// Whether groups have CPUs of their own, now or after a change.
fn has_cpusets(bound: &Bound) -> bool {
    let scenario = bound.scenario();
    let mut kinds = scenario.objects().iter().map(|object| &object.kind);
    let of_group = |kind: &ObjectKind| matches!(kind, ObjectKind::Group { cpus: Some(_), .. });
    let mut changes = scenario.changes().iter();
    kinds.any(of_group)
        || changes.any(|change| {
            let is_group = matches!(change.target, Target::Group(_) | Target::Groups(_));
            is_group && change.set.iter().any(|set| matches!(set, Set::Cpus(_)))
        })
}

/// Whether a change freezes or thaws a group.
fn freezes(bound: &Bound) -> bool {
    let mut sets = bound.scenario().sets();
    sets.any(|set| matches!(set, Set::Freeze | Set::Thaw))
}
