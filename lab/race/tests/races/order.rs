//! Without interruptions, callbacks come in the order in which the laboratory calls them
//! (lab/sched-ext/tests/run/order.rs, where the letters are explained).

use warmq_race::{Act, Fault, Plan, Race, Setup, Step};
use warmq_units::CpuId;

use crate::stage::load;

const ORDER: &[u8] = include_bytes!("../../../sched-ext/tests/programs/order.bpf.o");

/// The callbacks on one CPU after so many, behind those of `tasks` new tasks and the CPU's first
/// look.
fn written(most: i128, tasks: u16, acts: &[Act]) -> String {
    let loaded = load(ORDER, &[("most", most)]);
    let race = Race {
        loaded: &loaded,
        cpus: 1,
        tasks,
        steps: 0,
        only: &[],
    };
    let step = |act: &Act| Step {
        cpu: CpuId(0),
        act: *act,
        hold: None,
    };
    let plan = Plan {
        setup: Setup {
            groups_of: vec![0; tasks.into()],
            ..Setup::default()
        },
        steps: acts.iter().map(step).collect(),
    };
    match race.play(&plan).expect("it is attached") {
        Some(Fault::Ejected(text)) => {
            let begins = ["I E W "].repeat(tasks.into()).concat() + "d ";
            let (_, written) = text.rsplit_once("): ").expect("a place and a text");
            written.strip_prefix(&begins).unwrap_or(written).to_owned()
        }
        fault => format!("{fault:?}"),
    }
}

#[test]
fn a_task_that_sleeps_and_wakes() {
    let acts = [Act::Wake(0), Act::Sleep, Act::Wake(0)];
    assert_eq!(written(17, 1, &acts), "R Qw d D + -0 q d R Qw d D +");
}

#[test]
fn two_take_turns_when_a_slice_is_over() {
    let acts = [Act::Wake(0), Act::Wake(1), Act::Pass(8_000), Act::Tick];
    assert_eq!(written(20, 2, &acts), "R Qw d D + R Qw t d D -1 Q +");
}

#[test]
fn a_waiting_task_that_changes_is_queued_again() {
    let acts = [Act::Wake(0), Act::Wake(1), Act::Nice(1, 5)];
    assert_eq!(written(19, 2, &acts), "R Qw d D + R Qw Dc q W R Qr");
}

#[test]
fn a_running_task_that_changes_stops_and_goes_on() {
    let acts = [Act::Wake(0), Act::Nice(0, 5)];
    assert_eq!(written(14, 1, &acts), "R Qw d D + -0 q W R +");
}
