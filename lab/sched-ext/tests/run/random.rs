//! Random tasks and changes under a compiled scheduler: nobody is lost, and a run repeats itself.

use proptest::prelude::*;
use warmq_kernel::*;
use warmq_units::{CpuId, CpuSet, Instant, TaskId};

use crate::stage::*;

/// What a task does, and a change of it by number.
#[derive(Clone, Debug)]
struct Case {
    cpus: usize,
    /// Work and sleep of each task, in ms, and how often.
    tasks: Vec<(u64, u64, u32)>,
    changes: Vec<(u64, usize, Act)>,
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Nice(i8),
    Only(u16),
    All,
    Set(Policy),
    Online(bool),
    Stop,
    Continue,
}

/// A runtime, how much later it is due, and how much after that the period ends, in ms.
fn reserved((runtime, later, after): (u64, u64, u64)) -> Policy {
    Policy::Deadline(Reserved {
        runtime: ms(runtime),
        deadline: ms(runtime + later),
        period: ms(runtime + later + after),
    })
}

fn policies() -> impl Strategy<Value = Policy> {
    prop_oneof![
        Just(Policy::Other),
        Just(Policy::Idle),
        (1u8..4).prop_map(Policy::Fifo),
        (1u8..4).prop_map(Policy::RoundRobin),
        (1u64..8, 0u64..8, 0u64..8).prop_map(reserved),
    ]
}

fn cases() -> impl Strategy<Value = Case> {
    let act = prop_oneof![
        (-20i8..20).prop_map(Act::Nice),
        (0u16..2).prop_map(Act::Only),
        Just(Act::All),
        policies().prop_map(Act::Set),
        any::<bool>().prop_map(Act::Online),
        Just(Act::Stop),
        Just(Act::Continue),
    ];
    let tasks = prop::collection::vec((1u64..12, 0u64..12, 1u32..20), 1..8);
    let changes = prop::collection::vec((0u64..200, 0usize..8, act), 0..20);
    (1usize..=2, tasks, changes).prop_map(|(cpus, tasks, changes)| Case {
        cpus,
        tasks,
        changes,
    })
}

impl Case {
    fn play(&self, series: &str) -> Played {
        let workload = |boot: &mut Boot<'_>| -> Started {
            let mut ids = Vec::new();
            for (work, sleep, rounds) in self.tasks.clone() {
                ids.push(boot.task(called("t"), move |task: Task| async move {
                    for _ in 0..rounds {
                        task.compute_for(ms(work)).await;
                        task.sleep(ms(sleep)).await;
                    }
                })?);
            }
            for (at, of, act) in &self.changes {
                self.change(boot, *at, ids[of % ids.len()], *act);
            }
            self.change(boot, 300, ids[0], Act::Online(true));
            // All that were stopped go on.
            for id in ids {
                self.change(boot, 300, id, Act::Continue);
            }
            Ok(())
        };
        play(load(FAULTS, series, &[]), self.cpus, 10_000, &workload)
    }

    fn change(&self, boot: &mut Boot<'_>, at: u64, task: TaskId, act: Act) {
        let only = |cpu: u16| [CpuId(cpu % self.cpus as u16)].into_iter().collect();
        let change = match act {
            Act::Nice(nice) => Change::Nice(task, nice),
            Act::Only(cpu) => Change::Affinity(task, only(cpu)),
            Act::All => Change::Affinity(task, CpuSet::first_cpus(self.cpus as u16)),
            Act::Set(policy) => Change::Policy(task, policy),
            Act::Online(online) => Change::Online(CpuId(self.cpus as u16 - 1), online),
            Act::Stop => Change::Stop(task),
            Act::Continue => Change::Continue(task),
        };
        boot.operator(Instant::START + ms(at), |operator| async move {
            operator.change(change).await;
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn all_tasks_come_to_their_end_and_a_run_repeats_itself(case in cases()) {
        for series in ["6.18", "7.3"] {
            let played = case.play(series);
            prop_assert_eq!(&played.ending, &Ending::WorkDone);
            prop_assert_eq!(&played.violation, &None);
            prop_assert_eq!(played.digest, case.play(series).digest);
        }
    }
}
