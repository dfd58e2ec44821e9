//! The fast caches against the slow ones, on random machines and random streams of accesses.

use proptest::prelude::*;
use warmq_machine::{Access, Hierarchy, Inclusion, MachineDescription, Options, Served};
use warmq_units::{Address, CpuId, Duration, Instant};

use crate::cache_support::machines::{LINE, Level, any_coherence, bus, directory, machine};
use crate::cache_support::reference::Reference;

const OBSERVE_ALL: Options = Options {
    classify_misses: true,
    histogram: true,
};

/// CPU, line, offset in the line, access.
type Step = (u16, u64, u64, Access);

/// One step in so many is a device's write instead, where devices write.
const DMA: usize = 7;

fn any_level() -> impl Strategy<Value = Level> {
    let lru = (1..=5_u64, 1..=5_u32).prop_map(|(sets, ways)| Level::lru(sets, ways));
    let tree = (1..=5_u64, 0..=3_u32).prop_map(|(sets, log)| Level::tree(sets, 1 << log));
    let ages = (1..=5_u64, 1..=5_u32).prop_map(|(sets, ways)| Level::quad_age(sets, ways));
    let inclusion = prop::sample::select(vec![
        Inclusion::NonInclusive,
        Inclusion::Inclusive,
        Inclusion::Victim,
    ]);
    (prop_oneof![lru, tree, ages], inclusion)
        .prop_map(|(level, inclusion)| Level { inclusion, ..level })
}

/// One in five has so many CPUs that the holders of a line do not fit into one word.
fn any_machine() -> impl Strategy<Value = MachineDescription> {
    let levels = prop::collection::vec((any_level(), 0..=3_u32), 1..=4);
    let cpus = prop_oneof![4 => 1..=8_u16, 1 => 9..=40_u16];
    (levels, cpus, any_coherence()).prop_map(|(levels, cpus, coherence)| {
        let mut sharing: Vec<u32> = levels.iter().map(|(_, log)| *log).collect();
        sharing.sort_unstable();
        let share = |((level, _), log): (&(Level, u32), u32)| level.shared_by(1 << log);
        let mut levels: Vec<Level> = levels.iter().zip(sharing).map(share).collect();
        levels[0].inclusion = Inclusion::NonInclusive;
        machine(cpus, &levels, coherence)
    })
}

fn any_access() -> impl Strategy<Value = Access> {
    prop_oneof![2 => Just(Access::Read), 1 => Just(Access::Write)]
}

fn any_steps(lines: u64) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((0..40_u16, 0..lines, 0..LINE, any_access()), 1..300)
}

fn both_agree(machine: &MachineDescription, steps: &[Step], far: u64) -> Result<(), TestCaseError> {
    agree(machine, steps, far, false)
}

fn agree(
    machine: &MachineDescription,
    steps: &[Step],
    far: u64,
    devices_write: bool,
) -> Result<(), TestCaseError> {
    let mut fast = Hierarchy::new(machine, OBSERVE_ALL);
    let mut slow = Reference::new(machine);
    let cpus = machine.cpus.len() as u16;
    for (index, (cpu, line, offset, access)) in steps.iter().enumerate() {
        let (cpu, address) = (cpu % cpus, line * far * LINE + offset);
        let quiet = Instant(0) + Duration::from_us(5) * index as u64;
        if devices_write && index % DMA == 0 {
            slow.dma_write(address);
            fast.dma_write(Address(address), quiet);
            continue;
        }
        let expected = slow.access(usize::from(cpu), address, *access);
        let outcome = fast.access(CpuId(cpu), Address(address), *access, quiet);
        prop_assert_eq!(
            outcome,
            expected,
            "step {}: cpu{} {:#x}",
            index,
            cpu,
            address
        );
        if far == 1 {
            prop_assert_eq!(fast.check_coherence(), Ok(()), "after step {}", index);
        }
        for cpu in 0..cpus {
            for level in 1..=4 {
                let expected = slow.state(usize::from(cpu), level, address);
                let state = fast.state(CpuId(cpu), level, Address(address));
                prop_assert_eq!(state, expected, "after step {}, level {}", index, level);
            }
        }
    }
    prop_assert_eq!(fast.check_coherence(), Ok(()));
    same_contents(machine, steps, far, &fast, &slow)?;
    same_counts(cpus, &fast, &slow)
}

fn same_contents(
    machine: &MachineDescription,
    steps: &[Step],
    far: u64,
    fast: &Hierarchy,
    slow: &Reference,
) -> Result<(), TestCaseError> {
    for (_, line, ..) in steps {
        let address = line * far * LINE;
        for cache in &machine.caches {
            let cpu = cache.cpus[0];
            let expected = slow.state(cpu.index(), cache.level, address);
            prop_assert_eq!(fast.state(cpu, cache.level, Address(address)), expected);
        }
    }
    Ok(())
}

