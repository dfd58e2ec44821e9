//! Whether a kernel admits what deadline tasks ask for, as its defaults have it.
//!
//! ```text
//!     sum of runtime / period  <=  CPUs x (950 ms / 1 s  -  50 ms / 1 s)
//! ```
//!
//! The first is what real-time tasks may have of each CPU (`sched_rt_runtime_us` of
//! `sched_rt_period_us`), the second what the deadline server of fair tasks has reserved there,
//! where a kernel counts it (`__dl_overflow()`, `dl_server_apply_params()`). Shares are in units of
//! 2^-20, rounded down (`to_ratio()`).

use warmq_units::{CpuSet, Duration};

use super::{Cpus, Group, GroupSpec};
use crate::bind::{Bound, EvalError};
use crate::change::{Set, Target};
use crate::step::Action;
use crate::task::{Deadline, Policy, TaskKind, TaskKindId};

/// `BW_SHIFT`
const SHIFT: u32 = 20;
const OF_REAL_TIME: u128 = ratio(Duration::from_ms(950), Duration::from_s(1));
const OF_SERVER: u128 = ratio(Duration::from_ms(50), Duration::from_s(1));

const fn ratio(runtime: Duration, period: Duration) -> u128 {
    ((runtime.0 as u128) << SHIFT) / (period.0 as u128)
}

impl Deadline {
    fn ratio(&self) -> u128 {
        ratio(self.runtime, self.period)
    }
}

impl Bound {
    /// Checks that a kernel with these `cpus` admits all deadline tasks at once, each with the most
    /// that it ever asks for, and that each may use all CPUs when it begins. `by_servers`: what
    /// servers have reserved counts.
    ///
    /// # Errors
    /// At the table of the task with which it is too much, or that is bound; as [`Bound::eval`].
    pub fn check_reservations(&self, cpus: &Cpus, by_servers: bool) -> Result<(), EvalError> {
        let all = cpus.all();
        let of_cpus = all.len() as u128;
        let (of_servers, percent) = match by_servers {
            true => (OF_SERVER, 90),
            false => (0, 95),
        };
        let mut sum = 0;
        for (id, kind) in (0..).map(TaskKindId).zip(self.scenario().tasks()) {
            let most = self.policies_of(id, kind).filter_map(reserved).max();
            sum += most.unwrap_or(0) * u128::from(self.tasks(id));
            if most.is_some() && sum > of_cpus * (OF_REAL_TIME - of_servers) {
                let hundredths = (sum * 100).div_ceil(1 << SHIFT);
                let what = format!(
                    "deadline tasks ask for {hundredths} % of a CPU up to here, and a kernel with {of_cpus} CPUs \
                     admits {} %",
                    percent * of_cpus
                );
                let help = "ask for less runtime, or longer periods";
                return Err(self.error(&kind.spot, &what, help));
            }
        }
        self.check_bound(cpus, &all)
    }

    /// A deadline task must be able to run wherever the others are (`__sched_setscheduler()`).
    fn check_bound(&self, cpus: &Cpus, all: &CpuSet) -> Result<(), EvalError> {
        let groups = self.groups(cpus)?;
        for (id, kind) in (0..).map(TaskKindId).zip(self.scenario().tasks()) {
            if reserved(&kind.policy).is_none() || (kind.cpus.is_none() && kind.group.is_none()) {
                continue;
            }
            for number in 0..self.tasks(id) {
                let spec = self.spec(cpus, id, number)?;
                let own = spec.cpus.iter();
                let mut limits = own.chain(cpusets(&groups, spec.group));
                if limits.any(|limit| all.iter().any(|cpu| !limit.contains(cpu))) {
                    let what = "a deadline task is bound to some of the CPUs, which kernels refuse";
                    let help = "leave out `cpus` of the task and of its groups";
                    return Err(self.error(&kind.spot, what, help));
                }
            }
        }
        Ok(())
    }

    /// The policies that tasks of a table ever have.
    fn policies_of<'s>(
        &'s self,
        id: TaskKindId,
        kind: &'s TaskKind,
    ) -> impl Iterator<Item = &'s Policy> {
        let steps = kind.steps().filter_map(|step| match &step.action {
            Action::Set(set) => Some(&**set),
            _ => None,
        });
        let changes = self.scenario().changes().iter();
        let changes = changes.filter(move |change| match &change.target {
            Target::Task(task) => task.task == id,
            Target::Tasks(tasks) => *tasks == id,
            _ => false,
        });
        let set = steps.chain(changes.flat_map(|change| &change.set));
        let set = set.filter_map(|set| match set {
            Set::Policy(policy) => Some(policy),
            _ => None,
        });
        set.chain([&kind.policy])
    }
}

/// The part of a CPU that a policy reserves.
fn reserved(policy: &Policy) -> Option<u128> {
    match policy {
        Policy::Deadline(times) => Some(times.ratio()),
        _ => None,
    }
}

/// The CPUs to which a group and those around it limit their tasks.
fn cpusets(groups: &[Group], group: Option<usize>) -> impl Iterator<Item = &CpuSet> {
    let spec = |group: Option<usize>| match &groups[group?].spec {
        GroupSpec::Cgroup(spec) => Some(spec),
        GroupSpec::Autogroup { .. } => None,
    };
    let up = std::iter::successors(spec(group), move |inner| spec(inner.parent));
    up.filter_map(|spec| spec.cpus.as_ref())
}
