//! Preemption models, borrowed address spaces, CPU time, and stopped ticks.

use warmq_kernel::*;
use warmq_trace::{Interrupt, Record};
use warmq_units::{Bytes, CpuId, Cycles, Duration, TaskId};

use crate::round_robin::*;
use crate::support::*;

/// First in, first out: a woken task preempts at once, or lazily.
struct Eager {
    lazy: bool,
}

fn eager(lazy: bool) -> MakeScheduler {
    hooked(move |_| Eager { lazy })
}

impl Hooks for Eager {
    fn wakeup_preempt(&mut self, context: &mut Context<'_>, cpu: CpuId) -> bool {
        match self.lazy {
            true => context.reschedule_lazy(cpu),
            false => context.reschedule(cpu),
        }
        false
    }
    fn tick(&mut self, _: &mut Context<'_>) -> bool {
        false
    }
}

/// One task copies for 4 ms in the kernel, 1 us per line. Another sleeps for 1 ms and exits as soon
/// as it runs again. Returns when it exits, in us.
fn woken_at(preemption: Preemption, lazy: bool) -> u64 {
    let mut on = stage(1).under(eager(lazy)).costs(costs(&[
        ("copy_per_line", 1_000),
        ("socket_send", 1_500_000),
    ]));
    on.settings.preemption = preemption;
    on.settings.timer_resolution = Duration::from_us(1);
    let story = on.plays(|boot: &mut Boot<'_>| -> Started {
        let (near, _far) = boot.socket_pair(Bytes::from_kb(128))?;
        boot.task(called("sleeper"), |task: Task| async move {
            task.sleep(Duration::from_ms(1)).await;
        })?;
        boot.task(called("copies"), move |task: Task| async move {
            task.send(near, Bytes(4_000 * 32)).await;
        })?;
        Ok(())
    });
    story.exit_us(0)
}

#[test]
fn each_model_preempts_the_kernel_where_it_says() {
    // The system call works for 1.5 ms, then copies for 4 ms.
    assert_eq!(woken_at(Preemption::Full, false), 1_000);
    let voluntary = woken_at(Preemption::Voluntary, false);
    assert_eq!(voluntary, 1_500, "at the start of the copy");
    assert!(
        woken_at(Preemption::None, false) >= 5_500,
        "at the end of the system call"
    );
}

/// What a program pays on its way back from an interrupt does not delay the task that takes its
/// CPU.
#[test]
fn the_way_back_to_user_code_comes_after_the_switches() {
    let exits = |back: u64| {
        let on = stage(1).under(eager(false)).costs(costs(&[
            ("interrupt_entry", 400),
            ("interrupt_exit", 200),
            ("interrupt_return", back),
        ]));
        let story = on.until_ms(100).plays(|boot: &mut Boot<'_>| -> Started {
            boot.task(called("sleeper"), |task: Task| async move {
                task.sleep(Duration::from_ms(10)).await;
            })?;
            boot.task(called("hog"), |task: Task| async move {
                task.compute(us(15_000)).await;
            })?;
            Ok(())
        });
        let exit = |of: u32| {
            let is = |record: &Record| matches!(*record, Record::Exit { task, .. } if task == TaskId(of));
            let found = story.records().iter().find(|(_, record)| is(record));
            found.expect("it ends").0
        };
        (exit(0), exit(1))
    };
    let (free, dear) = (exits(0), exits(5_000));
    assert_eq!(free.0, dear.0, "whoever takes the CPU is as early");
    assert_eq!(
        dear.1 - free.1,
        Duration::from_ns(5_000),
        "and the hog is later"
    );
}

#[test]
fn a_lazy_request_waits_for_the_way_to_user_mode_or_the_tick() {
    assert_eq!(
        woken_at(Preemption::Full, true),
        1_000,
        "no lazy preemption"
    );
    let lazy = woken_at(Preemption::Lazy, true);
    assert!(
        (5_500..5_600).contains(&lazy),
        "{lazy}: the tick is at 10 ms"
    );
    assert_eq!(woken_at(Preemption::Lazy, false), 1_000, "it is not lazy");
}

