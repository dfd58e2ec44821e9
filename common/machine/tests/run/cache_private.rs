//! The specialized code for machines whose cores each have a private level 1 and 2 gives the
//! answers of the slow model. It is used when nothing is observed, so no option is on here.

use proptest::prelude::*;
use warmq_machine::{
    Access, Counts, Hierarchy, Inclusion, LevelCounts, MachineDescription, Options,
};
use warmq_units::{Address, CpuId, Duration, Instant, Seed};

use crate::cache_support::machines::{LINE, Level, any_coherence, bus, directory, machine};
use crate::cache_support::reference::Reference;

const LEVELS: [u8; 3] = [1, 2, 3];

/// CPU, line, access.
type Step = (u16, u64, Access);

/// Level 1 and 2 with LRU, of each pair of associativities that has code, and of one that has not.
fn any_pairs() -> impl Strategy<Value = MachineDescription> {
    pairs_of(prop_oneof![6 => 1..=8_u16, 1 => 9..=40_u16])
}

fn pairs_of(cpus: impl Strategy<Value = u16>) -> impl Strategy<Value = MachineDescription> {
    let ways = prop::sample::select(vec![
        (2, 4),
        (2, 8),
        (4, 4),
        (4, 8),
        (4, 16),
        (8, 4),
        (8, 8),
        (8, 16),
        (2, 2),
    ]);
    let shape = (ways, 0..=2_u32, 0..=2_u32, any::<bool>(), 1..=2_u16);
    (shape, cpus, any_coherence()).prop_map(|(shape, cpus, coherence)| {
        let ((near, far), near_sets, far_sets, inclusive, threads) = shape;
        let near = Level::lru(1 << near_sets, near).shared_by(threads);
        let far = Level::lru(1 << far_sets, far).shared_by(threads);
        let far = if inclusive { far.inclusive() } else { far };
        machine(cpus, &[near, far], coherence)
    })
}

/// Level 1 and 2 with tree-PLRU, of each pair of associativities that has code, alone or before a
/// shared level 3 of each kind.
fn any_tree_pairs() -> impl Strategy<Value = MachineDescription> {
    let ways = prop::sample::select(vec![(4, 8), (8, 4), (8, 8), (8, 16)]);
    let far = prop::sample::select(vec![Inclusion::NonInclusive, Inclusion::Inclusive]);
    let behind = prop::option::of(prop::sample::select(vec![
        Inclusion::NonInclusive,
        Inclusion::Inclusive,
        Inclusion::Victim,
    ]));
    let shape = (ways, 0..=1_u32, 0..=1_u32, far, 1..=2_u16, behind);
    let cpus = prop_oneof![14 => 1..=8_u16, 1 => 66..=80_u16];
    (shape, cpus, any::<bool>()).prop_map(|(shape, cpus, snooping)| {
        let ((near, far), near_sets, far_sets, inclusion, threads, behind) = shape;
        let near = Level::tree(1 << near_sets, near).shared_by(threads);
        let far = Level::tree(1 << far_sets, far).shared_by(threads);
        let mut levels = vec![near, Level { inclusion, ..far }];
        let shared = Level::tree(2, 16).shared_by(4);
        levels.extend(behind.map(|inclusion| Level {
            inclusion,
            ..shared
        }));
        machine(cpus, &levels, if snooping { bus() } else { directory() })
    })
}

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let access = prop_oneof![2 => Just(Access::Read), 1 => Just(Access::Write)];
    (8..80_u64).prop_flat_map(move |lines| {
        prop::collection::vec((0..140_u16, 0..lines, access.clone()), 1..600)
    })
}

fn without_causes(counts: LevelCounts) -> LevelCounts {
    LevelCounts {
        kinds: Default::default(),
        ..counts
    }
}

fn same_counts(cpus: u16, counts: &Counts, slow: &Reference) -> Result<(), TestCaseError> {
    for (cpu, level) in (0..cpus).flat_map(|cpu| LEVELS.map(|level| (cpu, level))) {
        let known = slow.levels.get(&(usize::from(cpu), level)).copied();
        let expected = without_causes(known.unwrap_or_default());
        prop_assert_eq!(counts.level(CpuId(cpu), level), expected);
    }
    prop_assert_eq!(counts.bus, slow.bus);
    prop_assert_eq!(counts.inner_supplies, slow.inner_supplies);
    prop_assert_eq!(counts.inner_upgrades, slow.inner_upgrades);
    Ok(())
}

