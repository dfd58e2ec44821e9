//! Laws do not depend on how CPUs are numbered: whoever keeps one keeps it where CPUs have other
//! numbers and the same places.
//!
//! Only the machine is numbered otherwise. A law that names CPUs is played as it is written: the
//! laws that do ask for one CPU, or for one and another, and do not care which.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use warmq_experiment::laws::all_shipped;
use warmq_law::{Column, Found, Law, Verdict};
use warmq_machine::{builtin, read_toml};
use warmq_scenario::WorldKind;

use super::judged;

/// Schedulers that know of cores and caches.
const SCHEDULERS: [&str; 8] = [
    "eevdf-6.6",
    "eevdf-6.12",
    "eevdf-6.18",
    "eevdf-7.1",
    "eevdf-7.2",
    "eevdf-7.3",
    "cfs",
    "o1",
];

/// The most CPUs that a law has.
const MOST: u16 = 8;

/// Laws that a kernel's scheduler keeps or not by how things happen to begin, and so by the numbers
/// of the CPUs: they are about data, of which these schedulers know nothing.
const BY_CHANCE: [&str; 2] = ["chat-rooms", "fragments-at-home"];

/// Law and scheduler.
type Kept = BTreeSet<(String, String)>;

fn columns(schedulers: &[&str]) -> Vec<Column> {
    let column = |scheduler: &&str| Column {
        world: WorldKind::Lab,
        kernel: None,
        preempt: None,
        scheduler: (*scheduler).to_owned(),
        alike: false,
    };
    schedulers.iter().map(column).collect()
}

/// Which of `schedulers` keeps which law, where the machine of each has its CPUs numbered by
/// `order`.
fn kept(laws: &[Found], schedulers: &[&str], order: Option<&[u16]>) -> Kept {
    let folder = tempfile::tempdir().expect("a folder");
    let numbered = |found: &Found| {
        let law = &found.law;
        let machine = order.map(|order| renumbered(law, order, folder.path()));
        let machine = machine.unwrap_or_else(|| law.machine.clone());
        let law = Law {
            machine,
            ..law.clone()
        };
        Found {
            law,
            ..found.clone()
        }
    };
    let (laws, columns): (Vec<_>, _) = (laws.iter().map(numbered).collect(), columns(schedulers));
    let cells = judged(&laws, &columns);
    let cells = cells.iter();
    let holds = cells.filter(|cell| cell.judged.verdict == Verdict::Holds);
    let named = holds.map(|cell| (cell.law.name.clone(), cell.column.scheduler.clone()));
    named.collect()
}

/// A file with the machine of `law`: those of its CPUs that the law uses are numbered by `order`.
fn renumbered(law: &Law, order: &[u16], folder: &Path) -> String {
    let text = builtin(&law.machine).expect("a machine that comes with WarmQ");
    let machine = read_toml(&law.machine, text).expect("a machine that can be read");
    let used = order.iter().copied().filter(|cpu| *cpu < law.cpus);
    let numbers: Vec<u16> = used.chain(law.cpus..machine.cpus.len() as u16).collect();
    let table = format!("[topology]\nnumbers = {numbers:?}\n");
    assert!(!text.contains("numbers ="), "it has numbers of its own");
    let file = folder.join(format!("{}-{}.toml", law.machine, law.cpus));
    std::fs::write(&file, text.replacen("[topology]\n", &table, 1)).expect("a file");
    file.display().to_string()
}

/// Laws with several CPUs, without those that are kept by chance.
fn laws() -> Vec<Found> {
    let mut laws = all_shipped().expect("laws");
    laws.retain(|found| found.law.cpus > 1 && !BY_CHANCE.contains(&found.law.name.as_str()));
    assert!(laws.iter().all(|found| found.law.cpus <= MOST));
    laws
}

/// By default one case, the same each time; `PROPTEST_CASES` asks for so many others.
fn runner() -> TestRunner {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => TestRunner::new(ProptestConfig::default()),
        None => {
            let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
            TestRunner::new_with_rng(ProptestConfig::with_cases(1), random)
        }
    }
}

#[test]
fn whoever_keeps_a_law_keeps_it_whatever_the_numbers_of_the_cpus() {
    let laws = laws();
    let usual = kept(&laws, &SCHEDULERS, None);
    assert!(usual.len() > 50, "so few are kept: {usual:?}");
    let order = || Just((0..MOST).collect::<Vec<u16>>()).prop_shuffle();
    let (some, others) = SCHEDULERS.split_at(SCHEDULERS.len() / 2);
    let checked = runner().run(&(order(), order()), |(order, another)| {
        let mut now = kept(&laws, some, Some(&order));
        now.extend(kept(&laws, others, Some(&another)));
        let lost = usual.difference(&now);
        let mut broken: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (law, scheduler) in lost {
            broken.entry(law).or_default().push(scheduler);
        }
        prop_assert!(
            broken.is_empty(),
            "numbered {order:?} and {another:?}: broken {broken:?}"
        );
        Ok(())
    });
    checked.unwrap_or_else(|failure| panic!("{failure}"));
}