#[test]
fn the_tick_makes_a_lazy_request_urgent() {
    let mut on = stage(1)
        .under(eager(true))
        .costs(costs(&[("socket_send", 50_000_000)]));
    on.settings.preemption = Preemption::Lazy;
    on.settings.timer_resolution = Duration::from_us(1);
    let story = on.plays(|boot: &mut Boot<'_>| -> Started {
        let (near, _far) = boot.socket_pair(Bytes(100))?;
        boot.task(called("sleeper"), |task: Task| async move {
            task.sleep(Duration::from_ms(3)).await;
        })?;
        boot.task(called("long call"), move |task: Task| async move {
            task.send(near, Bytes(10)).await;
        })?;
        Ok(())
    });
    assert_eq!(story.exit_us(0), 10_000, "the first tick");
}

/// Each yields ten times.
fn take_turns(boot: &mut Boot<'_>, specs: impl IntoIterator<Item = TaskSpec>) -> Started {
    for spec in specs {
        boot.task(spec, |task: Task| async move {
            for _ in 0..10 {
                task.compute(us(1)).await;
                task.yield_now().await;
            }
        })?;
    }
    Ok(())
}

#[test]
fn a_task_that_borrows_an_address_space_costs_no_switch_of_it() {
    let spent = |borrows: bool| {
        let story = stage(1)
            .costs(costs(&[("mm_switch", 500)]))
            .until_ms(100)
            .plays(move |boot: &mut Boot<'_>| -> Started {
                let (mm, other) = (boot.mm(), boot.mm());
                let specs = [
                    TaskSpec::new("one", Some(mm)),
                    match borrows {
                        true => TaskSpec::kernel_thread("thread"),
                        false => TaskSpec::new("other", Some(other)),
                    },
                ];
                take_turns(boot, specs)
            });
        story.spent(0, Mode::System).as_ns() / 500
    };
    assert_eq!(spent(true), 1, "the first task's is loaded once");
    assert!(spent(false) > 15);
}

#[test]
fn a_cpu_forgets_the_translations_of_all_but_six_address_spaces() {
    let refilled = |processes: u64| {
        let story = stage(1)
            .costs(costs(&[("mm_refill", 500)]))
            .until_ms(100)
            .plays(move |boot: &mut Boot<'_>| -> Started {
                let own: Vec<_> = (0..processes)
                    .map(|_| TaskSpec::new("own", Some(boot.mm())))
                    .collect();
                take_turns(boot, own)
            });
        story.spent(0, Mode::System).as_ns() / 500
    };
    assert_eq!(refilled(6), 6, "once for each");
    assert_eq!(refilled(7), 77, "each of the 11 times that each runs");
}

#[test]
fn cpu_time_adds_up_exactly_and_samples_come_close() {
    let story =
        stage(2)
            .costs(some_costs())
            .until_ms(1_000)
            .plays(|boot: &mut Boot<'_>| -> Started {
                let (near, far) = boot.socket_pair(Bytes::from_kb(4))?;
                boot.task(
                    called("sender").bound([cpu(0)]),
                    move |task: Task| async move {
                        loop {
                            task.compute(us(37)).await;
                            task.send(near, Bytes(1_000)).await;
                        }
                    },
                )?;
                boot.task(
                    called("receiver").bound([cpu(0)]),
                    move |task: Task| async move {
                        loop {
                            task.receive(far, Bytes(1_000)).await;
                            task.compute(us(11)).await;
                        }
                    },
                )?;
                boot.task(called("hog").bound([cpu(1)]), |task: Task| async move {
                    task.compute(us(10_000_000)).await;
                })?;
                Ok(())
            });
    let figures = |task| story.kernel.task(TaskId(task)).expect("it ran");
    let tasks: Duration = (0..3).map(|task| figures(task).exact.total()).sum();
    let idle: Duration = (0..2)
        .map(|number| story.kernel.idle_task(cpu(number)).total())
        .sum();
    let modes = [Mode::User, Mode::System, Mode::Spin];
    let busy: Duration = modes.map(|mode| story.kernel.spent(mode)).into_iter().sum();
    assert_eq!(tasks + idle, busy);
    let hog = figures(2);
    assert!(hog.exact.system < Duration::from_ms(1));
    let apart = hog.sampled.user.as_us().abs_diff(hog.exact.user.as_us());
    assert!(apart <= 20_000, "{hog:?}");
}