fn same_counts(cpus: u16, fast: &Hierarchy, slow: &Reference) -> Result<(), TestCaseError> {
    let counts = fast.counts();
    for cpu in 0..cpus {
        for level in 1..=4 {
            let expected = slow
                .levels
                .get(&(usize::from(cpu), level))
                .copied()
                .unwrap_or_default();
            prop_assert_eq!(counts.level(CpuId(cpu), level), expected);
            prop_assert_eq!(expected.kinds.total(), expected.misses());
        }
    }
    prop_assert_eq!(counts.bus, slow.bus);
    prop_assert_eq!(counts.inner_supplies, slow.inner_supplies);
    prop_assert_eq!(counts.inner_upgrades, slow.inner_upgrades);
    prop_assert_eq!(counts.dma_into_llc, slow.dma_into_llc);
    let bins = counts.histogram().unwrap().bins();
    for (bin, count) in bins.iter().enumerate() {
        prop_assert_eq!(*count, slow.bins.get(&(bin as u64)).copied().unwrap_or(0));
    }
    prop_assert_eq!(counts.transactions_at(0..4096), counts.bus.transactions());
    Ok(())
}

proptest! {
    #[test]
    fn fast_and_slow_caches_agree_on_every_access(
        machine in any_machine(),
        steps in any_steps(24),
    ) {
        both_agree(&machine, &steps, 1)?;
    }

    #[test]
    fn fast_and_slow_caches_agree_where_lines_lie_far_apart(
        machine in any_machine(),
        steps in any_steps(24),
        far in 1..1_u64 << 24,
    ) {
        both_agree(&machine, &steps, far)?;
    }

    #[test]
    fn fast_and_slow_caches_agree_where_devices_write(
        machine in any_machine(),
        into_llc in any::<bool>(),
        steps in any_steps(24),
    ) {
        let mut machine = machine;
        machine.memory.dma_into_llc = into_llc;
        agree(&machine, &steps, 1, true)?;
    }

    #[test]
    fn a_tree_of_any_width_gives_up_what_the_naive_tree_does(
        log in 0..=8_u32,
        sets in 1..4_u64,
        steps in any_steps(600),
    ) {
        both_agree(&machine(1, &[Level::tree(sets, 1 << log)], bus()), &steps, 1)?;
    }

    #[test]
    fn a_fully_associative_lru_cache_has_no_conflict_misses(
        ways in 1..20_u32,
        cpus in 1..=4_u16,
        inclusive in any::<bool>(),
        steps in any_steps(40),
    ) {
        let outer = Level::lru(3, 8);
        let outer = if inclusive { outer.inclusive() } else { outer };
        let machine = machine(cpus, &[Level::lru(1, ways), outer], bus());
        let mut caches = Hierarchy::new(&machine, OBSERVE_ALL);
        run(&mut caches, cpus, &steps);
        prop_assert_eq!(caches.counts().total(1).kinds.conflict, 0);
        prop_assert_eq!(caches.counts().total(1).kinds.total(), caches.counts().total(1).misses());
    }

    #[test]
    fn a_single_cpu_has_no_coherence_misses(level in any_level(), steps in any_steps(40)) {
        let machine = machine(1, &[Level::lru(2, 2), level], directory());
        let mut caches = Hierarchy::new(&machine, OBSERVE_ALL);
        run(&mut caches, 1, &steps);
        for level in 1..=2 {
            prop_assert_eq!(caches.counts().total(level).kinds.coherence, 0);
        }
        prop_assert_eq!(caches.counts().bus.supplied, 0);
    }

    #[test]
    fn observing_changes_no_answer(machine in any_machine(), steps in any_steps(24)) {
        let cpus = machine.cpus.len() as u16;
        let mut plain = Hierarchy::new(&machine, Options::default());
        let mut observed = Hierarchy::new(&machine, OBSERVE_ALL);
        prop_assert_eq!(run(&mut plain, cpus, &steps), run(&mut observed, cpus, &steps));
        prop_assert_eq!(plain.counts().bus, observed.counts().bus);
    }
}

/// Plays `steps` at times that overlap, so that the bus is busy.
fn run(caches: &mut Hierarchy, cpus: u16, steps: &[Step]) -> Vec<Duration> {
    let mut clocks = vec![Instant(0); usize::from(cpus)];
    let step = |(cpu, line, offset, access): &Step| {
        let clock = &mut clocks[usize::from(cpu % cpus)];
        let address = Address(line * LINE + offset);
        let takes = caches
            .access(CpuId(cpu % cpus), address, *access, *clock)
            .takes;
        *clock += takes;
        takes
    };
    steps.iter().map(step).collect()
}

#[test]
fn a_list_a_little_longer_than_the_ways_is_lost_under_lru_and_mostly_kept_under_quad_age() {
    let misses = |level: Level, lines: u64| {
        let mut caches = Hierarchy::new(&machine(1, &[level], bus()), Options::default());
        let mut missed = 0;
        for line in (0..100).flat_map(|_| 0..lines) {
            let at = caches.access(CpuId(0), Address(line * LINE), Access::Read, Instant(0));
            missed += u64::from(at.served == Served::Memory);
        }
        missed
    };
    for lines in [2, 16] {
        assert_eq!(misses(Level::lru(1, 16), lines), lines);
        assert_eq!(misses(Level::quad_age(1, 16), lines), lines);
    }
    assert_eq!(misses(Level::lru(1, 16), 17), 1700);
    assert!((200..700).contains(&misses(Level::quad_age(1, 16), 17)));
    assert_eq!(misses(Level::quad_age(1, 16), 48), 4800);
}
