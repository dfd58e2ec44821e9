//! Models of network cards: when they interrupt, how they are polled, what they lose.

use proptest::prelude::*;

use warmq_kernel::*;
use warmq_machine::CardModel;
use warmq_trace::{Interrupt, Record};
use warmq_units::{Bytes, CpuId, Duration, Instant};

use crate::support::*;

type Kept = std::rc::Rc<std::cell::Cell<Option<(Socket, Nic)>>>;

/// A source of datagrams of 64 bytes.
#[derive(Clone, Copy, Debug)]
struct Source {
    card: &'static str,
    /// Time between datagrams.
    gap: Duration,
    datagrams: u64,
    /// Whether the task receives them.
    received: bool,
}

impl Source {
    fn evenly(card: &'static str, kpps: u64, datagrams: u64) -> Source {
        let gap = Duration(1_000_000_000 / kpps);
        Source {
            card,
            gap,
            datagrams,
            received: true,
        }
    }

    /// Plays it to a task that receives beside a hog.
    fn plays(self, stage: Stage) -> (Story, DatagramCounts, PacketCounts) {
        let made = Kept::default();
        let keep = made.clone();
        let buffer = stage.settings.datagram_buffer;
        let story = stage.plays_badly(move |boot: &mut Boot<'_>| -> Started {
            let model = CardModel::named(self.card).expect("a model");
            let nic = boot.nic_of(model, Duration::ZERO);
            let socket = boot.datagram_socket(buffer)?;
            keep.set(Some((socket, nic)));
            boot.task(called("hog"), |task: Task| async move {
                task.compute(us(10_000_000)).await;
            })?;
            boot.task(called("receiver"), move |task: Task| async move {
                if !self.received {
                    return;
                }
                loop {
                    task.receive_datagram(socket).await;
                }
            })?;
            boot.remote(move |peer| async move {
                for _ in 0..self.datagrams {
                    peer.send_datagram(socket, nic, Bytes(64)).await;
                    peer.pause(self.gap).await;
                }
            });
            Ok(())
        });
        let (socket, nic) = made.get().expect("the workload started");
        let (sockets, packets) = (story.kernel.datagrams(socket), story.kernel.packets(nic));
        (story, sockets, packets)
    }
}

/// The interrupts of cards, with their CPUs.
fn interrupts(story: &Story) -> Vec<(Instant, CpuId)> {
    let taken = story
        .records()
        .iter()
        .filter_map(|(at, record)| match record {
            Record::InterruptEnter {
                cpu,
                interrupt: Interrupt::Network,
            } => Some((*at, *cpu)),
            _ => None,
        });
    taken.collect()
}

/// The packets of each poll, in order.
fn polls(story: &Story) -> Vec<u32> {
    let taken = story
        .records()
        .iter()
        .filter_map(|(_, record)| match record {
            Record::Poll { packets, .. } => Some(*packets),
            _ => None,
        });
    taken.collect()
}

/// Linux 2.6.16 with costs of so many ns.
fn linux2616(some: &[(&str, u64)], ms: u64) -> Stage {
    let mut on = stage(1).costs(costs(some)).until_ms(ms);
    let kernel = Settings::linux2616(on.settings.seed);
    on.settings = Settings {
        softirqs: kernel.softirqs,
        receive_charge: kernel.receive_charge,
        e100_last_poll: kernel.e100_last_poll,
        datagram_buffer: kernel.datagram_buffer,
        ..on.settings
    };
    on
}

/// Case 17 of the starvation paper: with even spacing and polls that keep up.
#[test]
fn tg3_interrupts_for_one_two_or_three_packets_by_their_spacing() {
    for (kpps, a_second) in [
        (40, 40_000),
        (49, 49_000),
        (60, 30_000),
        (90, 45_000),
        (110, 36_667),
        (300, 60_000),
    ] {
        let (ms, packet) = (300, [("network_packet", 100)]);
        let source = Source::evenly("bcm5752", kpps, u64::MAX);
        let (story, ..) = source.plays(linux2616(&packet, ms));
        let per_second = interrupts(&story).len() as u64 * 1_000 / ms;
        assert!(
            per_second.abs_diff(a_second) < 10,
            "{kpps} Kpps: {per_second}"
        );
    }
}

/// At 300 Kpps a fifth packet follows the first after 13.3 us.
#[test]
fn a_packet_waits_for_its_report_for_20_us_at_most() {
    for (kpps, waits_ns) in [(10, 20_000), (300, 13_333)] {
        let (story, ..) = Source::evenly("bcm5752", kpps, 5).plays(linux2616(&[], 10));
        let (first, _) = interrupts(&story)[0];
        let wire = 130 * 8;
        let waited = (first - Instant::START).as_ns() - wire;
        assert!(waited.abs_diff(waits_ns) < 2, "{waited} ns");
    }
}

#[test]
fn e100_and_cards_without_napi_interrupt_for_each_packet_while_the_cpu_keeps_up() {
    for card in ["intel-e100", "per-packet"] {
        let packet = [("network_packet", 1_000)];
        let (story, _, packets) = Source::evenly(card, 50, 1_000).plays(linux2616(&packet, 50));
        assert_eq!(interrupts(&story).len(), 1_000, "{card}");
        assert_eq!(packets.received, 1_000, "{card}");
    }
}