fn ticks_on(story: &Story, number: u16) -> usize {
    let tick = Record::InterruptEnter {
        cpu: cpu(number),
        interrupt: Interrupt::Timer,
    };
    let records = story.records().iter();
    records.filter(|(_, record)| *record == tick).count()
}

#[test]
fn an_idle_cpu_stops_its_tick_and_starts_it_on_its_grid() {
    let mut on = stage(2).costs(costs(&[("nohz_exit", 700)])).until_ms(1_000);
    on.settings.nohz = true;
    let story = on.plays(|boot: &mut Boot<'_>| -> Started {
        boot.task(called("hog").bound([cpu(0)]), |task: Task| async move {
            task.compute(us(10_000_000)).await;
        })?;
        boot.task(called("late").bound([cpu(1)]), |task: Task| async move {
            task.sleep(Duration::from_ms(500)).await;
            task.compute(us(95_000)).await;
            task.sleep(Duration::from_s(5)).await;
        })?;
        Ok(())
    });
    assert_eq!(ticks_on(&story, 0), 100);
    // The timer at 500 ms, and ticks from 510 to 590 ms.
    assert_eq!(ticks_on(&story, 1), 1 + 9);
    assert_eq!(story.spent(1, Mode::System).as_ns(), 700);
}

/// One task wakes another at 1 ms, on a CPU that idles. Returns the run, and when the woken one,
/// which computes for 10 ns, exits, in ns.
fn wakes_an_idle_cpu(on: Stage) -> (Story, u64) {
    let story = on.plays(|boot: &mut Boot<'_>| -> Started {
        let (near, far) = boot.socket_pair(Bytes(100))?;
        boot.task(
            called("waker").bound([cpu(0)]),
            move |task: Task| async move {
                task.compute(us(1_000)).await;
                task.send(near, Bytes(10)).await;
            },
        )?;
        boot.task(
            called("woken").bound([cpu(1)]),
            move |task: Task| async move {
                task.receive(far, Bytes(10)).await;
                task.compute(Cycles(10)).await;
            },
        )?;
        Ok(())
    });
    let exits = |record: &Record| matches!(record, Record::Exit { task, .. } if task.0 == 1);
    let exit = story.records().iter().find(|(_, record)| exits(record));
    let at = exit.expect("it was woken").0 - warmq_units::Instant::START;
    (story, at.as_ns())
}

fn interrupts_sent(story: &Story) -> usize {
    let sent = |record: &Record| matches!(record, Record::RescheduleSent { .. });
    let records = story.records().iter();
    records.filter(|(_, record)| sent(record)).count()
}

#[test]
fn a_cpu_that_polls_in_idle_is_sent_no_interrupt() {
    let mut on = stage(2).costs(costs(&[("idle_poll", 90), ("reschedule_interrupt", 600)]));
    on.settings.idle_loop = IdleLoop::Poll;
    let (story, exit) = wakes_an_idle_cpu(on);
    assert_eq!(interrupts_sent(&story), 0);
    assert_eq!(exit, 1_000_000 + 90 + 10);
}

/// Where a machine says how long the way out of halt is, its CPUs halt under any kernel, and idle
/// until they are out of that.
#[test]
fn a_cpu_that_halts_takes_an_interrupt_when_it_is_out_of_that() {
    let some = costs(&[("idle_poll", 90), ("reschedule_interrupt", 600)]);
    let mut on = stage(2).costs(with(&some, &[("halt_exit", 2_000)]));
    on.settings.idle_loop = IdleLoop::Poll;
    let (story, exit) = wakes_an_idle_cpu(on);
    assert_eq!(interrupts_sent(&story), 1);
    assert_eq!(exit, 1_000_000 + 600 + 2_000 + 10);
    assert_eq!(story.spent(1, Mode::Interrupt).as_ns(), 0);
}
