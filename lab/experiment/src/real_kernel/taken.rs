//! What the scheduler `kernel` of the lab is set to, as a real kernel is built and set.
//!
//! Each row names a fact by the kernel's own name for it (a file, an option of its configuration),
//! and a setting that follows from it. What has no row here has no parameter in the lab.

use std::collections::{BTreeMap, BTreeSet};

use warmq_config::{Setting, Value};
use warmq_units::Duration;

use super::RealKernel;

/// A setting that follows from a fact.
struct Row {
    fact: &'static str,
    setting: &'static str,
    reads: Reads,
}

/// How the text of a fact says the value of a setting.
enum Reads {
    Count,
    Ns,
    Us,
    /// On for `y` and `1`; off for an option that the kernel does not have.
    Flag,
    /// A word, or the one in parentheses of several.
    Word,
    /// On if all these features are, off if none is (`NAME NO_NAME ...`).
    Features(&'static [&'static str]),
    /// This, wherever there is a fact.
    Always(&'static str),
}

use Reads::{Always, Count, Features, Flag, Ns, Us, Word};

const DEBUGFS: &str = "/sys/kernel/debug/sched/";
const SYSCTL: &str = "/proc/sys/kernel/";
const FEATURES: &str = "/sys/kernel/debug/sched/features";
/// As `sysctl_sched_base_slice`: what is shown was scaled by the number of CPUs before.
const BASE_SLICE: &str = "/sys/kernel/debug/sched/base_slice_ns";

const fn row(fact: &'static str, setting: &'static str, reads: Reads) -> Row {
    Row {
        fact,
        setting,
        reads,
    }
}

const fn feature(setting: &'static str, names: &'static [&'static str]) -> Row {
    row(FEATURES, setting, Features(names))
}

const ROWS: &[Row] = &[
    row("CONFIG_HZ", "hz", Count),
    row("CONFIG_FAIR_GROUP_SCHED", "groups", Flag),
    row("sessions", "autogroup", Flag),
    row(
        "/proc/sys/kernel/sched_cfs_bandwidth_slice_us",
        "bandwidth_slice",
        Us,
    ),
    row(BASE_SLICE, "base_slice", Ns),
    row(BASE_SLICE, "tunable_scaling", Always("none")),
    row(
        "/sys/kernel/debug/sched/migration_cost_ns",
        "migration_cost",
        Ns,
    ),
    row("/sys/kernel/debug/sched/nr_migrate", "nr_migrate", Count),
    row("/sys/kernel/debug/sched/cgroup_mode", "cgroup_mode", Word),
    row(
        "/sys/kernel/debug/sched/fair_server/cpu0/runtime",
        "fair_server_runtime",
        Ns,
    ),
    row(
        "/sys/kernel/debug/sched/fair_server/cpu0/period",
        "fair_server_period",
        Ns,
    ),
    feature("hrtick", &["HRTICK"]),
    feature("place_lag", &["PLACE_LAG"]),
    feature("place_deadline_initial", &["PLACE_DEADLINE_INITIAL"]),
    feature("place_rel_deadline", &["PLACE_REL_DEADLINE"]),
    feature("run_to_parity", &["RUN_TO_PARITY"]),
    feature("preempt_short", &["PREEMPT_SHORT"]),
    feature("wakeup_preemption", &["WAKEUP_PREEMPTION"]),
    feature("pick_buddy", &["PICK_BUDDY"]),
    feature("next_buddy", &["NEXT_BUDDY"]),
    feature("delay_dequeue", &["DELAY_DEQUEUE"]),
    feature("delay_zero", &["DELAY_ZERO"]),
    feature("wake_affine", &["WA_IDLE", "WA_WEIGHT"]),
    feature("ttwu_queue", &["TTWU_QUEUE"]),
    feature("sis_util", &["SIS_UTIL"]),
    feature("util_est", &["UTIL_EST"]),
    feature("newidle_random", &["NI_RANDOM"]),
    feature("newidle_rate", &["NI_RATE"]),
];

/// What the lab can take over, by the kernel's own names: a file (`/proc/...`), an option of its
/// configuration (`CONFIG_...`), and `sessions`: whether each is a group, for processes such as
/// this one.
pub fn facts() -> BTreeSet<&'static str> {
    ROWS.iter().map(|row| row.fact).collect()
}

