//! Known sequences of MESI, step by step: what serves each access, the resulting states, the bus
//! transactions.

use warmq_machine::LineState::{self, Exclusive, Modified, Shared};
use warmq_machine::{Access, BusCounts, Hierarchy, MachineDescription, Options, Served};
use warmq_units::{Address, CpuId, Instant};

use crate::cache_support::machines::{LINE, Level, bus, directory, machine};

/// The states of the watched line: level 1 and 2 of CPU 0, then those of CPU 1.
type States = [Option<LineState>; 4];

/// CPU, access, line; what serves it; the states of line 0 after it; what the bus carried so far:
/// lines read, lines read to be written, upgrades, write-backs, and of the reads those that were
/// supplied by a cache, and those that memory took in.
type Row = (u16, Access, u64, Served, States, [u64; 6]);

const READ: Access = Access::Read;
const WRITE: Access = Access::Write;
const E: Option<LineState> = Some(Exclusive);
const M: Option<LineState> = Some(Modified);
const S: Option<LineState> = Some(Shared);
const I: Option<LineState> = None;

/// Two CPUs with a level 1 of one set of two ways, and a level 2 of one set of four.
fn two_cpus(inclusive: bool) -> MachineDescription {
    let far = Level::lru(1, 4);
    let far = if inclusive { far.inclusive() } else { far };
    machine(2, &[Level::lru(1, 2), far], bus())
}

fn carried(bus: &BusCounts) -> [u64; 6] {
    [
        bus.read_lines,
        bus.reads_for_ownership,
        bus.upgrades,
        bus.write_backs,
        bus.supplied,
        bus.implicit_write_backs,
    ]
}

/// Plays the rows with the code for such pairs, and with the general code, which observing takes.
fn plays(machine: &MachineDescription, rows: &[Row]) {
    let general = Options {
        classify_misses: true,
        histogram: true,
    };
    for options in [Options::default(), general] {
        let mut caches = Hierarchy::new(machine, options);
        for (step, (cpu, access, line, served, states, transactions)) in rows.iter().enumerate() {
            let address = Address(line * LINE);
            let outcome = caches.access(CpuId(*cpu), address, *access, Instant(0));
            assert_eq!(outcome.served, *served, "step {step} is answered by");
            let places = [(0, 1), (0, 2), (1, 1), (1, 2)];
            let found = places.map(|(cpu, level)| caches.state(CpuId(cpu), level, Address(0)));
            assert_eq!(found, *states, "states after step {step}");
            let bus = caches.counts().bus;
            assert_eq!(
                carried(&bus),
                *transactions,
                "transactions after step {step}"
            );
            assert_eq!(caches.check_coherence(), Ok(()), "after step {step}");
        }
    }
}

#[test]
fn two_readers_share_a_clean_line_from_memory() {
    let rows = [
        (0, READ, 0, Served::Memory, [E, E, I, I], [1, 0, 0, 0, 0, 0]),
        (1, READ, 0, Served::Memory, [S, S, S, S], [2, 0, 0, 0, 0, 0]),
        (
            0,
            READ,
            0,
            Served::Level(1),
            [S, S, S, S],
            [2, 0, 0, 0, 0, 0],
        ),
    ];
    plays(&two_cpus(false), &rows);
    plays(&two_cpus(true), &rows);
}

#[test]
fn a_writer_after_a_reader_owns_the_line_alone() {
    let rows = [
        (0, READ, 0, Served::Memory, [E, E, I, I], [1, 0, 0, 0, 0, 0]),
        (
            1,
            WRITE,
            0,
            Served::Memory,
            [I, I, M, E],
            [1, 1, 0, 0, 0, 0],
        ),
    ];
    plays(&two_cpus(false), &rows);
    plays(&two_cpus(true), &rows);
}

#[test]
fn a_writer_among_readers_upgrades_without_data() {
    let rows = [
        (0, READ, 0, Served::Memory, [E, E, I, I], [1, 0, 0, 0, 0, 0]),
        (1, READ, 0, Served::Memory, [S, S, S, S], [2, 0, 0, 0, 0, 0]),
        (
            1,
            WRITE,
            0,
            Served::Level(1),
            [I, I, M, E],
            [2, 0, 1, 0, 0, 0],
        ),
        (
            1,
            WRITE,
            0,
            Served::Level(1),
            [I, I, M, E],
            [2, 0, 1, 0, 0, 0],
        ),
    ];
    plays(&two_cpus(false), &rows);
    plays(&two_cpus(true), &rows);
}

