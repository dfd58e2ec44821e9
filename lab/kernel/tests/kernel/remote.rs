//! Remote peers, and network cards.

use std::cell::Cell;
use std::rc::Rc;

use warmq_kernel::*;
use warmq_trace::{Interrupt, Record};
use warmq_units::{Bytes, Duration};

use crate::support::*;

/// One client requests a page of `page` bytes `rounds` times, over a link of `bits` per second with
/// a delay of 100 us each way, and then closes its connection.
fn served(cpus: u16, bits: u64, page: u64, rounds: u64, memory: bool) -> (Story, u64) {
    let mut on = stage(cpus).costs(some_costs());
    on.settings.caches = memory;
    served_on(on, bits, page, rounds)
}

fn served_on(on: Stage, bits: u64, page: u64, rounds: u64) -> (Story, u64) {
    let answered = Rc::new(Cell::new(0));
    let count = answered.clone();
    let story = on.plays(move |boot: &mut Boot<'_>| -> Started {
        let (listener, nic) = (boot.listener(), boot.nic(bits, Duration::from_us(100)));
        boot.task(called("server"), move |task: Task| async move {
            for _ in 0..rounds {
                let connection = task.accept(listener).await;
                task.receive_all(connection, Bytes(300)).await.unwrap();
                task.send(connection, Bytes(page)).await;
                while task.receive(connection, Bytes(300)).await.0 > 0 {}
                task.close(connection).await;
            }
        })?;
        let count = count.clone();
        boot.remote(move |client: RemotePeer| async move {
            for _ in 0..rounds {
                let connection = client.connect(listener, nic).await;
                client.send(connection, Bytes(300)).await;
                client.receive(connection, Bytes(page)).await;
                client.close(connection).await;
                count.set(count.get() + 1);
            }
        });
        Ok(())
    });
    (story, answered.get())
}

#[test]
fn bytes_need_the_time_that_their_link_needs() {
    for (bits, page) in [
        (100_000_000, 10_000),
        (100_000_000, 100_000),
        (1_000_000_000, 100_000),
    ] {
        let (story, answered) = served(1, bits, page, 5, false);
        assert_eq!((story.ending.clone(), answered), (Ending::WorkDone, 5));
        let least = Duration(5 * (300 + page) * 8 * (1_000_000_000_000 / bits) + 5 * 200_000_000);
        let took = story.kernel.now() - warmq_units::Instant::START;
        assert!(
            took >= least,
            "{page} bytes at {bits} bits/s took {took}, not {least}"
        );
        assert!(took < least * 2, "and not much longer: {took} for {least}");
    }
}

#[test]
fn what_another_machine_sends_is_no_stream_over_loopback() {
    let spent = |loopback| {
        let mut on = stage(1).costs(some_costs());
        on.settings.loopback = loopback;
        let (story, answered) = served_on(on, 1_000_000_000, 10_000, 3);
        assert_eq!(answered, 3);
        story.spent(0, Mode::System)
    };
    assert_eq!(spent(Loopback::LINUX_6), spent(Loopback::BEFORE_LINUX_6));
}

#[test]
fn a_socket_of_a_connection_that_is_over_serves_the_next() {
    // 64 KB of buffer for each of 1000 connections at once would not fit into 8 MB.
    let (story, answered) = served(2, 1_000_000_000, 2_000, 1_000, true);
    assert_eq!((story.ending, answered), (Ending::WorkDone, 1_000));
}

#[test]
fn connections_that_do_not_fit_into_memory_end_the_run() {
    let story = stage(1).plays_badly(|boot: &mut Boot<'_>| -> Started {
        let (listener, nic) = (boot.listener(), boot.nic(1_000_000_000, Duration::ZERO));
        boot.task(called("deaf"), |task: Task| async move {
            task.compute(us(10_000)).await;
        })?;
        boot.remote(move |client: RemotePeer| async move {
            loop {
                client.connect(listener, nic).await;
            }
        });
        Ok(())
    });
    assert!(
        matches!(story.ending, Ending::MemoryFull { .. }),
        "{}",
        story.ending
    );
}

#[test]
fn bytes_of_a_connection_that_is_over_reach_nobody_else() {
    let story = stage(1)
        .until_ms(500)
        .plays(|boot: &mut Boot<'_>| -> Started {
            let listener = boot.listener();
            let slow = boot.nic(1_000_000, Duration::from_ms(1));
            boot.task(called("server"), move |task: Task| async move {
                for _ in 0..2 {
                    let connection = task.accept(listener).await;
                    task.receive_all(connection, Bytes(10)).await.unwrap();
                    task.send(connection, Bytes(1_000)).await;
                    while task.receive(connection, Bytes(10)).await.0 > 0 {}
                    task.close(connection).await;
                }
            })?;
            boot.remote(move |client: RemotePeer| async move {
                let hasty = client.connect(listener, slow).await;
                client.send(hasty, Bytes(10)).await;
                client.close(hasty).await;
                let patient = client.connect(listener, slow).await;
                client.send(patient, Bytes(10)).await;
                // Only its own thousand; those of the hasty client are lost.
                client.receive(patient, Bytes(1_001)).await;
                client.close(patient).await;
            });
            Ok(())
        });
    assert_ne!(
        story.ending,
        Ending::WorkDone,
        "the patient client waits for a byte that never comes"
    );
}

#[test]
fn a_burst_raises_one_interrupt() {
    let story = stage(1)
        .costs(costs(&[("network_packet", 50_000)]))
        .until_ms(9)
        .plays(|boot: &mut Boot<'_>| -> Started {
            let (listener, nic) = (boot.listener(), boot.nic(1_000_000_000, Duration::ZERO));
            boot.task(called("server"), move |task: Task| async move {
                let connection = task.accept(listener).await;
                task.receive_all(connection, Bytes(100 * 100))
                    .await
                    .unwrap();
            })?;
            boot.remote(move |client: RemotePeer| async move {
                let connection = client.connect(listener, nic).await;
                for _ in 0..100 {
                    client.send(connection, Bytes(100)).await;
                }
            });
            Ok(())
        });
    // A packet takes 1.5 us on the link and 50 us in the kernel: the others fill the ring while the
    // first is handled.
    let raised = story.records().iter().filter(|(_, record)| {
        matches!(
            record,
            Record::InterruptEnter {
                interrupt: Interrupt::Network,
                ..
            }
        )
    });
    assert_eq!(raised.count(), 1);
    assert_eq!(story.spent(0, Mode::Softirq), Duration::from_us(101 * 50));
}

#[test]
fn a_card_spreads_its_interrupts_over_the_cpus() {
    let (story, _) = served(3, 1_000_000_000, 2_000, 30, false);
    for number in 0..3 {
        let here = story.records().iter().filter(|(_, record)| {
            matches!(record, Record::InterruptEnter { cpu: on, interrupt: Interrupt::Network }
                if *on == cpu(number))
        });
        assert!(here.count() >= 10, "cpu{number}");
    }
}
