//! Laws of the machines that come with WarmQ.

use std::collections::BTreeSet;

use warmq_machine::{
    Coherence, MachineDescription, NOT_GIVEN, Overrides, builtin, builtin_names, read_toml,
};
use warmq_units::{Bytes, CpuId};

fn shipped(name: &str) -> MachineDescription {
    let text = builtin(name).unwrap();
    read_toml(name, text).unwrap_or_else(|error| panic!("{error}"))
}

fn all() -> impl Iterator<Item = MachineDescription> {
    builtin_names().map(shipped)
}

#[test]
fn every_shipped_machine_can_be_read_and_bears_the_name_of_its_file() {
    for name in builtin_names() {
        assert_eq!(shipped(name).name, name);
    }
    assert!(builtin_names().is_sorted());
    assert_eq!(builtin("no-such-machine"), None);
}

#[test]
fn every_file_in_the_folder_of_machines_is_shipped() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|file| file.strip_suffix(".toml").map(str::to_owned))
        .collect();
    assert_eq!(files, builtin_names().map(str::to_owned).collect());
}

#[test]
fn every_number_of_a_shipped_machine_has_a_source() {
    for machine in all() {
        let costs = machine.costs.values().flat_map(|costs| costs.iter());
        let sources = machine.sources.iter();
        for (key, source) in sources.chain(costs.map(|(name, cost)| (name, &cost.source))) {
            assert!(
                source != NOT_GIVEN && source.len() > 10,
                "{}: {key}",
                machine.name
            );
        }
        let groups: Vec<&str> = machine.sources.keys().map(String::as_str).collect();
        for group in [
            "cpu",
            "topology",
            "cache.l1",
            "cache.l2",
            "coherence",
            "memory",
        ] {
            assert!(groups.contains(&group), "{}: {group}", machine.name);
        }
    }
}

#[test]
fn every_shipped_machine_names_the_same_costs_or_none() {
    let names = |machine: &MachineDescription| -> Option<Vec<String>> {
        let costs = machine.costs.get("linux-2.4")?;
        Some(costs.keys().cloned().collect())
    };
    let expected = names(&shipped("p3xeon-8way")).unwrap();
    assert_eq!(expected.len(), 29);
    for machine in all() {
        let named = names(&machine);
        assert!(
            named.is_none_or(|names| names == expected),
            "{}",
            machine.name
        );
    }
}

#[test]
fn the_machines_of_the_paper_are_as_the_paper_has_them() {
    let (a, b) = (shipped("ppro-4way"), shipped("p3xeon-8way"));
    for (machine, cpus, khz, l2, memory) in
        [(&a, 4, 200_000, 512, 640), (&b, 8, 550_000, 1024, 1024)]
    {
        assert_eq!(machine.cpus.len(), cpus);
        assert_eq!(machine.clock.khz(), khz);
        let cache = machine.caches_of(CpuId(0)).nth(1).unwrap();
        assert_eq!(
            (cache.size, cache.ways, cache.line),
            (Bytes::from_kb(l2), 4, Bytes(32))
        );
        assert_eq!(cache.cpus, [CpuId(0)]);
        assert_eq!(machine.memory.size, Bytes::from_mb(memory));
        assert!(matches!(machine.coherence, Coherence::Bus { .. }));
    }
}

#[test]
fn the_large_servers_have_the_domains_in_their_names() {
    for (name, sockets, llcs, cpus) in [("epyc-12llc", 1, 12, 192), ("server-24llc", 2, 24, 384)] {
        let machine = shipped(name);
        assert_eq!(
            (machine.sockets(), machine.llcs(), machine.cpus.len()),
            (sockets, llcs, cpus)
        );
        assert_eq!(machine.siblings(CpuId(0)).count(), 2);
        assert_eq!(machine.cpus_of_llc(0).count(), 16);
    }
}

#[test]
fn a_sweep_over_the_second_level_changes_its_size_only() {
    let machine = shipped("ppro-4way");
    for kb in [256, 512, 1024] {
        let size = Bytes::from_kb(kb);
        let derived = machine
            .with_overrides(&Overrides::default().cache(2, size))
            .unwrap();
        for (before, after) in machine.caches.iter().zip(&derived.caches) {
            let expected = if before.level == 2 { size } else { before.size };
            assert_eq!(after.size, expected);
            assert_eq!((after.ways, after.latency), (before.ways, before.latency));
        }
    }
}

#[test]
fn fewer_cpus_are_the_first_ones_with_their_caches() {
    let machine = shipped("server-24llc");
    let derived = machine
        .with_overrides(&Overrides::default().first_cpus(12))
        .unwrap();
    assert_eq!(derived.cpus, machine.cpus[..12]);
    assert_eq!((derived.llcs(), derived.sockets()), (2, 1));
    let shared: Vec<usize> = derived
        .caches
        .iter()
        .filter(|cache| cache.level == 3)
        .map(|cache| cache.cpus.len())
        .collect();
    assert_eq!(shared, [8, 4]);
}