/// A packet takes longer in the softirq than until the next one comes. With NAPI, only the first
/// interrupts; without, all do, on top of the softirq.
#[test]
fn only_a_card_without_napi_interrupts_while_it_is_polled() {
    let packet = [("network_packet", 30_000)];
    let mut counts = ["bcm5752", "intel-e100", "per-packet"]
        .into_iter()
        .map(|card| {
            let source = Source::evenly(card, 50, u64::MAX);
            interrupts(&source.plays(linux2616(&packet, 20)).0).len()
        });
    assert_eq!(counts.next(), Some(1), "tg3");
    assert_eq!(counts.next(), Some(1), "e100");
    let per_packet = counts.next().expect("three cards");
    assert!(per_packet >= 999, "{per_packet}");
}

/// Case 16 of the starvation paper: the polls of a pass over a ring that stays full.
#[test]
fn a_pass_takes_the_weight_of_the_card_and_ends_with_the_budget() {
    let packet = [("network_packet", 4_000)];
    let passes = |card, kernel: SoftirqLimits| {
        let mut on = linux2616(&packet, 20);
        on.settings.tick = Duration::from_s(1);
        on.settings.softirqs = kernel;
        polls(&Source::evenly(card, 700, u64::MAX).plays(on).0)
    };
    let old = passes("bcm5752", SoftirqLimits::LINUX_2_6_16);
    assert_eq!(old[..6], [64, 64, 64, 64, 44, 64]);
    let new = passes("bcm5752", SoftirqLimits::LINUX_2_6_24);
    assert_eq!(new[..6], [64; 6]);
}

/// e100 polls once more than 2.6.24 does: it unmasks after a poll that found nothing.
#[test]
fn e100_of_2_6_16_ends_with_an_empty_poll() {
    for (last, wanted) in [
        (LastPoll::Empty, vec![1, 0]),
        (LastPoll::BelowWeight, vec![1]),
    ] {
        let mut on = linux2616(&[("network_packet", 1_000)], 10);
        on.settings.e100_last_poll = last;
        let (story, ..) = Source::evenly("intel-e100", 1, 1).plays(on);
        assert_eq!(polls(&story), wanted);
    }
}

/// Case 16 of the starvation paper: what a socket of the default size holds while its reader waits.
#[test]
fn a_socket_of_2_6_holds_what_its_driver_allocated() {
    for (card, held) in [("bcm5752", 368), ("intel-e100", 58)] {
        let source = Source {
            received: false,
            ..Source::evenly(card, 50, 1_000)
        };
        let (_, sockets, packets) = source.plays(linux2616(&[], 100));
        assert_eq!((sockets.sent, packets.dropped), (1_000, 0));
        let queued = sockets.sent - sockets.dropped;
        assert_eq!(queued, held, "{card}");
    }
}

/// A queue for each CPU, with an interrupt that always goes there; a socket has one queue.
#[test]
fn the_packets_of_a_socket_interrupt_one_cpu_of_a_card_with_many_queues() {
    let story = stage(4)
        .until_ms(20)
        .plays(|boot: &mut Boot<'_>| -> Started {
            let model = CardModel::named("multi-queue").expect("a model");
            let nic = boot.nic_of(model, Duration::ZERO);
            for _ in 0..8 {
                let socket = boot.datagram_socket(Bytes::from_kb(64))?;
                boot.task(called("receiver"), move |task: Task| async move {
                    loop {
                        task.receive_datagram(socket).await;
                    }
                })?;
                boot.remote(move |peer| async move {
                    for _ in 0..20 {
                        peer.send_datagram(socket, nic, Bytes(64)).await;
                        peer.pause(Duration::from_us(500)).await;
                    }
                });
            }
            Ok(())
        });
    let taken = interrupts(&story);
    let cpus: std::collections::BTreeSet<CpuId> = taken.iter().map(|(_, cpu)| *cpu).collect();
    assert!(cpus.len() > 1, "eight sockets share one queue: {cpus:?}");
    // Every burst is reported in one interrupt for each queue.
    assert_eq!(taken.len(), 20 * cpus.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Sent is received, dropped by the ring, by the backlog or by the socket, or in flight.
    #[test]
    fn every_packet_of_a_card_with_a_model_is_accounted_for(
        card in prop::sample::select(vec!["bcm5752", "intel-e100", "multi-queue", "per-packet"]),
        kpps in 1u64..800,
        datagrams in 1u64..4_000,
        packet_ns in 0u64..20_000,
        receive_ns in 0u64..30_000,
        entry_ns in 0u64..2_000,
        cpus in 1u16..4,
        ms in 1u64..60,
        drained in any::<bool>(),
    ) {
        let some = [
            ("network_packet", packet_ns),
            ("socket_receive", receive_ns),
            ("interrupt_entry", entry_ns),
        ];
        let mut on = linux2616(&some, if drained { 400 } else { ms });
        on.machine = machine(cpus);
        let (story, sockets, packets) = Source::evenly(card, kpps, datagrams).plays(on);
        prop_assert_eq!(story.kernel.check_times(), Ok(()));
        prop_assert_eq!(packets.sent, packets.received + packets.dropped + packets.in_flight);
        prop_assert_eq!(sockets.sent, packets.sent);
        prop_assert!(sockets.dropped >= packets.dropped);
        let queued = sockets.sent - sockets.received - sockets.dropped - packets.in_flight;
        prop_assert!(queued <= 368 + 1, "{:?} {:?}", sockets, packets);
    }
}
