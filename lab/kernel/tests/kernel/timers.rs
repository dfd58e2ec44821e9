//! Timers and balancing of schedulers, and the locks of each callback.

use std::cell::RefCell;
use std::rc::Rc;

use warmq_kernel::*;
use warmq_trace::{Interrupt, Record};
use warmq_units::{CpuId, Duration, Instant, LockId, TaskId};

use crate::round_robin::*;
use crate::support::*;

type Log = Rc<RefCell<Vec<(u64, u16, String)>>>;

/// A scheduler with a queue per CPU that arms timers and balances.
struct Armed {
    locks: Vec<LockId>,
    queues: Vec<Vec<TaskId>>,
    running: Vec<Option<TaskId>>,
    log: Log,
    keeps: Option<Timer>,
}

fn armed(log: Log) -> MakeScheduler {
    Box::new(move |attach| {
        let cpus = usize::from(attach.cpus());
        let locks = (0..cpus).map(|_| attach.lock("queue")).collect();
        Ok(Box::new(Armed {
            locks,
            queues: vec![Vec::new(); cpus],
            running: vec![None; cpus],
            log,
            keeps: None,
        }))
    })
}

impl Armed {
    fn says(&self, context: &Context<'_>, what: impl Into<String>) {
        let at = (context.now() - Instant::START).as_us();
        let entry = (at, context.cpu().0, what.into());
        self.log.borrow_mut().push(entry);
    }
}

