//! `broken`: sound without a fault, and with one still a scheduler that a kernel can act on.

use proptest::prelude::*;
use warmq_config::{Kind, Value};
use warmq_kernel::{Boot, Ending, GroupId, MakeScheduler, Workload};
use warmq_trace::{Promise, Queues};
use warmq_units::Duration;

use crate::laws::cases;
use crate::stage::*;

/// Every fault, with `none`.
fn faults() -> Vec<String> {
    let entry = warmq_sched::scheduler("broken").expect("a scheduler");
    match entry.settings().remove(0).kind {
        Kind::Choice(faults) => faults,
        other => panic!("the fault is no choice: {other:?}"),
    }
}

fn with(fault: &str) -> MakeScheduler {
    scheduler("broken", &[("fault", Value::Text(fault.into()))])
}

/// What it would promise if it were not there to be broken: who waits is offered to idle CPUs at
/// each tick of a busy one. A tick of the stage is 10 ms.
fn strict(stage: Stage) -> Stage {
    let promise = Promise {
        patience: Duration::from_ms(50),
        queues: Queues::Shared,
    };
    Stage {
        promised: ("broken without a fault", promise),
        ..stage
    }
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn no_cpu_idles_beside_a_task_that_waits(case in cases()) {
        let stage = strict(case.stage());
        let workload = |boot: &mut Boot<'_>| -> Started { case.script.start_with(boot).map(|_| ()) };
        let (ending, _) = stage.plays(with("none"), 1_000, workload);
        prop_assert!(matches!(ending, Ending::WorkDone | Ending::TimeUp), "{}", ending);
    }

    #[test]
    fn whatever_is_broken_the_answers_are_lawful(case in cases()) {
        for fault in faults() {
            let workload = |boot: &mut Boot<'_>| -> Started { case.script.start_with(boot).map(|_| ()) };
            let (ending, _) = case.stage().promised_nothing().plays(with(&fault), 300, workload);
            prop_assert!(matches!(ending, Ending::WorkDone | Ending::TimeUp), "{}: {}", fault, ending);
        }
    }
}

/// The shares of the first tasks in all CPU time, in permille.
fn shares(fault: &str, cpus: u16, workload: impl Workload) -> [u64; 3] {
    let stage = stage(cpus).tick_of(1).promised_nothing();
    let (_, kernel) = stage.plays(with(fault), 2_000, workload);
    let ran = [0, 1, 2].map(|task| task_figures(&kernel, task).ran.0);
    ran.map(|ran| ran * 1_000 / ms(2_000).0)
}

fn are_about(shares: [u64; 3], due: [u64; 3]) {
    let near = |(is, due): (u64, u64)| is.abs_diff(due) <= 10;
    let all = shares.into_iter().zip(due).all(near);
    assert!(all, "{shares:?}, not {due:?}");
}

/// Groups of weights 200 and 100 in a group of 100, beside a task of the root with the weight of
/// such a group: two sixths, one sixth, three sixths.
#[test]
fn groups_share_what_their_parent_has() {
    let workload = |boot: &mut Boot<'_>| -> Started {
        let outer = boot.group(GroupId::ROOT, "outer", 100);
        for (name, weight) in [("a", 200), ("b", 100)] {
            let group = boot.group(outer, name, weight);
            hog(boot, called(name).group(group))?;
        }
        hog(boot, called("c"))?;
        Ok(())
    };
    are_about(shares("none", 1, workload), [333, 167, 500]);
    are_about(shares("ignores-groups", 1, workload), [333, 333, 333]);
}

/// The first has a CPU to itself whatever it weighs; the others, of weights 1024 and 335, share the
/// other CPU: what the first cannot use is held neither against it nor against them.
#[test]
fn what_nobody_can_use_is_forgotten() {
    let workload = |boot: &mut Boot<'_>| -> Started {
        hog(boot, called("a").nice(-20))?;
        hog(boot, called("b"))?;
        hog(boot, called("c").nice(5))?;
        Ok(())
    };
    are_about(shares("none", 2, workload), [1_000, 753, 247]);
}