fn agree(
    machine: &MachineDescription,
    steps: &[Step],
    far: u64,
    devices_write: bool,
) -> Result<(), TestCaseError> {
    let mut fast = Hierarchy::new(machine, Options::default());
    let mut slow = Reference::new(machine);
    let cpus = machine.cpus.len() as u16;
    for (index, (cpu, line, access)) in steps.iter().enumerate() {
        let (cpu, address) = (cpu % cpus, line * far * LINE);
        let quiet = Instant(0) + Duration::from_us(5) * index as u64;
        if devices_write && index % 7 == 0 {
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
        for (cpu, level) in (0..cpus).flat_map(|cpu| LEVELS.map(|level| (cpu, level))) {
            let expected = slow.state(usize::from(cpu), level, address);
            let state = fast.state(CpuId(cpu), level, Address(address));
            prop_assert_eq!(state, expected, "after step {}, level {}", index, level);
        }
        if far == 1 {
            prop_assert_eq!(fast.check_coherence(), Ok(()), "after step {}", index);
        }
    }
    prop_assert_eq!(fast.check_coherence(), Ok(()));
    same_counts(cpus, fast.counts(), &slow)?;
    for (_, line, _) in steps {
        for cache in &machine.caches {
            let (cpu, address) = (cache.cpus[0], line * far * LINE);
            let expected = slow.state(cpu.index(), cache.level, address);
            prop_assert_eq!(fast.state(cpu, cache.level, Address(address)), expected);
        }
    }
    Ok(())
}

/// The busy bus, which the slow caches do not have: the general code answers what this does.
fn observing_changes_nothing(
    machine: &MachineDescription,
    steps: &[Step],
) -> Result<(), TestCaseError> {
    let observe_all = Options {
        classify_misses: true,
        histogram: true,
    };
    let mut plain = Hierarchy::new(machine, Options::default());
    let mut observed = Hierarchy::new(machine, observe_all);
    let cpus = machine.cpus.len() as u16;
    let mut clocks = vec![Instant(0); usize::from(cpus)];
    for (cpu, line, access) in steps {
        let (cpu, address) = (cpu % cpus, Address(line * LINE));
        let clock = &mut clocks[usize::from(cpu)];
        let outcome = plain.access(CpuId(cpu), address, *access, *clock);
        prop_assert_eq!(
            outcome,
            observed.access(CpuId(cpu), address, *access, *clock)
        );
        *clock += outcome.takes;
    }
    prop_assert_eq!(plain.counts().bus, observed.counts().bus);
    Ok(())
}

proptest! {
    #[test]
    fn private_pairs_and_slow_caches_agree_on_every_access(
        machine in prop_oneof![any_pairs(), any_tree_pairs()],
        steps in any_steps(),
        far in prop_oneof![Just(1_u64), 1..1_u64 << 22],
        devices_write in any::<bool>(),
    ) {
        agree(&machine, &steps, far, devices_write)?;
    }

    #[test]
    fn observing_changes_no_answer_of_private_pairs(
        machine in prop_oneof![any_pairs(), any_tree_pairs()],
        steps in any_steps(),
    ) {
        observing_changes_nothing(&machine, &steps)?;
    }

    /// Long enough that the code is chosen anew, several times, by how often level 2 misses: few
    /// lines are hit, and many are missed.
    #[test]
    fn one_cpu_gets_the_same_answers_by_whatever_code(
        machine in pairs_of(Just(1)),
        phases in prop::collection::vec(1..=400_u64, 1..5),
        seed in any::<u64>(),
        devices_write in any::<bool>(),
    ) {
        let mut random = Seed(seed).stream("steps");
        let mut step = |lines: u64| {
            let access = if random.chance(1, 4) { Access::Write } else { Access::Read };
            (0, random.below(lines), access)
        };
        let phases = phases.iter();
        let steps: Vec<Step> = phases.flat_map(|lines| [*lines; 900]).map(&mut step).collect();
        agree(&machine, &steps, 3, devices_write)?;
        observing_changes_nothing(&machine, &steps)?;
    }
}
