//! Softirqs: a context of their own, their limits, and ksoftirqd.

use warmq_kernel::*;
use warmq_trace::{Interrupt, Record};
use warmq_units::{Bytes, Duration};

use crate::support::*;

/// A machine of one CPU with a hog and a receiver. It is sent `datagrams` as fast as the link
/// carries them (1.3 us each); each costs 50 us in the receive softirq.
fn flooded(limits: SoftirqLimits, datagrams: u32) -> (Story, Socket, Nic) {
    let mut on = stage(1)
        .costs(costs(&[("network_packet", 50_000)]))
        .until_ms(100);
    on.settings.softirqs = limits;
    let made = Kept::default();
    let keep = made.clone();
    let story = on.plays(move |boot: &mut Boot<'_>| -> Started {
        let nic = boot.nic(1_000_000_000, Duration::ZERO);
        let socket = boot.datagram_socket(Bytes::from_kb(64))?;
        keep.set(Some((socket, nic)));
        boot.task(called("hog"), |task: Task| async move {
            task.compute(us(10_000_000)).await;
        })?;
        boot.task(called("receiver"), move |task: Task| async move {
            loop {
                task.receive_datagram(socket).await;
            }
        })?;
        boot.remote(move |peer| async move {
            for _ in 0..datagrams {
                peer.send_datagram(socket, nic, Bytes(64)).await;
            }
        });
        Ok(())
    });
    let (socket, nic) = made.get().expect("the workload started");
    (story, socket, nic)
}

type Kept = std::rc::Rc<std::cell::Cell<Option<(Socket, Nic)>>>;

fn ticks(story: &Story) -> usize {
    let tick = |record: &Record| {
        matches!(
            record,
            Record::InterruptEnter {
                interrupt: Interrupt::Timer,
                ..
            }
        )
    };
    let records = story.records().iter();
    records.filter(|(_, record)| tick(record)).count()
}

#[test]
fn ticks_arrive_while_a_flood_is_worked_on() {
    // 200 packets are 10 ms of softirq in one run.
    let (story, ..) = flooded(SoftirqLimits::LINUX_2_4, 200);
    let records = story.records().iter();
    let records: Vec<_> = records.filter(|(_, record)| !record.is_detail()).collect();
    let inside = records.windows(2).any(|pair| {
        matches!(
            pair,
            [
                (
                    _,
                    Record::InterruptEnter {
                        interrupt: Interrupt::NetworkSoftirq,
                        ..
                    }
                ),
                (
                    _,
                    Record::InterruptEnter {
                        interrupt: Interrupt::Timer,
                        ..
                    }
                ),
            ]
        )
    });
    assert!(inside, "a tick interrupts the softirq");
    assert_eq!(ticks(&story), 10);
}

#[test]
fn what_exceeds_the_limits_is_left_to_ksoftirqd_which_competes_with_others() {
    let (story, ..) = flooded(SoftirqLimits::LINUX_6, 100_000);
    let ran = |name: &str| {
        let forks = story.records().iter().find_map(|(_, record)| match record {
            Record::Fork { child, comm, .. } if comm.raw() == name => Some(*child),
            _ => None,
        });
        story.task(forks.expect("it was forked").0).ran
    };
    assert!(ran("ksoftirqd/0") > Duration::ZERO);
    // Round robin gives the hog at least every third turn, although the softirq always has work.
    assert!(ran("hog") > Duration::from_ms(15), "{}", ran("hog"));
}

#[test]
fn without_ksoftirqd_a_flood_locks_the_programs_out() {
    let (story, ..) = flooded(SoftirqLimits::LINUX_2_4, 100_000);
    let user = story.spent(0, Mode::User);
    assert!(user < Duration::from_ms(1), "receive livelock: {user}");
}

#[test]
fn every_packet_is_received_dropped_or_in_flight() {
    for (limits, datagrams) in [
        (SoftirqLimits::LINUX_2_4, 10),
        (SoftirqLimits::LINUX_2_4, 2_000),
        (SoftirqLimits::LINUX_6, 50_000),
    ] {
        let (story, socket, nic) = flooded(limits, datagrams);
        let packets = story.kernel.packets(nic);
        let accounted = packets.received + packets.dropped + packets.in_flight;
        assert_eq!(packets.sent, u64::from(datagrams));
        assert_eq!(accounted, packets.sent, "{packets:?}");
        assert_eq!(
            packets.dropped > 0,
            datagrams > 10,
            "the ring has 256 places"
        );
        let sockets = story.kernel.datagrams(socket);
        assert_eq!(sockets.sent, u64::from(datagrams));
        assert!(sockets.received + sockets.dropped <= sockets.sent);
    }
}

#[test]
fn a_kernel_thread_does_not_keep_a_run_going() {
    let mut on = stage(2);
    on.settings.softirqs = SoftirqLimits::LINUX_6;
    let story = on.plays(|boot: &mut Boot<'_>| -> Started {
        boot.task(called("one"), |task: Task| async move {
            task.compute(us(10)).await;
        })?;
        Ok(())
    });
    assert_eq!(story.ending, Ending::WorkDone);
    assert_eq!(story.exit_us(0), 10);
}

