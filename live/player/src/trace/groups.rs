//! What the groups of a scenario are, as records.

use warmq_scenario::program::{CgroupSpec, Cpus, Group, GroupSpec};
use warmq_scenario::{Bound, EvalError};
use warmq_trace::{Comm, Record};
use warmq_units::Duration;

use crate::specs::group_number;

/// The weight of a group of nice 0, as of one that says nothing.
const USUAL: u64 = 100;

/// The quota and the period of a group without a limit.
const UNLIMITED: (Duration, Duration) = (Duration(u64::MAX), Duration::from_ms(100));

/// Each group with its weight and its limit at the start. A session is called as /proc calls it,
/// and weighs as much as a task of its nice value, in hundredths of that of nice 0.
///
/// # Errors
/// A weight or a nice value cannot be computed.
pub fn records(bound: &Bound, cpus: &Cpus) -> Result<Vec<Record>, EvalError> {
    let record = |(place, of): (usize, Group)| {
        let group = group_number(place);
        let (parent, weight, name, limit) = match of.spec {
            GroupSpec::Cgroup(CgroupSpec {
                weight,
                parent,
                quota,
                idle,
                ..
            }) => {
                let name = Comm::new(&bound.scenario().object(of.table).name);
                let weight = if idle { 0 } else { weight };
                (parent.map_or(0, group_number), weight, name, quota)
            }
            GroupSpec::Autogroup { nice } => {
                let name = Comm::new(&format!("autogroup-{group}"));
                (0, weight_of(nice), name, None)
            }
        };
        let (quota, period) = limit.unwrap_or(UNLIMITED);
        [
            Record::Cgroup {
                group,
                parent,
                weight,
                name,
            },
            Record::Limit {
                group,
                quota,
                period,
            },
        ]
    };
    let groups = bound.groups(cpus)?.into_iter().enumerate();
    Ok(groups.flat_map(record).collect())
}

/// One nice value is worth a quarter more than the next.
fn weight_of(nice: i8) -> u32 {
    // Exact to a hundredth: the powers have 20 bits after the point.
    let steps = 0..nice.unsigned_abs();
    let weight = steps.fold(USUAL << 20, |weight, _| match nice < 0 {
        true => weight * 5 / 4,
        false => weight * 4 / 5,
    });
    (weight >> 20).max(1) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_recorded_with_their_weights_and_parents() {
        let text = "[group.outer]\nweight = 50\nquota = \"6ms\"\nperiod = \"100ms\"\n[group.inner]\nparent = \"outer\"\n[group.desk]\n\
                    autogroup = true\nnice = 5\n[group.low]\nidle = true\n[task.hog]\nbody = [{ run = \"1ms\" }]\n";
        let records = records(&crate::testing::bound(text), &Cpus::default()).unwrap();
        let group = |group, parent, weight, name| Record::Cgroup {
            group,
            parent,
            weight,
            name: Comm::new(name),
        };
        let limit = |group, (quota, period)| Record::Limit {
            group,
            quota,
            period,
        };
        let wanted = [
            group(1, 0, 50, "outer"),
            limit(1, (Duration::from_ms(6), Duration::from_ms(100))),
            group(2, 1, 100, "inner"),
            limit(2, UNLIMITED),
            group(3, 0, 32, "autogroup-3"),
            limit(3, UNLIMITED),
            group(4, 0, 0, "low"),
            limit(4, UNLIMITED),
        ];
        assert_eq!(records, wanted);
    }

    #[test]
    fn nice_values_weigh_as_the_kernels() {
        // sched_prio_to_weight: 1,024 of nice 0, 335 of 5, 15 of 19, 3,121 of -5.
        assert_eq!([0, 5, 19, -5].map(weight_of), [100, 32, 1, 305]);
    }
}
