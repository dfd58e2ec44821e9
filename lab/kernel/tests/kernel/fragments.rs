//! Tasks that name the data they use.

use std::cell::RefCell;
use std::rc::Rc;

use warmq_kernel::*;
use warmq_units::{Duration, TaskId};

use crate::round_robin::*;
use crate::support::*;

type Log = Rc<RefCell<Vec<(TaskId, Option<Fragment>)>>>;

/// Round robin without ticks that lets other tasks run first when a task names other data.
struct Heeding(Log);

impl Hooks for Heeding {
    fn tick(&mut self, _: &mut Context<'_>) -> bool {
        false
    }
    fn set_fragment(&mut self, context: &mut Context<'_>, task: TaskId, to: Option<Fragment>) {
        assert_eq!(context.task(task).fragment(), to);
        self.0.borrow_mut().push((task, to));
        context.reschedule(context.cpu());
    }
}

#[test]
fn naming_other_data_reaches_the_scheduler_once_and_takes_effect_before_the_task_goes_on() {
    let log = Log::default();
    let heeding = Heeding(log.clone());
    let scheduler = hooked(|_| heeding);
    let said = Said::default();
    let speakers = said.clone();
    let story = stage(1)
        .under(scheduler)
        .plays(move |boot: &mut Boot<'_>| -> Started {
            for (name, fragment) in [("one", 7), ("two", 8)] {
                let said = speakers.clone();
                boot.task(called(name), move |task: Task| async move {
                    task.enter(1, fragment).await;
                    said.say(name);
                    task.enter(1, fragment).await;
                    said.say(name);
                    task.leave().await;
                    said.say(name);
                })?;
            }
            Ok(())
        });
    assert_eq!(story.ending, Ending::WorkDone);
    // Each change lets the other task run; naming the same fragment again changes nothing.
    assert_eq!(said.all(), ["one", "one", "two", "two", "one", "two"]);
    let named = |number| Some(Fragment { app: 1, number });
    let (one, two) = (TaskId(0), TaskId(1));
    let expected = [(one, named(7)), (two, named(8)), (one, None), (two, None)];
    assert_eq!(*log.borrow(), expected);
}

#[test]
fn naming_data_costs_a_system_call_under_every_scheduler() {
    let run = |calls: u32| {
        stage(1).costs(costs(&[("system_call", 300)])).plays(
            move |boot: &mut Boot<'_>| -> Started {
                boot.task(called("one"), move |task: Task| async move {
                    for fragment in 0..calls {
                        task.enter(1, fragment).await;
                    }
                    task.compute(us(5)).await;
                })?;
                Ok(())
            },
        )
    };
    assert_eq!(run(0).spent(0, Mode::System), Duration::ZERO);
    assert_eq!(run(10).spent(0, Mode::System), Duration::from_us(3));
    assert_eq!(run(10).spent(0, Mode::User), Duration::from_us(5));
}
