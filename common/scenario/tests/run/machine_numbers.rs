//! Numbers of the machine in expressions.

use proptest::prelude::*;
use warmq_config::Chosen;
use warmq_scenario::{Bound, ObjectId, Scenario, Site, TaskKindId};
use warmq_units::Bytes;

const SITE: Site = Site {
    cpus: 64,
    llcs: 8,
    nodes: 2,
    sockets: 1,
    cores: 32,
};

fn bound(text: &str, site: &Site) -> Bound {
    let scenario = Scenario::read("s.toml", text).unwrap_or_else(|problems| panic!("{problems}"));
    let defaults = Chosen::new(scenario.settings(), Default::default()).expect("none is chosen");
    scenario
        .bind(&defaults, site)
        .unwrap_or_else(|problems| panic!("{problems}"))
}

/// How many tasks `count` makes on `site`.
fn tasks(count: &str, site: &Site) -> u64 {
    let text = format!("[task.t]\ncount = \"{count}\"\nbody = [{{ run = \"1ms\" }}]\n");
    bound(&text, site).tasks(TaskKindId(0))
}

#[test]
fn a_count_depends_on_the_machine() {
    let table = [
        ("cpus", 64),
        ("cpus - cores + llcs * nodes / sockets", 48),
        ("2 per llc", 16),
        ("0.9 per cpu", 57),
        ("0.001 per cpu", 1),
        ("0.5 per node + 3", 4),
        ("(1 per core) * 2", 64),
    ];
    for (count, wanted) in table {
        assert_eq!(tasks(count, &SITE), wanted, "{count}");
    }
    assert_eq!(tasks("cpus * sockets + cores", &Site::default()), 8);
}

proptest! {
    #[test]
    fn a_share_is_rounded_down_and_at_least_one(thousandths in 1..20_000_u64, cpus in 1..4_000_u64) {
        let count = format!("{}.{:03} per cpu", thousandths / 1_000, thousandths % 1_000);
        let site = Site { cpus, ..SITE };
        prop_assert_eq!(tasks(&count, &site), (thousandths * cpus / 1_000).max(1));
    }
}

#[test]
fn what_a_machine_makes_impossible_is_refused_when_it_is_known() {
    let text = "[task.t]\ncount = \"1000 * cpus\"\nbody = [{ run = \"1ms\" }]\n";
    let scenario = Scenario::read("s.toml", text).expect("4000 tasks are allowed");
    let none = Chosen::new(Vec::new(), Default::default()).expect("nothing is chosen");
    let large = Site { cpus: 400, ..SITE };
    let refused = scenario.bind(&none, &large).unwrap_err().to_string();
    assert!(refused.contains("400000 tasks"), "{refused}");
}

#[test]
fn memory_is_that_of_all_regions() {
    let text = "[region.even]\nfor = { i = \"llcs\", j = 3 }\nbytes = \"4KB\"\n\
                [region.growing]\ncount = 3\nbytes = \"1MB\"\n\
                [region.each]\nfor = { i = 4 }\nbytes = \"(i + 1) * 1KB\"\n\
                [task.t]\nbody = [{ run = \"1ms\" }]\n";
    let bound = bound(text, &SITE);
    let memory = |page: u64| bound.memory(Bytes(page)).expect("a sum").0;
    assert_eq!(memory(1), (8 * 3 * 4 + 3 * 1024 + 10) << 10);
    assert_eq!(memory(4096), (8 * 3 * 4 + 3 * 1024 + 4 * 4) << 10);
}

#[test]
fn the_sum_of_all_regions_has_at_most_63_bits() {
    // As many and as large as can be: 10^6 times 2^36 is below 2^56.
    let text = "[region.r]\ncount = 1000000\nbytes = \"64GB\"\n\
                [task.t]\nbody = [{ run = \"1ms\" }]\n";
    assert!(bound(text, &SITE).memory(Bytes(1)).is_ok());
    let more = format!("{text}[region.more]\nbytes = \"64GB\"\n");
    let error = Scenario::read("s.toml", &more).unwrap_err().to_string();
    assert!(error.contains("1000000 are the most"), "{error}");
    // The first and the last of these are small, and those in between have up to 25 TB each.
    let between = "[region.r]\nfor = { i = 1000000 }\nbytes = \"(i * (999999 - i) * 100 + 1) * 1B\"\n\
                   [task.t]\nbody = [{ run = \"1ms\" }]\n";
    let error = bound(between, &SITE).memory(Bytes(1)).unwrap_err();
    assert!(error.to_string().contains("larger than 63 bits"), "{error}");
}

#[test]
fn datagrams_of_all_sources_have_numbers_of_their_own() {
    let text = "[datagram.d]\n[source.a]\ncount = 3\nto = \"d\"\nbytes = \"64B\"\nrate = \"1 per s\"\n\
                [source.b]\nto = \"d\"\nbytes = \"64B\"\nrate = \"1 per s\"\n\
                [task.t]\nbody = [{ receive = \"d\" }]\n";
    let bound = bound(text, &SITE);
    let mut numbers: Vec<u64> = [(1, 0), (1, 1), (1, 2), (2, 0)]
        .into_iter()
        .flat_map(|(table, source)| {
            [0, 1, (1 << 40) - 1].map(|number| (ObjectId(table), source, number))
        })
        .map(|(table, source, datagram)| bound.echo_number(table, source, datagram))
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 12);
}
