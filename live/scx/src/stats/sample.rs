//! A made-up state of a scheduler: two domains of two CPUs, a fifth CPU that is offline, and three
//! groups.

use warmq_decide::WEIGHT_NICE_0;
use warmq_hint::{abi, pack};

use crate::bpf_skel::types::{bss, rodata};
use crate::counters;
use crate::state::{State, raw};

/// The state when everything that grows has grown by `age` steps.
pub fn state(age: u64, place_is_cpu: bool) -> State {
    let mut settings = raw::settings(&vec![0; size_of::<rodata>()]).expect("it has the size");
    let mut state = raw::state(&vec![0; size_of::<bss>()]).expect("it has the size");
    configure(&mut settings, place_is_cpu);
    state.started_at = 1_000;
    state.policy.slice_max = 4_000_000;
    for (cpu, state) in state.cpus.iter_mut().take(5).enumerate() {
        for index in 0..counters::NAMES.len() {
            state.counters[index] = age * counter(index) + cpu as u64;
        }
        (state.waits[0], state.waits[4], state.waits[13]) = (age * 970, age * 28, age * 2);
    }
    for domain in [0, 1] {
        state.entities[domain].domain.weight = WEIGHT_NICE_0 * (3 - domain as u64);
        state.entities[domain].domain.cpus = 2;
        state.entities[domain].domain.avg_vruntime = age * 500;
        state.entities[domain].queued = 2;
        state.entities[domain].time.weight = WEIGHT_NICE_0;
    }
    let pinned_to_3 = abi::PINNED_BASE + 3;
    state.entities[pinned_to_3 as usize].queued = 1;
    let hint = |app, fragment| pack(app, fragment).map_or(0, u64::from);
    let own = (1_001, 42);
    group(&mut state, 1, own, hint(1, 2), [0, 3, 1], age);
    group(&mut state, 7, (0, 0), hint(0, 0), [1, 2, 0], 2 * age);
    group(&mut state, 9, (1_001, 0), (1 << 63) | 5, [1, 0, 0], 0);
    state.groups[9].origin = 1;
    state.nr_overdue = 2;
    overdue(&mut state, 0, 0, 900);
    overdue(&mut state, 1, pinned_to_3, 700);
    State { settings, state }
}

/// A wait in the queue of `entity` that is twice as long as its bound.
fn overdue(state: &mut bss, index: usize, entity: u32, milliseconds: u64) {
    let wait = &mut state.overdue[index];
    (wait.waited, wait.bound) = (milliseconds * 1_000_000, milliseconds * 500_000);
    (wait.at, wait.pid, wait.cpu, wait.entity) = (77, 4_711, 3, entity);
    (wait.cpus_allowed, wait.weight, wait.domain_weight) = (1, WEIGHT_NICE_0, 64_000);
    for (byte, letter) in wait.comm.iter_mut().zip(b"batch") {
        *byte = *letter as _;
    }
}

/// Times are of the order of seconds; the other counters differ, and the first is the largest.
fn counter(index: usize) -> u64 {
    let is_time = counters::NAMES[index].ends_with("_ns");
    if is_time {
        10_000_000 * index as u64
    } else {
        3_000 / (1 + index as u64)
    }
}

fn configure(settings: &mut rodata, place_is_cpu: bool) {
    settings.nr_cpus = 5;
    settings.nr_domains = 2;
    settings.nr_places = if place_is_cpu { 5 } else { 2 };
    settings.nr_groups = abi::MAX_GROUPS;
    settings.place_is_cpu = place_is_cpu;
    settings.preempts = true;
    settings.cpu_domain.fill(abi::MAX_DOMAINS);
    settings.cpu_domain[..4].copy_from_slice(&[0, 0, 1, 1]);
}

/// `[home, members, running]`, and one more that waits.
fn group(state: &mut bss, slot: usize, whose: (u32, u32), hint: u64, numbers: [u64; 3], age: u64) {
    let group = &mut state.groups[slot];
    (group.key.uid, group.key.tgid, group.key.hint) = (whose.0, whose.1, hint);
    // Of a third generation.
    group.payer = whose.0;
    (group.home, group.members, group.running) =
        (numbers[0] as u32, 3 << 32 | numbers[1], numbers[2]);
    group.ran_home = age * 800_000_000;
    group.ran_away = age * 200_000_000;
    group.batches = age * 100;
    group.runs = age * 400;
    group.moves = 2;
    group.waits[12] = age * 10;
    state.entities[abi::GROUP_BASE as usize + slot].queued = u32::from(numbers[1] > 0);
    state.entities[abi::GROUP_BASE as usize + slot].time.weight = WEIGHT_NICE_0 * numbers[1];
}