#[test]
fn any_number_of_first_cpus_is_a_machine() {
    for machine in all() {
        for cpus in 1..=machine.cpus.len() as u16 {
            let derived = machine.with_overrides(&Overrides::default().first_cpus(cpus));
            assert_eq!(derived.unwrap().cpus.len(), usize::from(cpus));
        }
    }
}

#[test]
fn overrides_that_make_no_machine_are_refused() {
    let machine = shipped("ppro-4way");
    let refusal = |overrides: Overrides| machine.with_overrides(&overrides).unwrap_err();
    let none = Overrides::default;
    assert_eq!(refusal(none().first_cpus(0)).key, "cpus");
    let five = refusal(none().first_cpus(5));
    assert_eq!(
        five.to_string(),
        "cpus: ppro-4way has 4 CPUs, not 5; give a number from 1 to 4"
    );
    assert_eq!(refusal(none().cache(3, Bytes::from_mb(1))).key, "l3");
    assert_eq!(refusal(none().cache(2, Bytes(100))).key, "cache.l2.ways");
    assert_eq!(refusal(none().cache(2, Bytes(0))).key, "cache.l2.size");
}

#[test]
fn a_machine_names_a_card_that_there_is() {
    assert_eq!(shipped("p4").card.unwrap().name, "bcm5752");
    assert_eq!(shipped("p3xeon-8way").card, None);
    let text = builtin("p4").unwrap().replace("bcm5752", "ne2000");
    let problems = read_toml("p4.toml", &text).unwrap_err().to_string();
    assert!(problems.contains("`network.card`"), "{problems}");
    assert!(problems.contains("intel-e100"), "{problems}");
}

/// The packet costs of machine C meet what they are fitted to: at 85 Kpps the CPU has nothing left
/// for more than a sleep for each five packets, and at 95 for none; a sleep for each packet fits at
/// 40 Kpps, and softirqs take 1.3 us a packet at 150 Kpps.
#[test]
fn the_machines_of_the_starvation_paper_have_the_costs_of_its_kernels() {
    let reference = shipped("p3xeon-8way");
    let names: Vec<&String> = reference.costs["linux-2.4"].keys().collect();
    for (name, cpus) in [("p4", 1), ("core2duo", 2)] {
        let machine = shipped(name);
        assert_eq!((machine.cpus.len(), machine.llcs()), (cpus, 1));
        assert_eq!(machine.clock.khz(), 3_200_000);
        for kernel in ["linux-2.6.16", "linux-2.6.24"] {
            let own: Vec<&String> = machine.costs[kernel].keys().collect();
            assert_eq!(own, names, "{name} {kernel}");
        }
    }
    let costs = &shipped("p4").costs["linux-2.6.16"];
    let ns = |names: &[&str]| -> u64 {
        let cycles: u64 = names.iter().map(|name| costs[*name].cycles.0).sum();
        cycles * 10 / 32
    };
    let interrupt = ns(&["interrupt_entry", "interrupt_exit"]);
    let packet = ns(&["network_packet"]);
    let receive = ns(&["system_call", "socket_receive"]);
    // Two packets share an interrupt at 85 Kpps, and three at 150.
    let each = interrupt / 2 + packet + receive;
    assert!((10_200..10_520).contains(&each), "{each}");
    let switch = ns(&["schedule_fixed", "context_switch", "mm_switch"]);
    let sleep = ns(&["wakeup"]) + 2 * switch;
    assert!(85 * (each + sleep / 5) > 1_000_000, "{each} {sleep}");
    let with_sleep = interrupt + packet + sleep + receive;
    assert!(with_sleep <= 25_000, "{with_sleep}");
    let offered = interrupt / 3 + packet;
    assert!((1_200..=1_350).contains(&offered), "{offered}");
}

/// On a bus all memory is as far from each CPU; where sockets have memory of their own, each is a
/// node.
#[test]
fn sockets_are_memory_nodes_unless_they_share_a_bus() {
    let nodes = |name: &str| {
        let machine = shipped(name);
        let nodes = machine.cpu_ids().map(|cpu| machine.node(cpu));
        nodes.collect::<BTreeSet<u16>>().len()
    };
    assert_eq!(shipped("p3xeon-8way").sockets(), 2);
    assert_eq!(nodes("p3xeon-8way"), 1);
    assert_eq!(nodes("server-24llc"), 2);
    assert_eq!(nodes("epyc-12llc"), 1);
}
