//! Laws of every run, whatever the scheduler, the machine and the workload.

use std::cell::Cell;
use std::collections::BTreeMap;

use proptest::prelude::*;

use warmq_config::{Chosen, Value};
use warmq_kernel::{
    Boot, DatagramCounts, Ending, IdleLoop, Kernel, Nic, PacketCounts, Preemption, Socket,
    SoftirqLimits, Task, Throttling,
};
use warmq_play::{Counters, workload};
use warmq_random::{Act, Configuration, Script, configurations, scripts};
use warmq_sched::Entry;
use warmq_trace::Digest;

use crate::compiled::{WARMQ, schedulers, under};
use crate::stage::*;

/// A run but for its scheduler.
#[derive(Clone, Debug)]
pub struct Case {
    pub script: Script,
    pub configuration: Configuration,
    pub cpus: u16,
    pub real: bool,
    pub seed: u64,
}

pub fn cases() -> impl Strategy<Value = Case> {
    let drawn = (
        scripts(),
        configurations(),
        1u16..5,
        any::<bool>(),
        any::<u64>(),
    );
    drawn.prop_map(|(script, configuration, cpus, real, seed)| Case {
        script,
        configuration,
        cpus,
        real,
        seed,
    })
}

impl Case {
    /// One or two CPUs under a cache.
    pub fn stage(&self) -> Stage {
        let stage = stage(self.cpus).seed(self.seed);
        let stage = if self.real { stage.real() } else { stage };
        let mut stage = stage.sharing(1 + (self.seed / 3 % 2) as u16);
        self.configuration.apply(&mut stage.settings);
        stage
    }

    /// What is set on the scheduler: groups live on a CPU or under a cache, a clock counts jiffies
    /// or is exact, and so on.
    pub fn set(&self, name: &str) -> (&'static str, Value) {
        match name {
            WARMQ => {
                let place = ["llc", "cpu"][(self.seed % 2) as usize];
                ("place", Value::Text(place.into()))
            }
            _ if name.starts_with("affinity-") => {
                let place = ["llc", "cpu"][(self.seed % 2) as usize];
                ("place", Value::Text(place.into()))
            }
            "broken" => ("fault", Value::Text("none".into())),
            "o1" | "o1-2.6.4" => {
                let clock = ["jiffies", "tsc"][(self.seed % 2) as usize];
                ("clock", Value::Text(clock.into()))
            }
            "cfs" => {
                let groups = ["off", "on"][(self.seed % 2) as usize];
                ("groups", Value::Text(groups.into()))
            }
            _ if name.starts_with("eevdf") => ("hrtick", Value::Bool(self.seed.is_multiple_of(2))),
            _ => ("colors", Value::Integer(1 << (self.seed % 3))),
        }
    }

    /// The run, held to every law.
    fn play(&self, entry: &Entry) -> (Ending, Kernel<Watch>) {
        let flooded: Cell<Option<(Nic, Socket)>> = Cell::new(None);
        let workload = |boot: &mut Boot<'_>| -> Started {
            flooded.set(self.script.start_with(boot)?);
            Ok(())
        };
        // What scx_warmq does to groups is in scx_warmq.rs: it promises them nothing. When a CPU
        // goes offline it is ended and started anew, and forgets who has waited.
        let unlike = names_fragments(&self.script) || takes_offline(&self.script);
        let mut stage = match entry.name == WARMQ && unlike {
            true => self.stage().promised_nothing(),
            false => self.stage().promised_by(entry),
        };
        // Linux 2.4 tells nobody of a sync wakeup, and wakes no reader of a socket that way.
        let kernel = entry.kernel_settings(stage.settings.seed);
        stage.settings.sync_socket_wakeups &= kernel.sync_socket_wakeups;
        stage.settings.nohz &= may_stop_ticks(entry);
        stage.settings = under(entry.name, stage.settings);
        let scheduler = scheduler(entry.name, &[self.set(entry.name)]);
        let (ending, kernel) = stage.plays(scheduler, 1_000, workload);
        if let Some((nic, socket)) = flooded.get() {
            packets_add_up(kernel.packets(nic), kernel.datagrams(socket));
        }
        (ending, kernel)
    }
}

/// False for o1, whose idle CPUs balance in their ticks: Linux 2.6.16 has no CONFIG_NO_HZ.
pub fn may_stop_ticks(entry: &Entry) -> bool {
    !["o1", "affinity-o1"].contains(&entry.name)
}

/// Whether any task of `script` names a fragment.
fn names_fragments(script: &Script) -> bool {
    let mut acts = script.parts.iter().flat_map(|part| &part.acts);
    acts.any(|act| matches!(act, Act::Enter(Some(_))))
}

/// Whether any task of `script` takes a CPU offline.
fn takes_offline(script: &Script) -> bool {
    let mut acts = script.parts.iter().flat_map(|part| &part.acts);
    acts.any(|act| matches!(act, Act::Online(..)))
}