#[test]
fn a_full_receive_buffer_drops_datagrams_by_their_true_size() {
    let said = Said::default();
    let says = said.clone();
    stage(1).plays(move |boot: &mut Boot<'_>| -> Started {
        // 64 bytes are charged as 768: after 6 of them 4,608 bytes exceed the limit of 4,096.
        let socket = boot.datagram_socket(Bytes::from_kb(4))?;
        let says = says.clone();
        boot.task(called("both"), move |task: Task| async move {
            for _ in 0..20 {
                task.send_datagram(socket, Bytes(64)).await;
            }
            for _ in 0..6 {
                let bytes = task.receive_datagram(socket).await;
                says.say(format!("{}", bytes.0));
            }
            task.sleep(Duration::from_ms(1)).await;
            task.send_datagram(socket, Bytes(1)).await;
            says.say(format!("{}", task.receive_datagram(socket).await.0));
        })?;
        Ok(())
    });
    assert_eq!(said.all(), ["64", "64", "64", "64", "64", "64", "1"]);
}

#[test]
fn a_stream_survives_a_full_ring_because_its_sender_sends_again() {
    let story = stage(1)
        .costs(costs(&[("network_packet", 20_000)]))
        .until_ms(2_000)
        .plays(|boot: &mut Boot<'_>| -> Started {
            let nic = boot.nic_with_ring(1_000_000_000, Duration::ZERO, 4);
            let listener = boot.listener();
            boot.task(called("server"), move |task: Task| async move {
                let connection = task.accept(listener).await;
                task.receive_all(connection, Bytes(5_000)).await.unwrap();
            })?;
            boot.remote(move |peer| async move {
                let connection = peer.connect(listener, nic).await;
                for _ in 0..50 {
                    peer.send(connection, Bytes(100)).await;
                }
            });
            Ok(())
        });
    assert_eq!(story.ending, Ending::WorkDone);
    assert!(story.exit_us(0) > 200_000, "after a retransmission timeout");
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

/// Case 16 of the starvation paper: what a pass over a full ring takes. Packets of 1 ns never fill
/// the time, so a pass ends for its budget.
#[test]
fn a_pass_of_2_6_16_ends_within_a_poll_and_one_of_2_6_24_after_it() {
    for (limits, pass) in [
        (SoftirqLimits::LINUX_2_6_16, [64, 64, 64, 64, 44]),
        (SoftirqLimits::LINUX_2_6_24, [64, 64, 64, 64, 64]),
    ] {
        let mut on = stage(1)
            .costs(costs(&[("network_packet", 2_000)]))
            .until_ms(20);
        on.settings.softirqs = limits;
        on.settings.tick = Duration::from_s(1);
        let story = on.plays(flood_of(10_000));
        let polls = polls(&story);
        assert_eq!(polls[..5], pass);
        assert_eq!(polls[5..10], pass);
    }
}

/// So many datagrams, as fast as a link of 1 Gbit/s carries them, to a task that receives.
fn flood_of(datagrams: u32) -> impl Workload {
    move |boot: &mut Boot<'_>| -> Started {
        let nic = boot.nic(1_000_000_000, Duration::ZERO);
        let socket = boot.datagram_socket(Bytes::from_kb(64))?;
        boot.task(called("hog"), |task: Task| async move {
            task.compute(us(10_000_000)).await;
        })?;
        boot.task(called("receiver"), move |task: Task| async move {
            loop {
                task.receive_datagram(socket).await;
            }
        })?;
        boot.remote(move |peer| async move {
            for _ in 0..datagrams {
                peer.send_datagram(socket, nic, Bytes(64)).await;
            }
        });
        Ok(())
    }
}

/// A packet takes 500 us and a jiffy 4 ms, so that a poll of 4 packets is half a jiffy. Runs end at
/// the first poll that begins after the wanted ticks, wherever in a jiffy they began.
#[test]
fn a_run_ends_when_the_jiffies_have_changed_and_not_after_a_span() {
    for (most, whole) in [(1, true), (2, false)] {
        let mut on = stage(1)
            .costs(costs(&[("network_packet", 500_000)]))
            .until_ms(60);
        on.settings.tick = Duration::from_ms(4);
        on.settings.softirqs = SoftirqLimits {
            packets_time: PollTime::Jiffies(most),
            weight: 4,
            whole_polls: whole,
            ..SoftirqLimits::LINUX_2_6_16
        };
        let story = on.plays(flood_of(10_000));
        let mut runs = Vec::new();
        let mut since = None;
        for (at, record) in story.records() {
            match record {
                Record::InterruptEnter {
                    interrupt: Interrupt::NetworkSoftirq,
                    ..
                } => since = Some(*at),
                Record::InterruptExit {
                    interrupt: Interrupt::NetworkSoftirq,
                    ..
                } => runs.extend(since.take().map(|since| (since, *at))),
                _ => {}
            }
        }
        assert!(runs.len() > 3);
        for (from, to) in runs {
            let jiffy = Duration::from_ms(4).0;
            let changed = to.0 / jiffy - from.0 / jiffy;
            assert_eq!(changed, u64::from(most), "from {from:?} to {to:?}");
        }
    }
}

/// The softirq takes most of the hog's time. Only some kernels charge it to the hog.
#[test]
fn a_tick_that_hits_a_softirq_is_charged_to_the_task_below_where_the_kernel_does_so() {
    let sampled = |charges: bool| {
        let mut on = stage(1)
            .costs(costs(&[("network_packet", 50_000)]))
            .until_ms(200);
        on.settings.softirqs = SoftirqLimits::LINUX_2_4;
        on.settings.tick_charges_interrupts = charges;
        let story = on.plays(flood_of(100_000));
        let hog = story.kernel.task(warmq_units::TaskId(0)).expect("the hog");
        hog.sampled
    };
    assert_eq!(sampled(false).system, Duration::ZERO);
    let charged = sampled(true);
    assert!(charged.system >= Duration::from_ms(50), "{charged:?}");
}