/// What a kernel's facts make of a scheduler's settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    /// Settings that are other than those of the scheduler.
    pub other: BTreeMap<String, Value>,
    /// Facts that make nothing other.
    pub same: Vec<&'static str>,
    /// What nobody can know.
    pub unknown: BTreeSet<&'static str>,
    /// Facts with values that the lab does not have.
    pub beyond: Vec<String>,
}

/// What `kernel` makes of `settings`; `usual` is their values in its release, where those are other
/// than their defaults.
pub(super) fn taken(
    kernel: &RealKernel,
    settings: &[Setting],
    usual: &BTreeMap<String, Value>,
) -> Taken {
    let mut taken = Taken::default();
    for fact in facts() {
        let Some(text) = kernel.facts.get(fact) else {
            taken.unknown.insert(unknown(fact));
            continue;
        };
        let before = taken.changes();
        for row in ROWS.iter().filter(|row| row.fact == fact) {
            let setting = settings.iter().find(|known| known.name == row.setting);
            if let (Some(setting), Some(value)) = (setting, row.reads.value(text)) {
                let usual = usual.get(row.setting).unwrap_or(&setting.default);
                taken.take(setting, usual, value);
            }
        }
        if taken.changes() == before && !text.is_empty() {
            taken.same.push(short(fact));
        }
    }
    taken
}

impl Taken {
    fn changes(&self) -> usize {
        self.other.len() + self.beyond.len()
    }

    /// Takes over that `setting`, which is `usual` in the release, has `value` there.
    fn take(&mut self, setting: &Setting, usual: &Value, value: Value) {
        match (setting.kind.admits(&value), value == *usual) {
            (false, _) => self.beyond.push(format!("{} = {value}", setting.name)),
            (true, false) => drop(self.other.insert(setting.name.clone(), value)),
            (true, true) => {}
        }
    }
}