#[test]
fn an_upgrade_can_begin_in_level_2() {
    let rows = [
        (0, READ, 0, Served::Memory, [E, E, I, I], [1, 0, 0, 0, 0, 0]),
        (1, READ, 0, Served::Memory, [S, S, S, S], [2, 0, 0, 0, 0, 0]),
        (1, READ, 1, Served::Memory, [S, S, S, S], [3, 0, 0, 0, 0, 0]),
        (1, READ, 2, Served::Memory, [S, S, I, S], [4, 0, 0, 0, 0, 0]),
        (
            1,
            WRITE,
            0,
            Served::Level(2),
            [I, I, M, E],
            [4, 0, 1, 0, 0, 0],
        ),
    ];
    plays(&two_cpus(false), &rows);
    plays(&two_cpus(true), &rows);
}

#[test]
fn a_reader_after_a_writer_is_supplied_and_memory_takes_the_line_in() {
    let rows = [
        (
            0,
            WRITE,
            0,
            Served::Memory,
            [M, E, I, I],
            [0, 1, 0, 0, 0, 0],
        ),
        (1, READ, 0, Served::Cache, [S, S, S, S], [1, 1, 0, 0, 1, 1]),
        (
            0,
            WRITE,
            0,
            Served::Level(1),
            [M, E, I, I],
            [1, 1, 1, 0, 1, 1],
        ),
    ];
    plays(&two_cpus(false), &rows);
    plays(&two_cpus(true), &rows);
}

#[test]
fn a_writer_after_a_writer_is_supplied_and_the_line_stays_modified() {
    let rows = [
        (
            0,
            WRITE,
            0,
            Served::Memory,
            [M, E, I, I],
            [0, 1, 0, 0, 0, 0],
        ),
        (1, WRITE, 0, Served::Cache, [I, I, M, E], [0, 2, 0, 0, 1, 0]),
        (0, WRITE, 0, Served::Cache, [M, E, I, I], [0, 3, 0, 0, 2, 0]),
    ];
    plays(&two_cpus(false), &rows);
    plays(&two_cpus(true), &rows);
}

#[test]
fn a_modified_line_that_leaves_goes_outwards_level_by_level() {
    let rows = [
        (
            0,
            WRITE,
            0,
            Served::Memory,
            [M, E, I, I],
            [0, 1, 0, 0, 0, 0],
        ),
        (0, READ, 1, Served::Memory, [M, E, I, I], [1, 1, 0, 0, 0, 0]),
        (0, READ, 2, Served::Memory, [I, M, I, I], [2, 1, 0, 0, 0, 0]),
        (0, READ, 3, Served::Memory, [I, M, I, I], [3, 1, 0, 0, 0, 0]),
        (0, READ, 4, Served::Memory, [I, I, I, I], [4, 1, 0, 1, 0, 0]),
    ];
    plays(&two_cpus(false), &rows);
    plays(&two_cpus(true), &rows);
}

#[test]
fn a_line_that_leaves_an_inclusive_level_2_leaves_level_1_and_one_that_is_not_inclusive_keeps_it() {
    // Line 0 stays the newest but one of level 1, while level 2 sees no use of it.
    let until_level_2_is_full = [
        (
            0,
            WRITE,
            0,
            Served::Memory,
            [M, E, I, I],
            [0, 1, 0, 0, 0, 0],
        ),
        (0, READ, 1, Served::Memory, [M, E, I, I], [1, 1, 0, 0, 0, 0]),
        (
            0,
            WRITE,
            0,
            Served::Level(1),
            [M, E, I, I],
            [1, 1, 0, 0, 0, 0],
        ),
        (0, READ, 2, Served::Memory, [M, E, I, I], [2, 1, 0, 0, 0, 0]),
        (
            0,
            READ,
            0,
            Served::Level(1),
            [M, E, I, I],
            [2, 1, 0, 0, 0, 0],
        ),
        (0, READ, 3, Served::Memory, [M, E, I, I], [3, 1, 0, 0, 0, 0]),
        (
            0,
            READ,
            0,
            Served::Level(1),
            [M, E, I, I],
            [3, 1, 0, 0, 0, 0],
        ),
    ];
    let then = |row: Row| [&until_level_2_is_full[..], &[row]].concat();
    let back_invalidated = then((0, READ, 4, Served::Memory, [I; 4], [4, 1, 0, 1, 0, 0]));
    plays(&two_cpus(true), &back_invalidated);
    let kept = then((0, READ, 4, Served::Memory, [M, I, I, I], [4, 1, 0, 0, 0, 0]));
    plays(&two_cpus(false), &kept);
}

