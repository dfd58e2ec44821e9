//! How true each world is to what a scenario says: to the keys that it uses, and to what it uses
//! them for. What a scheduler of the lab plays otherwise is said by that scheduler.

warmq_units::named! {
    /// Who plays a scenario, by its name in experiments and rows; the simulated world is the first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum WorldKind {
        /// The laboratory: simulated tasks on a simulated machine.
        Lab = "lab",
        /// Real threads under a real kernel in a virtual machine.
        Guest = "guest",
        /// Real threads on this machine.
        Host = "host",
    }
}

/// How true a world is to a step, an object or a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fidelity {
    /// As the scenario says.
    Exact,
    /// Nearly; what differs is said.
    Approximate(&'static str),
    /// Not at all, for this reason.
    Refused(&'static str),
}

/// What a world does otherwise than a scenario says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// The step, object or key.
    pub what: &'static str,
    /// How true it is; never [`Fidelity::Exact`].
    pub fidelity: Fidelity,
}

use Fidelity::{Approximate, Exact, Refused};

const LOOP: &str = "a calibrated loop: interrupts and changes of the clock's rate lengthen it";
const GUEST_LOOP: &str = "a calibrated loop: what the host takes from the guest lengthens it";
const CLOCK: &str = "the clock is read after every few microseconds of work";
const SPINNING_LAB: &str = "looking at a lock that is held disturbs no other CPU";
const SPINNING: &str = "between two looks a calibrated loop runs, not the processor's own pause";
const NO_ROWS: &str = "what was recorded is played again by simulated tasks only";
const NO_FILES: &str = "there are no files and no devices here";
const PATTERNS: &str = "the processor fetches ahead, and other programs share the caches";
const LOCAL: &str =
    "sent by threads of the player over loopback, from CPUs of their own if there are any";
const NO_CARD: &str = "there is no card: loopback neither interrupts nor drops";
const OTHERS: &str = "other programs of this machine compete for its CPUs";
const NO_COPY: &str = "no page tables are copied, and no page is copied at the first write";
const ONE_SCHEDULER: &str = "a run has one simulated scheduler from beginning to end";
const EXCHANGE: &str = "the kernel's own schedules until the other is loaded";
const LOADER: &str = "needs CAP_BPF and CAP_SYS_ADMIN, and affects all programs; the kernel's own \
     schedules until the other is loaded";
const CPUSET_LAB: &str = "balancing knows no cpusets, but for where tasks may run";
const WHEN_WOKEN: &str = "a task that sleeps is not woken to stop: it stops when it would wake";
const RIGHTS: &str = "needs the right to make a cgroup; without it the step is refused";
const AUTOGROUP_LAB: &str =
    "a task without a group stands for itself, not for the player's session";
const HUNDREDTHS: &str = "the weight that follows is in hundredths of that of nice 0";
const AUTOGROUP: &str = "tasks without a group are in the player's session, an autogroup too; where \
     autogroups have no effect (switched off, a cgroup below the root, a scheduler of sched_ext) the \
     run says so";
const NICE: &str = "needs CAP_SYS_NICE";
const UCLAMP_LAB: &str = "clocks do not change: it counts where CPUs are of unlike capacity";
const UCLAMP: &str = "a kernel without CONFIG_UCLAMP_TASK refuses it";

/// Every feature, or use of one (`uses.rs`), with its truth in the lab, in a guest and on the host.
/// What is not here is exact in all of them.
const TABLE: &[(&str, [Fidelity; 3])] = &[
    ("run", [Exact, Approximate(GUEST_LOOP), Approximate(LOOP)]),
    (
        "touch",
        [Exact, Approximate(PATTERNS), Approximate(PATTERNS)],
    ),
    ("spin", [Exact, Approximate(CLOCK), Approximate(CLOCK)]),
    (
        "spinlock",
        [
            Approximate(SPINNING_LAB),
            Approximate(SPINNING),
            Approximate(SPINNING),
        ],
    ),
    ("write", [Refused(NO_FILES), Exact, Exact]),
    ("recorded", [Exact, Refused(NO_ROWS), Refused(NO_ROWS)]),
    ("gaps", [Exact, Refused(NO_ROWS), Refused(NO_ROWS)]),
    ("fork", [Approximate(NO_COPY), Exact, Exact]),
    ("source", [Exact, Approximate(LOCAL), Approximate(LOCAL)]),
    ("card", [Exact, Approximate(NO_CARD), Approximate(NO_CARD)]),
    ("group", [Exact, Exact, Approximate(RIGHTS)]),
    (
        "cpuset",
        [Approximate(CPUSET_LAB), Exact, Approximate(RIGHTS)],
    ),
    (
        "autogroup",
        [
            Approximate(AUTOGROUP_LAB),
            Approximate(AUTOGROUP),
            Approximate(AUTOGROUP),
        ],
    ),
    (
        "nice of an autogroup",
        [Approximate(HUNDREDTHS), Exact, Exact],
    ),
    ("stop", [Approximate(WHEN_WOKEN), Exact, Exact]),
    ("nice below 0", [Exact, Exact, Approximate(NICE)]),
    (
        "uclamp",
        [
            Approximate(UCLAMP_LAB),
            Approximate(UCLAMP),
            Approximate(UCLAMP),
        ],
    ),
    ("policy fifo or rr", [Exact, Exact, Approximate(NICE)]),
    ("policy deadline", [Exact, Exact, Approximate(NICE)]),
    ("cpus", [Exact, Exact, Approximate(OTHERS)]),
    ("cpu", [Exact, Exact, Approximate(OTHERS)]),
    (
        "scheduler",
        [
            Refused(ONE_SCHEDULER),
            Approximate(EXCHANGE),
            Approximate(LOADER),
        ],
    ),
    (
        "online",
        [
            Exact,
            Exact,
            Refused("a CPU of this machine is not taken from other programs"),
        ],
    ),
];

/// Where `world` differs from what the features in `uses` say, once for each.
pub(crate) fn notes(uses: &[&'static str], world: WorldKind) -> Vec<Note> {
    let note = |what: &&'static str| {
        let (_, worlds) = TABLE.iter().find(|(feature, _)| feature == what)?;
        let fidelity = worlds[world as usize];
        (fidelity != Exact).then_some(Note { what, fidelity })
    };
    uses.iter().filter_map(note).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Class;
    use crate::read::verbs;

    #[test]
    fn all_worlds_answer_and_only_the_lab_writes_nothing() {
        for world in WorldKind::ALL {
            assert_eq!(notes(&["echo", "reply"], world), []);
        }
        assert_eq!(notes(&["cpu"], WorldKind::Lab), []);
        let write = notes(&["write"], WorldKind::Lab);
        assert!(matches!(write[0].fidelity, Refused(_)));
        assert_eq!(notes(&["write"], WorldKind::Guest), []);
    }

    #[test]
    fn the_table_is_about_what_a_scenario_can_use() {
        let keys = [
            "cpus",
            "stop",
            "online",
            "cpu",
            "card",
            "scheduler",
            "autogroup",
            "cpuset",
            "gaps",
        ];
        let classes = Class::ALL.map(Class::name);
        let uses = crate::uses::BY_VALUE.iter().map(|(name, _)| *name);
        let known: Vec<&str> = verbs().chain(classes).chain(keys).chain(uses).collect();
        for (number, (feature, _)) in TABLE.iter().enumerate() {
            assert!(known.contains(feature), "{feature}");
            assert!(TABLE[..number].iter().all(|(other, _)| other != feature));
        }
    }
}