impl Scheduler for Armed {
    fn lock_for(&self, cpu: CpuId) -> LockId {
        self.locks[cpu.index()]
    }
    fn queues(&self, callback: Callback<'_>, cpu: CpuId) -> [Option<CpuId>; 2] {
        match callback {
            Callback::Pull { from } => [Some(cpu), Some(from)],
            Callback::SetWeight(_) | Callback::SetCpumask(_) => [None, None],
            _ => [Some(cpu), None],
        }
    }
    fn fork(&mut self, context: &mut Context<'_>, _: Option<TaskId>, child: TaskId) {
        if child == TaskId(0) {
            let at = |us| Instant::START + Duration::from_us(us);
            context.arm_timer(cpu(1), at(2_500), 7);
            let cancelled = context.arm_timer(cpu(0), at(1_000), 8);
            assert!(context.cancel_timer(cancelled));
            assert!(!context.cancel_timer(cancelled));
            self.keeps = Some(context.arm_timer(cpu(0), at(9_000), 9));
        }
    }
    fn select_cpu(&mut self, _: &mut Context<'_>, _: TaskId, _: Why) -> CpuId {
        cpu(0)
    }
    fn enqueue(&mut self, _: &mut Context<'_>, task: TaskId, _: CpuId, _: Why) {
        self.queues[0].push(task);
    }
    fn wakeup_preempt(&mut self, context: &mut Context<'_>, _: TaskId, cpu: CpuId, _: Why) {
        context.reschedule(cpu);
    }
    fn dequeue(&mut self, _: &mut Context<'_>, _: TaskId) {}
    fn pick_next(&mut self, context: &mut Context<'_>, prev: Option<TaskId>) -> Pick {
        let here = context.cpu().index();
        if let Some(prev) = prev.filter(|prev| context.task(*prev).is_runnable()) {
            return Pick::Task(prev);
        }
        let next = self.queues[here].pop();
        self.running[here] = next;
        next.map_or(Pick::Idle, Pick::Task)
    }
    fn tick(&mut self, context: &mut Context<'_>, running: Option<TaskId>) {
        if running.is_none() {
            context.raise_balance(context.cpu());
        }
    }
    fn balance(&mut self, context: &mut Context<'_>, when: Balance) -> Option<CpuId> {
        let here = context.cpu();
        self.says(context, format!("{when:?}"));
        let pulls = when != Balance::NewlyIdle && here != cpu(0) && self.queues[0].len() > 1;
        pulls.then(|| cpu(0))
    }
    fn pull(&mut self, context: &mut Context<'_>, from: CpuId, _: Balance) {
        context.spend(Duration::from_us(5));
        let task = self.queues[from.index()].pop();
        self.queues[context.cpu().index()].extend(task);
        context.reschedule(context.cpu());
    }
    fn timer(&mut self, context: &mut Context<'_>, token: u64) {
        self.says(context, format!("timer {token}"));
        if let Some(timer) = self.keeps.take() {
            assert!(context.cancel_timer(timer));
        }
    }
    fn exit(&mut self, _: &mut Context<'_>, _: TaskId) {}
}

fn play() -> (Story, Vec<(u64, u16, String)>) {
    let log = Log::default();
    let story =
        stage(2)
            .under(armed(log.clone()))
            .until_ms(60)
            .plays(|boot: &mut Boot<'_>| -> Started {
                for _ in 0..4 {
                    boot.task(
                        called("hog").bound([cpu(0), cpu(1)]),
                        |task: Task| async move {
                            task.compute(us(100_000)).await;
                        },
                    )?;
                }
                Ok(())
            });
    let log = log.borrow().clone();
    (story, log)
}

#[test]
fn a_timer_expires_on_its_cpu_and_a_cancelled_one_does_not() {
    let (_, log) = play();
    let timers: Vec<_> = log
        .iter()
        .filter(|(.., what)| what.starts_with("timer"))
        .collect();
    assert_eq!(timers, [&(2_500, 1, "timer 7".to_owned())]);
}

#[test]
fn an_idle_cpu_balances_in_a_softirq_and_pulls_under_both_locks() {
    let (story, log) = play();
    assert!(log.contains(&(0, 1, "NewlyIdle".to_owned())));
    let idle = log.iter().find(|(.., what)| what == "Idle");
    let (at, on, _) = idle.expect("a tick of the idle CPU raises it");
    assert_eq!((*at, *on), (10_000, 1));
    let softirq = story.records().iter().any(|(_, record)| {
        matches!(
            record,
            Record::InterruptEnter {
                interrupt: Interrupt::SchedSoftirq,
                ..
            }
        )
    });
    assert!(softirq);
    let held = |lock: u16| {
        story.records().iter().any(|(_, record)| {
            matches!(record, Record::Lock { cpu: on, lock: taken, held, .. }
                if *on == cpu(1) && taken.0 == lock && *held == Duration::from_us(5))
        })
    };
    assert!(held(0) && held(1));
    assert!(story.spent(1, Mode::User) > Duration::from_ms(40));
}

#[test]
fn a_wakeup_says_by_whom_in_which_context_and_out_of_which_sleep() {
    let seen = Rc::new(RefCell::new(Vec::new()));
    struct Nosy(Rc<RefCell<Vec<Wakeup>>>);
    impl Hooks for Nosy {
        fn enqueue(&mut self, _: &mut Context<'_>, why: Why) -> bool {
            if let Why::Wakeup(wakeup) = why {
                self.0.borrow_mut().push(wakeup);
            }
            true
        }
    }
    let nosy = Nosy(seen.clone());
    let mut on = stage(1).under(hooked(|_| nosy));
    on.settings.sync_socket_wakeups = true;
    on.plays(|boot: &mut Boot<'_>| -> Started {
        let (near, far) = boot.socket_pair(warmq_units::Bytes(100))?;
        let mutex = boot.mutex();
        boot.task(called("first"), move |task: Task| async move {
            task.lock(mutex).await;
            task.receive(far, warmq_units::Bytes(9)).await;
            task.sleep(Duration::from_ms(10)).await;
            task.unlock(mutex).await;
        })?;
        boot.task(called("second"), move |task: Task| async move {
            task.send(near, warmq_units::Bytes(9)).await;
            task.lock(mutex).await;
        })?;
        Ok(())
    });
    let seen: Vec<_> = seen
        .borrow()
        .iter()
        .map(|wakeup| (wakeup.current, wakeup.context, wakeup.sync, wakeup.slept))
        .collect();
    let expected = [
        (
            Some(TaskId(1)),
            WakeContext::Softirq,
            true,
            Waiting::Data(1),
        ),
        (None, WakeContext::Interrupt, false, Waiting::Timer),
        (Some(TaskId(0)), WakeContext::Task, false, Waiting::Mutex(0)),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn who_unlocks_what_another_holds_is_named() {
    let story = stage(1).plays_badly(|boot: &mut Boot<'_>| -> Started {
        let mutex = boot.mutex();
        boot.task(called("owner"), move |task: Task| async move {
            task.lock(mutex).await;
            task.sleep(Duration::from_ms(10)).await;
        })?;
        boot.task(called("thief"), move |task: Task| async move {
            task.unlock(mutex).await;
        })?;
        Ok(())
    });
    let said = story.ending.to_string();
    assert!(
        said.starts_with("task1 (thief) broke a rule at ")
            && said.ends_with("it unlocked mutex 0, which task0 holds"),
        "{said}"
    );
}

#[test]
fn groups_form_a_tree_that_a_scheduler_can_read() {
    let log = Log::default();
    let story = stage(2)
        .under(armed(log))
        .until_ms(5)
        .plays(|boot: &mut Boot<'_>| -> Started {
            let outer = boot.group(GroupId::ROOT, "outer", 200);
            let inner = boot.group(outer, "inner", 50_000);
            boot.task(called("one").group(inner), move |task: Task| async move {
                task.change(Change::Weight(outer, 300)).await;
                task.change(Change::Group(task.id(), outer)).await;
                task.change(Change::Slice(task.id(), Some(Duration::from_ms(1))))
                    .await;
                task.change(Change::Policy(task.id(), Policy::Idle)).await;
            })?;
            Ok(())
        });
    assert_eq!(story.ending, Ending::WorkDone);
}