#[test]
fn no_machine_that_passes_the_check_has_memory_its_caches_cannot_distinguish() {
    let mut tall = machine(1, &[Level::lru(1, 2)], bus());
    let tags = (1_u64 << 30) - 1;
    let page = tall.memory.page.0;
    tall.memory.size.0 = tags * LINE / page * page;
    assert_eq!(tall.check(), Ok(()));
    let last = Address(tall.memory.size.0 - 1);
    let mut caches = Hierarchy::new(&tall, Options::default());
    assert_eq!(
        caches.access(CpuId(0), last, WRITE, Instant(0)).served,
        Served::Memory
    );
    assert_eq!(caches.state(CpuId(0), 1, last), M);

    tall.memory.size.0 += page;
    let flaw = tall.check().unwrap_err();
    assert!(flaw.to_string().contains("level-1"), "{flaw}");
}

/// Four CPUs in two domains: a level 1 of one set of two ways each, behind it a victim cache of one
/// set of four ways a domain.
fn two_domains() -> MachineDescription {
    let far = Level::lru(1, 4).victim().shared_by(2);
    machine(4, &[Level::lru(1, 2), far], directory())
}

#[test]
fn a_victim_cache_takes_in_what_level_1_evicts_and_hands_it_back() {
    // Both CPUs share the level 2, so that its state is there twice.
    let rows = [
        (
            0,
            WRITE,
            0,
            Served::Memory,
            [M, I, I, I],
            [0, 1, 0, 0, 0, 0],
        ),
        (0, READ, 1, Served::Memory, [M, I, I, I], [1, 1, 0, 0, 0, 0]),
        (0, READ, 2, Served::Memory, [I, M, I, M], [2, 1, 0, 0, 0, 0]),
        // Line 0 comes back modified, and leaves level 2.
        (
            0,
            READ,
            0,
            Served::Level(2),
            [M, I, I, I],
            [2, 1, 0, 0, 0, 0],
        ),
        // Level 1 of CPU 0 supplies it; the domain's level 2 takes the new data.
        (1, READ, 0, Served::Cache, [S, M, S, M], [2, 1, 0, 0, 0, 0]),
        // Level 2 hands line 1, which CPU 0 evicted, to CPU 1.
        (
            1,
            READ,
            1,
            Served::Level(2),
            [S, M, S, M],
            [2, 1, 0, 0, 0, 0],
        ),
    ];
    plays(&two_domains(), &rows);
}

#[test]
fn under_a_victim_cache_a_neighbor_supplies_a_clean_line() {
    let rows = [
        (0, READ, 0, Served::Memory, [E, I, I, I], [1, 0, 0, 0, 0, 0]),
        (1, READ, 0, Served::Cache, [S, I, S, I], [1, 0, 0, 0, 0, 0]),
        // The other domain has no neighbor, and memory is up to date.
        (2, READ, 0, Served::Memory, [S, I, S, I], [2, 0, 0, 0, 0, 0]),
        (
            1,
            WRITE,
            0,
            Served::Level(1),
            [I, I, M, I],
            [2, 0, 1, 0, 0, 0],
        ),
    ];
    plays(&two_domains(), &rows);
}

#[test]
fn a_device_that_writes_a_line_takes_it_from_all_caches() {
    for into_llc in [false, true] {
        let mut machine = two_domains();
        machine.memory.dma_into_llc = into_llc;
        let mut caches = Hierarchy::new(&machine, Options::default());
        caches.access(CpuId(0), Address(0), WRITE, Instant(0));
        caches.dma_write(Address(0), Instant(0));
        let level_2 = caches.state(CpuId(0), 2, Address(0));
        assert_eq!(caches.state(CpuId(0), 1, Address(0)), I);
        assert_eq!(level_2, if into_llc { M } else { I });
        let counts = caches.counts();
        let (to_memory, into_caches) = (counts.bus.dma_writes, counts.dma_into_llc);
        assert_eq!(
            (to_memory, into_caches),
            (u64::from(!into_llc), u64::from(into_llc))
        );
        assert_eq!(counts.bus.write_backs, 0, "all of the line was overwritten");
        let served = caches.access(CpuId(1), Address(0), READ, Instant(0)).served;
        assert_eq!(served == Served::Memory, !into_llc);
        assert_eq!(caches.check_coherence(), Ok(()));
    }
}
