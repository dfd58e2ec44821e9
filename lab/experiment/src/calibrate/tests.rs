//! The lab takes the place of the machine: costs that it was given are found again.

use warmq_machine::{builtin, read_toml};

use super::*;

fn machine(name: &str) -> MachineDescription {
    let mut machine = read_toml(name, builtin(name).unwrap()).unwrap();
    machine.name = HOST.to_owned();
    machine
}

fn kernel() -> RealKernel {
    RealKernel {
        release: "6.18.44".to_owned(),
        preemption: "none".to_owned(),
        preemption_from: "a test",
        ..RealKernel::default()
    }
}

/// The steps, with plays of 100 ms.
fn short() -> Vec<Step> {
    let mut steps = steps(&machine("epyc-vm"), &kernel());
    for step in &mut steps {
        step.scene.ms = 100;
    }
    steps
}

/// What a machine whose costs are `machine`'s would measure.
fn measured_on(machine: &MachineDescription) -> Tries {
    let modelled = Modelled::nearest(&kernel(), &[KERNEL.to_owned()]).unwrap();
    let figure = |step: &Step| lab_figure(machine.clone(), &modelled, step).unwrap();
    let one = |step: &Step| (step.cost, vec![figure(step); 3]);
    short().iter().map(one).collect()
}

#[test]
fn costs_are_found_again_from_what_they_make_of_the_plays() {
    let there = machine("epyc-vm");
    let measured = measured_on(&there);
    let mut here = there.clone();
    for cost in here.costs.get_mut("linux-6.18").unwrap().values_mut() {
        cost.cycles = Cycles(cost.cycles.0 / 2 + 50);
    }
    // Not found by any step, and in the figures of some.
    for cost in [
        "system_call",
        "interrupt_entry",
        "interrupt_exit",
        "timer_tick",
        "lock_uncontended",
        "copy_per_line",
        "hrtick_start",
        "nohz_exit",
    ] {
        let right = cost_of(&there, "linux-6.18", cost);
        set_cost(&mut here, "linux-6.18", cost, right, "");
    }
    let found = calibrate(
        &mut here,
        &kernel(),
        &short(),
        &measured,
        |_| "found".to_owned(),
        |_, _, _| {},
    )
    .unwrap();
    assert_eq!(found.len(), STEPS.len());
    let off = |found: &Found| {
        let right = cost_of(&there, "linux-6.18", found.step.cost).0 as f64;
        let off = (found.now.0 as f64 - right).abs() > 20.0 + right * 0.05;
        off.then_some((found.step.cost, found.now.0, right))
    };
    let off: Vec<_> = found.iter().filter_map(off).collect();
    assert_eq!(off, []);
    let mut found = found.iter();
    assert!(found.all(|found| here.costs["linux-6.18"][found.step.cost].source == "found"));
}

#[test]
fn a_machine_of_one_cpu_lacks_what_needs_two() {
    let names: Vec<&str> = scenes(STEPS, 1).iter().map(|scene| scene.name).collect();
    assert!(
        !names.contains(&"afar.toml") && names.contains(&"calls.toml"),
        "{names:?}"
    );
    assert!(scenes(STEPS, 2).len() > scenes(STEPS, 1).len());
}

/// What disturbs a task that is alone makes it slower; what disturbs two of two CPUs may make one
/// faster that no longer waits for the other.
#[test]
fn the_least_disturbed_try_counts() {
    let of = |cost: &str| STEPS.iter().find(|step| step.cost == cost).unwrap();
    assert_eq!(of("socket_send").least_disturbed(&[3.0, 1.0, 2.0]), 1.0);
    assert_eq!(
        of("reschedule_interrupt").least_disturbed(&[3.0, 1.0, 2.0]),
        2.0
    );
    assert_eq!(of("timer_program").least_disturbed(&[-1.0, 9.0, 2.0]), 2.0);
}

#[test]
fn what_no_cost_explains_stays_as_it_was() {
    let mut machine = machine("epyc-vm");
    let before = machine.clone();
    let measured = Tries::from([("socket_send", vec![1e6]), ("socket_receive", vec![0.0])]);
    let found = calibrate(
        &mut machine,
        &kernel(),
        &short(),
        &measured,
        |_| "new".to_owned(),
        |_, _, _| {},
    )
    .unwrap();
    let missed: Vec<(&str, u64, bool)> = found
        .iter()
        .map(|found| (found.step.cost, found.now.0, found.missed))
        .collect();
    let send = cost_of(&before, "linux-6.18", "socket_send").0;
    assert_eq!(
        missed,
        [("socket_send", send, true), ("socket_receive", 0, true)]
    );
    let of =
        |machine: &MachineDescription, cost: &str| machine.costs["linux-6.18"][cost].source.clone();
    assert_eq!(of(&machine, "socket_send"), of(&before, "socket_send"));
}
