//! The starvation paper on machine C: a second of work beside a receiver of packets, under O(1).

use std::collections::BTreeMap;

use warmq_kernel::*;
use warmq_machine::{CardModel, builtin, read_toml};
use warmq_trace::{Checker, Interrupt, Observer, Record};
use warmq_units::{Bytes, Cycles, Duration, Instant, Seed, TaskId};

use crate::stage::*;

/// Counts what the paper shows.
#[derive(Default)]
struct Seen {
    done: Option<Instant>,
    interrupts: u64,
    by_task: BTreeMap<TaskId, u64>,
}

impl Observer for Seen {
    fn see(&mut self, at: Instant, record: &Record) {
        match record {
            Record::Exit { .. } => self.done = Some(at),
            Record::InterruptEnter {
                interrupt: Interrupt::Network,
                ..
            } => self.interrupts += 1,
            Record::Switch {
                next: Some(task), ..
            } => *self.by_task.entry(*task).or_default() += 1,
            _ => {}
        }
    }
}

/// How long a run of Simplex beside a receiver took, and how often it was preempted.
#[derive(Debug)]
#[expect(dead_code, reason = "shown where an expectation fails")]
struct Outcome {
    /// How long the work of one second took; `None`: longer than the run.
    elapsed: Option<Duration>,
    /// Its time as the tick sampled it.
    sampled: CpuTime,
    /// How often it was switched to.
    switched: u64,
    /// Interrupts of the card, a second.
    interrupts: u64,
    packets: PacketCounts,
    datagrams: DatagramCounts,
}

/// The time from one packet to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Gaps {
    Even,
    /// Evenly drawn between nothing and twice the mean.
    Drawn,
}

/// Simplex 1 for `limit` at most, beside a receiver of `kpps`.
fn simplex(kpps: u64, gaps: Gaps, limit: Duration) -> Outcome {
    let text = builtin("p4").expect("a shipped machine");
    let machine = read_toml("p4.toml", text).expect("a sound machine");
    let costs = Costs::new(machine.costs["linux-2.6.16"].clone());
    let settings = Settings::linux2616(Seed(1));
    let made = std::rc::Rc::new(std::cell::Cell::new(None));
    let keep = made.clone();
    let workload = move |boot: &mut Boot<'_>| -> Started {
        let nic = boot.nic_of(CardModel::named("bcm5752").expect("a model"), us(50));
        let socket = boot.datagram_socket(Bytes(107_520))?;
        keep.set(Some((nic, socket)));
        let (simplex, receiver) = (boot.mm(), boot.mm());
        boot.task(
            TaskSpec::new("simplex", Some(simplex)),
            |task: Task| async move {
                task.compute(Cycles(3_200_000_000)).await;
            },
        )?;
        boot.task(
            TaskSpec::new("receiver", Some(receiver)),
            move |task: Task| async move {
                loop {
                    task.receive_datagram(socket).await;
                }
            },
        )?;
        boot.remote(move |peer| async move {
            let gap = 1_000_000_000 / kpps;
            let mut state = 1u64;
            // A linear congruential sequence, of which the upper bits serve.
            loop {
                peer.send_datagram(socket, nic, Bytes(64)).await;
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let drawn = (state >> 33) % (2 * gap) + 1;
                let gap = if gaps == Gaps::Even { gap } else { drawn };
                peer.pause(Duration(gap)).await;
            }
        });
        Ok(())
    };
    let kernel = Kernel::boot(
        &machine,
        &costs,
        settings,
        scheduler("o1", &[]),
        &workload,
        (Seen::default(), Checker::of_a_run()),
    );
    let mut kernel = kernel.expect("the workload fits");
    let mut end = Instant::START;
    while kernel.observer().0.done.is_none() && end < Instant::START + limit {
        end += Duration::from_ms(100);
        kernel.run_until(end);
    }
    let (nic, socket) = made.get().expect("the workload started");
    let seen = &kernel.observer().0;
    Outcome {
        elapsed: seen.done.map(|at| at - Instant::START),
        sampled: kernel.task(TaskId(0)).expect("Simplex").sampled,
        switched: seen.by_task.get(&TaskId(0)).copied().unwrap_or(0),
        interrupts: seen.interrupts * 1_000_000 / (end - Instant::START).as_us().max(1),
        packets: kernel.packets(nic),
        datagrams: kernel.datagrams(socket),
    }
}

fn us(us: u64) -> Duration {
    Duration::from_us(us)
}

/// The finding of the paper: the work starves in a band of rates, where the receiver sleeps for
/// moments and is interactive; below and above it does not. Above, the receiver never sleeps, uses
/// up its slices, and Simplex has half of the CPU in few turns: the work takes less than 2.5 s at
/// 150 Kpps, as the paper measured. Without the receiver it would take 1 s.
#[test]
fn work_starves_beside_a_receiver_only_in_a_band_of_rates() {
    let limit = Duration::from_ms(3_000);
    for gaps in [Gaps::Even, Gaps::Drawn] {
        for (kpps, starves) in [
            (30, false),
            (75, true),
            (85, true),
            (100, false),
            (110, false),
            (150, false),
        ] {
            let outcome = simplex(kpps, gaps, limit);
            let told = format!("{gaps:?} at {kpps} Kpps: {outcome:?}");
            assert_eq!(outcome.elapsed.is_none(), starves, "{told}");
            if kpps >= 100 {
                let elapsed = outcome.elapsed.expect("it did not starve");
                assert!(elapsed > Duration::from_ms(2_000), "{told}");
                assert!(elapsed < Duration::from_ms(2_500), "{told}");
                assert!(outcome.switched < 50, "{told}");
            } else {
                assert!(outcome.switched > 10_000, "{told}");
            }
        }
    }
}

/// Ticks that hit the softirq count as Simplex's own: its user and system time exceed the second of
/// its work by what the softirq took on top of it. The gaps are drawn, as even ones may never meet
/// a tick, or always.
#[test]
fn the_time_of_softirqs_is_in_the_cpu_time_of_the_work() {
    let outcome = simplex(110, Gaps::Drawn, Duration::from_ms(3_000));
    let sampled = outcome.sampled;
    assert!(sampled.system > Duration::from_ms(80), "{outcome:?}");
    let sum = sampled.user + sampled.system;
    let half = outcome.elapsed.expect("it did not starve") / 2;
    assert!(sum.as_us().abs_diff(half.as_us()) < 50_000, "{outcome:?}");
}