/// A fact that cannot be known, as people call it: debugfs can be read as a whole, or not at all.
fn unknown(fact: &'static str) -> &'static str {
    match fact.starts_with(DEBUGFS) {
        true => "what debugfs has in sched/ (slices, features, the fair server)",
        false => short(fact),
    }
}

/// A fact as people call it.
fn short(fact: &'static str) -> &'static str {
    let of_file = fact.strip_prefix(DEBUGFS);
    let of_file = of_file.or_else(|| fact.strip_prefix(SYSCTL));
    of_file.unwrap_or(fact)
}

impl Reads {
    /// The value that `text` says; none if it says none, or nonsense.
    fn value(&self, text: &str) -> Option<Value> {
        match self {
            Count => text.parse().ok().map(Value::Integer),
            Ns => span(text, Duration::from_ns(1)),
            Us => span(text, Duration::from_us(1)),
            Flag => match text {
                "y" | "1" => Some(Value::Bool(true)),
                "n" | "0" | "" => Some(Value::Bool(false)),
                _ => None,
            },
            Word => {
                let chosen = text
                    .split_once('(')
                    .and_then(|(_, rest)| rest.split_once(')'));
                let word = chosen.map_or(text, |(word, _)| word);
                (!word.is_empty()).then(|| Value::Text(word.to_owned()))
            }
            Features(names) => all_or_none(text, names).map(Value::Bool),
            Always(word) => (!text.is_empty()).then(|| Value::Text((*word).to_owned())),
        }
    }
}

fn span(text: &str, unit: Duration) -> Option<Value> {
    let count: u64 = text.parse().ok()?;
    count
        .checked_mul(unit.0)
        .map(|span| Value::Duration(Duration(span)))
}

/// Whether all features of `names` are on in `text`; none if they are unlike, or one is not there.
fn all_or_none(text: &str, names: &[&str]) -> Option<bool> {
    let says = |name: &&str| {
        let mut words = text.split_whitespace();
        words.find_map(|word| match word.strip_prefix("NO_") {
            Some(off) if off == *name => Some(false),
            _ => (word == *name).then_some(true),
        })
    };
    let mut all = names.iter().map(says);
    let first = all.next()??;
    all.all(|other| other == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use warmq_sched::scheduler;

    use super::*;

    const ALL_ON: &str = "PLACE_LAG PLACE_DEADLINE_INITIAL PLACE_REL_DEADLINE RUN_TO_PARITY \
                          PREEMPT_SHORT NO_NEXT_BUDDY PICK_BUDDY DELAY_DEQUEUE DELAY_ZERO \
                          WAKEUP_PREEMPTION NO_HRTICK TTWU_QUEUE SIS_UTIL WA_IDLE WA_WEIGHT UTIL_EST";

    fn settings(of: &str) -> Vec<Setting> {
        scheduler(of).expect("a scheduler").settings()
    }

    /// What a kernel of 6.18 with these facts has set.
    fn of(facts: &[(&'static str, &str)]) -> Taken {
        let facts = facts.iter().map(|(fact, text)| (*fact, (*text).to_owned()));
        let kernel = RealKernel {
            facts: facts.collect(),
            ..RealKernel::default()
        };
        taken(&kernel, &settings("eevdf-6.18"), &BTreeMap::new())
    }

    #[test]
    fn each_row_sets_what_each_version_has() {
        for version in [
            "eevdf-6.6",
            "eevdf-6.12",
            "eevdf-6.18",
            "eevdf-7.1",
            "eevdf-7.2",
            "eevdf-7.3",
        ] {
            let settings = settings(version);
            for row in ROWS {
                let known = settings.iter().any(|setting| setting.name == row.setting);
                assert!(known, "{version} has no {}", row.setting);
            }
        }
    }

    #[test]
    fn a_fact_sets_what_is_other_than_in_the_series() {
        let ms = |ms| Value::Duration(Duration::from_ms(ms));
        let us = |us| Value::Duration(Duration::from_us(us));
        let off = || Value::Bool(false);
        for (fact, text, expected) in [
            ("CONFIG_HZ", "1000", vec![("hz", Value::Integer(1_000))]),
            ("CONFIG_HZ", "250", vec![]),
            ("CONFIG_FAIR_GROUP_SCHED", "y", vec![]),
            ("CONFIG_FAIR_GROUP_SCHED", "", vec![("groups", off())]),
            ("sessions", "n", vec![("autogroup", off())]),
            (
                "/proc/sys/kernel/sched_cfs_bandwidth_slice_us",
                "1000",
                vec![("bandwidth_slice", ms(1))],
            ),
            (
                BASE_SLICE,
                "1400000",
                vec![
                    ("base_slice", us(1_400)),
                    ("tunable_scaling", Value::from("none")),
                ],
            ),
            (
                "/sys/kernel/debug/sched/cgroup_mode",
                "up smp (concur) max tasks",
                vec![("cgroup_mode", Value::from("concur"))],
            ),
            // A kernel before 7.3.
            ("/sys/kernel/debug/sched/cgroup_mode", "", vec![]),
            (FEATURES, ALL_ON, vec![]),
            (
                FEATURES,
                "NO_PLACE_LAG RUN_TO_PARITY",
                vec![("place_lag", off())],
            ),
            (
                FEATURES,
                "NO_WA_IDLE NO_WA_WEIGHT",
                vec![("wake_affine", off())],
            ),
            (FEATURES, "NO_WA_IDLE WA_WEIGHT", vec![]),
        ] {
            let expected = expected.into_iter();
            let expected = expected.map(|(name, value)| (name.to_owned(), value));
            assert_eq!(
                of(&[(fact, text)]).other,
                expected.collect(),
                "{fact} {text}"
            );
        }
    }

    #[test]
    fn what_the_lab_does_not_have_and_what_cannot_be_known_is_not_taken_over() {
        let taken = of(&[("CONFIG_HZ", "24"), ("sessions", "y"), (FEATURES, "")]);
        assert_eq!(taken.beyond, ["hz = 24"]);
        assert_eq!(taken.same, ["sessions"]);
        assert!(taken.unknown.contains("CONFIG_FAIR_GROUP_SCHED"));
        assert!(!taken.unknown.contains("CONFIG_HZ"));
        assert!(taken.unknown.iter().any(|what| what.contains("debugfs")));
    }

    proptest! {
        /// Whatever a file says, what is taken over is a value that the scheduler takes.
        #[test]
        fn nonsense_is_not_taken_over(text in "[ -~\n]{0,40}|[0-9-]{1,24}", fact in 0..ROWS.len()) {
            let settings = settings("eevdf-7.3");
            let facts = [(ROWS[fact].fact, text)].into();
            let kernel = RealKernel { facts, ..RealKernel::default() };
            let taken = taken(&kernel, &settings, &BTreeMap::new());
            prop_assert!(warmq_config::Chosen::new(settings, taken.other).is_ok());
        }
    }
}
