//! Each law that comes with WarmQ can be broken, and can be kept: shown by the lab's scheduler
//! `broken`.

use std::collections::BTreeMap;

use warmq_config::Kind;
use warmq_experiment::laws::all_shipped;
use warmq_law::{Cell, Column, Found, Verdict};
use warmq_scenario::WorldKind;

use super::judged;

/// The faults that `broken` can have.
fn faults() -> Vec<String> {
    let entry = warmq_sched::scheduler("broken").expect("a scheduler of the lab");
    let settings = entry.settings().into_iter();
    let fault = settings.map(|setting| (setting.name, setting.kind));
    let faults = fault.filter_map(|named| match named {
        (name, Kind::Choice(faults)) if name == "fault" => Some(faults),
        _ => None,
    });
    faults.flatten().filter(|fault| fault != "none").collect()
}

fn under(fault: &str) -> Vec<Column> {
    vec![Column {
        world: WorldKind::Lab,
        kernel: None,
        preempt: None,
        scheduler: format!("broken:fault={fault}"),
        alike: false,
    }]
}

fn said(cells: &[&Cell<'_>]) -> String {
    let one = |cell: &&Cell<'_>| {
        let (law, judged) = (&cell.law.name, &cell.judged);
        format!("{law} in {}: {judged:?}", cell.column)
    };
    cells.iter().map(one).collect::<Vec<_>>().join("\n")
}

#[test]
fn each_law_is_kept_by_a_fair_scheduler_and_broken_by_one_with_the_fault_that_it_names() {
    let (laws, faults) = (all_shipped().unwrap(), faults());
    let sound = under("none");
    let kept = judged(&laws, &sound);
    let played = |cell: &&Cell<'_>| cell.judged.verdict != Verdict::Skipped;
    let played: Vec<&Cell<'_>> = kept.iter().filter(played).collect();
    let wrong = played.iter().copied();
    let wrong: Vec<_> = wrong
        .filter(|cell| cell.judged.verdict != Verdict::Holds)
        .collect();
    assert!(
        wrong.is_empty(),
        "broken without a fault:\n{}",
        said(&wrong)
    );

    let mut by_fault: BTreeMap<&str, Vec<Found>> = BTreeMap::new();
    for found in &laws {
        let law = &found.law;
        let name = &law.name;
        match law.broken_by.as_deref() {
            Some(fault) => {
                let known = faults.iter().any(|known| known == fault);
                assert!(known, "{name}: broken_by is none of {}", faults.join(", "));
                let together = by_fault.entry(fault).or_default();
                together.push(found.clone());
            }
            None => {
                let played = played.iter().any(|cell| cell.law.name == *name);
                assert!(
                    !played,
                    "{name}: write into [law] which fault breaks it: broken_by"
                );
            }
        }
    }
    for (fault, laws) in &by_fault {
        let columns = under(fault);
        let cells = judged(laws, &columns);
        let wrong = cells.iter();
        let wrong: Vec<_> = wrong
            .filter(|cell| cell.judged.verdict != Verdict::Broken)
            .collect();
        assert!(wrong.is_empty(), "not broken by {fault}:\n{}", said(&wrong));
    }
}