/// Nothing that was sent is lost without a count. All packets of a flood are datagrams.
fn packets_add_up(packets: PacketCounts, datagrams: DatagramCounts) {
    let accounted = packets.received + packets.dropped + packets.in_flight;
    assert_eq!(packets.sent, accounted, "{packets:?}");
    assert_eq!(datagrams.sent, packets.sent);
    let ended = datagrams.received + datagrams.dropped;
    assert!(datagrams.dropped >= packets.dropped && ended <= datagrams.sent);
    // What is neither received nor dropped is in flight, in a softirq, or queued.
    assert!(
        datagrams.sent - ended >= packets.in_flight,
        "{datagrams:?} {packets:?}"
    );
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn every_run_keeps_the_laws_and_comes_out_the_same_twice(case in cases()) {
        for entry in schedulers() {
            let (ending, kernel) = case.play(entry);
            let good = matches!(ending, Ending::WorkDone | Ending::TimeUp);
            prop_assert!(good, "{}: {ending}", entry.name);
            let (_, again) = case.play(entry);
            prop_assert_eq!(&kernel.observer().1.1, &again.observer().1.1, "{}", entry.name);
        }
    }
}

/// Six tasks on three CPUs.
pub fn a_case() -> Case {
    Case {
        script: Script::walkers(6),
        configuration: Configuration {
            preemption: Preemption::None,
            idle_loop: IdleLoop::Halt,
            nohz: false,
            sync: false,
            softirqs: SoftirqLimits::LINUX_2_4,
            throttling: Throttling::Groups,
            staggered_periods: false,
        },
        cpus: 3,
        real: true,
        seed: 1,
    }
}

/// Hogs that a task forks on one CPU spread over all, and stay there.
#[test]
fn no_cpu_idles_beside_hogs_that_one_task_forks() {
    for entry in schedulers() {
        let stage = stage(4).promised_by(entry);
        stage.plays(scheduler(entry.name, &[]), 3_000, |boot: &mut Boot<'_>| {
            boot.task(called("parent"), |task: Task| async move {
                for _ in 0..6 {
                    let hog = |hog: Task| async move { hog.compute(ticks(1_000)).await };
                    task.spawn(called("hog"), hog).await;
                }
            })?;
            Ok(())
        });
    }
}

#[test]
#[should_panic(expected = "left == right")]
fn a_packet_that_nobody_counts_is_missed() {
    let packets = PacketCounts {
        sent: 3,
        received: 2,
        ..PacketCounts::default()
    };
    let datagrams = DatagramCounts {
        sent: 3,
        received: 2,
        ..DatagramCounts::default()
    };
    packets_add_up(packets, datagrams);
}

/// What was before the measurement is in neither of the sums.
#[test]
fn times_add_up_after_a_warm_up_too() {
    let case = a_case();
    let scheduler = scheduler("linux24", &[]);
    let (_, mut kernel) = case.stage().plays_before((), scheduler, 50, case.script);
    assert_eq!(kernel.check_times(), Ok(()));
    kernel.reset_figures();
    assert_eq!(kernel.check_times(), Ok(()));
    kernel.run_until(kernel.now() + warmq_units::Duration::from_ms(20));
    assert_eq!(kernel.check_times(), Ok(()));
}

/// A shipped workload, made small.
fn small(name: &str, set: &[(&str, Value)], scheduler_name: &str, cpus: u16) -> (u64, Digest) {
    let counters = Counters::default();
    let entry = workload(name).expect("a workload");
    let values: BTreeMap<String, Value> = set
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()))
        .collect();
    let chosen = Chosen::new(entry.settings(), values).expect("settings that it has");
    let workload = entry
        .build(&chosen, &stage(cpus).site(), &counters)
        .expect("settings that it can be played with");
    let start = |boot: &mut warmq_kernel::Boot<'_>| workload.start(boot);
    let stage = stage(cpus).real();
    let (ending, kernel) = stage.plays(scheduler(scheduler_name, &[]), 700, start);
    assert!(
        matches!(ending, Ending::WorkDone | Ending::TimeUp),
        "{ending}"
    );
    (counters.get(&entry.work), kernel.observer().1.1.clone())
}

#[test]
fn every_workload_keeps_the_laws_under_every_scheduler() {
    let counts = |set: &[(&'static str, i64)]| -> Vec<(&str, Value)> {
        let count = |(name, count): &(&'static str, i64)| (*name, Value::Integer(*count));
        set.iter().map(count).collect()
    };
    let chat = counts(&[("rooms", 2), ("users", 4), ("messages", 5), ("work", 500)]);
    let fragments = ("fragments", Value::Text("room".into()));
    let named: Vec<_> = chat.iter().cloned().chain([fragments]).collect();
    let web = counts(&[
        ("processes", 12),
        ("clients", 16),
        ("request_cycles", 20_000),
    ]);
    let spin = counts(&[("tasks", 5)]);
    for entry in schedulers() {
        for cpus in [1, 3] {
            for chat in [&chat, &named] {
                let (messages, _) = small("chat", chat, entry.name, cpus);
                let all = 2 * 4 * 4 * 5;
                assert_eq!(messages, all, "every message reaches each of its room");
            }
            let (requests, digest) = small("web", &web, entry.name, cpus);
            assert!(requests > 16, "{}: {requests} requests", entry.name);
            assert_eq!(small("web", &web, entry.name, cpus), (requests, digest));
            let (bursts, _) = small("spin", &spin, entry.name, cpus);
            // Half a million cycles of 10 ns each make 140 bursts in 700 ms and on each CPU, less
            // what the kernel takes.
            let most = 140 * u64::from(cpus);
            assert!(
                (most * 8 / 10..=most).contains(&bursts),
                "{}: {bursts}",
                entry.name
            );
        }
    }
}
