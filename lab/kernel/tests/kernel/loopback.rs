//! Streams over the loopback device of Linux 6: send buffers, windows, acknowledgements, Nagle's
//! algorithm, and who owns a socket.

use std::cell::Cell;
use std::rc::Rc;

use proptest::prelude::*;
use warmq_kernel::*;
use warmq_trace::Record;
use warmq_units::Bytes;

use crate::support::*;

const RECEIVE_BUFFER: u64 = 1_000;
const SEND_BUFFER: u64 = 6_000;

/// As under Linux 6, with a small send buffer, and where nothing is acknowledged at once.
fn linux6(cpus: u16) -> Stage {
    let mut on = stage(cpus);
    on.settings.loopback = Loopback {
        send_buffer: Bytes(SEND_BUFFER),
        quick_acknowledgements: 0,
        ..Loopback::LINUX_6
    };
    on
}

/// One task sends messages of 100 bytes, `sends` of them; when it is through, another receives
/// `receives` of them, from 1 ms on.
fn passes(on: Stage, sends: u64, receives: u64) -> Story {
    passes_by(on, false, sends, receives)
}

fn passes_by(on: Stage, nagle: bool, sends: u64, receives: u64) -> Story {
    on.plays(move |boot: &mut Boot<'_>| -> Started {
        let (near, far) = boot.stream(Bytes(RECEIVE_BUFFER), nagle)?;
        boot.task(called("sender"), move |task: Task| async move {
            for _ in 0..sends {
                task.send(near, Bytes(100)).await;
            }
        })?;
        boot.task(called("receiver"), move |task: Task| async move {
            task.compute(us(1_000)).await;
            for _ in 0..receives {
                assert_eq!(task.receive(far, Bytes(100)).await, Bytes(100));
            }
        })?;
        Ok(())
    })
}

#[test]
fn what_the_receiver_has_no_room_for_stays_with_the_sender() {
    let fits = (RECEIVE_BUFFER + SEND_BUFFER) / 100;
    assert_eq!(passes(linux6(2), fits, fits).exit_us(0), 0);
    let story = passes(linux6(2), fits + 1, fits + 1);
    assert_eq!(story.exit_us(0), 1_000, "there is no room for one more");
    assert_eq!(story.ending, Ending::WorkDone);
}

#[test]
fn a_sender_is_woken_when_a_third_of_the_send_buffer_is_free() {
    let fits = (RECEIVE_BUFFER + SEND_BUFFER) / 100;
    let third = SEND_BUFFER / 3 / 100;
    let waits = passes(linux6(2), fits + 1, third);
    assert!(
        matches!(waits.ending, Ending::Stalled(_)),
        "{:?}",
        waits.ending
    );
    assert_eq!(
        passes(linux6(2), fits + 1, third + 1).ending,
        Ending::WorkDone
    );
}

/// How long both CPUs are in system calls and the softirqs in them, in ns.
fn worked(sends: u64, receives: u64) -> [u64; 2] {
    worked_by(false, sends, receives)
}

/// How long `cpu` is in system calls and the softirqs in them, in ns.
fn in_kernel(story: &Story, cpu: u16) -> u64 {
    let spent = |mode| story.spent(cpu, mode).as_ns();
    spent(Mode::System) + spent(Mode::Softirq)
}

fn worked_by(nagle: bool, sends: u64, receives: u64) -> [u64; 2] {
    let on = linux6(2).costs(costs(&[
        ("socket_send", 10),
        ("socket_receive", 20),
        ("stream_call", 100),
        ("stream_packet", 1_000),
        ("network_packet", 77_777),
    ]));
    let story = passes_by(on, nagle, sends, receives);
    [0, 1].map(|cpu| in_kernel(&story, cpu))
}

/// The receiving side's part of what a packet takes is a softirq's, on the CPU that sends.
#[test]
fn a_packet_arrives_in_a_softirq() {
    let mut on = linux6(1).costs(costs(&[
        ("stream_packet", 1_000),
        ("network_packet", 2_000),
    ]));
    on.settings.loopback.arrival_permille = 300;
    let story = on.plays(|boot: &mut Boot<'_>| -> Started {
        let (near, _) = boot.stream(Bytes(RECEIVE_BUFFER), false)?;
        let datagrams = boot.datagram_socket(Bytes(10_000))?;
        boot.task(called("sender"), move |task: Task| async move {
            task.send(near, Bytes(100)).await;
            task.send_datagram(datagrams, Bytes(100)).await;
        })?;
        Ok(())
    });
    assert_eq!(story.spent(0, Mode::System).as_ns(), 700 + 1_400);
    assert_eq!(story.spent(0, Mode::Softirq).as_ns(), 300 + 600);
}

/// CPUs that write into one pipe wait for its mutex, and write the lines of it that they pass one
/// another.
#[test]
fn writers_of_one_pipe_wait_for_its_mutex() {
    let spun = |lines, pipes: usize| {
        let mut on = stage(2).costs(costs(&[("copy_per_line", 500)]));
        on.settings.pipe_lines = lines;
        let story = on.plays(move |boot: &mut Boot<'_>| -> Started {
            let ends = (0..pipes).map(|_| boot.pipe(Bytes::from_kb(64)));
            let ends = ends.collect::<Result<Vec<_>, _>>()?;
            for writer in 0..2 {
                let (near, _) = ends[writer % pipes];
                let spec = called("writer").bound([cpu(writer as u16)]);
                boot.task(spec, move |task: Task| async move {
                    for _ in 0..100 {
                        task.send(near, Bytes(100)).await;
                    }
                })?;
            }
            Ok(())
        });
        story.spent(0, Mode::Spin).as_ns() + story.spent(1, Mode::Spin).as_ns()
    };
    assert!(spun(4, 1) > 100 * 1_000, "each waits for the other's copy");
    assert_eq!(spun(4, 2), 0, "each has its own");
    assert_eq!(spun(0, 1), 0, "it is not modelled");
}

/// Four tasks write 400 messages of 100 bytes each into a pipe of two pages, of which a fifth task
/// reads one after the other, and yields after each.
#[test]
fn a_reader_of_a_full_pipe_wakes_a_writer_for_a_page_and_not_for_a_message() {
    let woken = |lines| {
        let mut on = stage(1);
        on.settings.pipe_lines = lines;
        let story = on.plays(|boot: &mut Boot<'_>| -> Started {
            let (near, far) = boot.pipe(Bytes(8_192))?;
            for _ in 0..4 {
                boot.task(called("writer"), move |task: Task| async move {
                    for _ in 0..400 {
                        task.send(near, Bytes(100)).await;
                    }
                })?;
            }
            boot.task(called("reader"), move |task: Task| async move {
                let mut read = 0;
                while read < 160_000 {
                    read += task.receive(far, Bytes(100)).await.0;
                    task.yield_now().await;
                }
            })?;
            Ok(())
        });
        assert_eq!(story.ending, Ending::WorkDone);
        let of_writers =
            |record: &Record| matches!(record, Record::Wakeup { task, .. } if task.0 < 4);
        let records = story.records().iter().map(|(_, record)| record);
        records.filter(|record| of_writers(record)).count()
    };
    // A page holds 40 messages. Its writer may wake another one, who finds no room.
    assert!(woken(4) <= 2 * 1_600 / 40, "{} with pages", woken(4));
    assert!(woken(0) >= 1_600 - 80, "{} without", woken(0));
}

#[test]
fn a_pipe_has_whole_pages_and_one_that_is_full_takes_what_its_last_page_has_room_for() {
    let mut on = stage(1);
    on.settings.pipe_lines = 4;
    let story = on.plays(|boot: &mut Boot<'_>| -> Started {
        let (near, far) = boot.pipe(Bytes(1))?;
        boot.task(called("both"), move |task: Task| async move {
            task.send(near, Bytes(4_000)).await;
            task.send(near, Bytes(96)).await;
            assert_eq!(task.receive(far, Bytes(9_000)).await, Bytes(4_096));
        })?;
        boot.task(called("writer"), move |task: Task| async move {
            task.compute(us(1_000)).await;
            task.send(near, Bytes(10_000)).await;
        })?;
        boot.task(called("reader"), move |task: Task| async move {
            task.compute(us(2_000)).await;
            let mut sizes = Vec::new();
            while sizes.iter().sum::<u64>() < 10_000 {
                sizes.push(task.receive(far, Bytes(9_000)).await.0);
            }
            assert_eq!(sizes, [4_096, 4_096, 1_808]);
        })?;
        Ok(())
    });
    assert_eq!(story.ending, Ending::WorkDone);
}

/// What a CPU needs to read 50 messages that another one sent: each has lines of its own, which
/// come from there.
#[test]
fn a_message_of_a_unix_socket_has_lines_of_its_own() {
    let read = |lines| {
        let mut on = stage(2).with_caches();
        on.settings.pipe_lines = lines;
        let story = on.plays(|boot: &mut Boot<'_>| -> Started {
            let (near, far) = boot.unix_pair(Bytes(212_992))?;
            let sender = called("sender").bound([cpu(0)]);
            boot.task(sender, move |task: Task| async move {
                for _ in 0..50 {
                    task.send(near, Bytes(1)).await;
                }
            })?;
            let receiver = called("receiver").bound([cpu(1)]);
            boot.task(receiver, move |task: Task| async move {
                task.compute(us(1_000)).await;
                for _ in 0..50 {
                    task.receive(far, Bytes(1)).await;
                }
            })?;
            Ok(())
        });
        in_kernel(&story, 1)
    };
    let (lines, bare) = (read(1), read(0));
    // Of the three lines, the one with the data is read by the copy that follows, too.
    assert!(
        lines - bare > 50 * 2 * 80,
        "{lines} ns, {bare} without them"
    );
}

#[test]
fn a_send_costs_a_packet_only_if_it_comes_to_the_other_end() {
    assert_eq!(worked(10, 0)[0], 10 * 1_110, "the receive buffer has room");
    assert_eq!(worked(15, 0)[0], 10 * 1_110 + 5 * 110, "it has none");
}

#[test]
fn a_receive_that_empties_the_buffer_acknowledges_and_lets_the_rest_come() {
    assert_eq!(worked(10, 9)[1], 9 * 120);
    assert_eq!(worked(10, 10)[1], 10 * 120 + 1_000, "an acknowledgement");
    assert_eq!(
        worked(15, 10)[1],
        10 * 120 + 1_000 + 1_000,
        "and 500 bytes in one segment"
    );
    assert_eq!(
        worked(16, 10)[1],
        10 * 120 + 1_000 + 2_000 + 1_000,
        "600 in two, as one is at most half of the receive buffer, and the first of them is acknowledged"
    );
}

#[test]
fn a_segment_is_no_longer_than_the_device_carries() {
    let segments = |loopback: Loopback| {
        let mut on = linux6(1).costs(costs(&[("stream_packet", 1_000)]));
        on.settings.loopback = loopback;
        let story = on.plays(|boot: &mut Boot<'_>| -> Started {
            let (near, _) = boot.socket_pair(Bytes::from_kb(256))?;
            boot.task(called("sender"), move |task: Task| async move {
                task.send(near, Bytes(100_000)).await;
            })?;
            Ok(())
        });
        in_kernel(&story, 0) / 1_000
    };
    assert_eq!(segments(Loopback::LINUX_6), 2);
    assert_eq!(segments(Loopback::LINUX_2_6_4), 7);
}

#[test]
fn by_nagle_what_is_sent_waits_until_a_short_segment_is_read() {
    let [sender, receiver] = worked_by(true, 10, 1);
    assert_eq!(sender, 1_110 + 9 * 110, "the first is a packet");
    assert_eq!(
        receiver,
        120 + 1_000 + 2_000 + 1_000,
        "the others come in two"
    );
}

#[test]
fn by_nagle_a_long_segment_is_acknowledged_at_once() {
    let send = |bytes: &'static [u64]| {
        let on = linux6(1).costs(costs(&[("stream_packet", 1_000)]));
        let story = on.plays(move |boot: &mut Boot<'_>| -> Started {
            let (near, _) = boot.stream(Bytes(RECEIVE_BUFFER), true)?;
            boot.task(called("sender"), move |task: Task| async move {
                for bytes in bytes {
                    task.send(near, Bytes(*bytes)).await;
                }
            })?;
            Ok(())
        });
        in_kernel(&story, 0)
    };
    assert_eq!(send(&[400, 100]), 1_000, "the second waits");
    assert_eq!(send(&[600, 100]), 3_000, "it does not");
}

/// What a task does on a stream, one after another.
#[derive(Clone, Copy)]
enum Call {
    /// Sends so many messages of 100 bytes.
    Send(u64),
    /// Receives so many.
    Receive(u64),
    /// Computes for so many us.
    Pause(u64),
}
use Call::*;

/// How many packets `calls` make on a stream with this receive buffer.
fn packets_by(on: Stage, receive_buffer: u64, calls: &'static [Call]) -> u64 {
    let on = on.costs(costs(&[("stream_packet", 1_000)]));
    let story = on.plays(move |boot: &mut Boot<'_>| -> Started {
        let (near, far) = boot.socket_pair(Bytes(receive_buffer))?;
        boot.task(called("alone"), move |task: Task| async move {
            for call in calls {
                match *call {
                    Send(messages) => {
                        for _ in 0..messages {
                            task.send(near, Bytes(100)).await;
                        }
                    }
                    Receive(messages) => {
                        for _ in 0..messages {
                            task.receive(far, Bytes(100)).await;
                        }
                    }
                    Pause(span) => task.compute(us(span)).await,
                }
            }
        })?;
        Ok(())
    });
    assert_eq!(story.ending, Ending::WorkDone);
    in_kernel(&story, 0) / 1_000
}

/// The same with room for all messages.
fn packets(calls: &'static [Call]) -> u64 {
    packets_by(linux6(1), 65_536, calls)
}

#[test]
fn no_more_short_segments_come_than_the_congestion_window_allows_until_they_are_read() {
    assert_eq!(packets(&[Send(10)]), 10);
    assert_eq!(packets(&[Send(15)]), 10, "five stay with the sender");
    let left = packets(&[Send(15), Receive(9)]);
    assert_eq!(left, 10, "there is something left to read");
    let read = packets(&[Send(15), Receive(10)]);
    assert_eq!(read, 12, "the five, and an acknowledgement");
}

#[test]
fn the_congestion_window_grows_by_what_was_acknowledged_if_it_was_full() {
    assert_eq!(packets(&[Send(9), Receive(9), Send(11)]), 9 + 1 + 10);
    assert_eq!(packets(&[Send(10), Receive(10), Send(21)]), 10 + 1 + 20);
    let twice = packets(&[Send(10), Receive(10), Send(20), Receive(20), Send(41)]);
    assert_eq!(twice, 10 + 1 + 20 + 1 + 40);
}

#[test]
fn the_first_short_segments_are_acknowledged_at_once() {
    let of_a_new_stream = |receive_buffer| {
        let mut on = linux6(1);
        on.settings.loopback = Loopback::LINUX_6;
        packets_by(on, receive_buffer, &[Send(50)])
    };
    assert_eq!(
        of_a_new_stream(65_536),
        2 * 16 + 10,
        "as in a guest of 6.18"
    );
    assert_eq!(of_a_new_stream(5_000), 2 * 4 + 10);
}

#[test]
fn what_is_not_read_is_acknowledged_after_40_ms() {
    assert_eq!(packets(&[Send(15), Pause(39_000), Send(20)]), 10);
    assert_eq!(
        packets(&[Send(15), Pause(41_000), Send(20)]),
        10 + 19,
        "the five that stayed are one of twenty segments now"
    );
}

/// How long both CPUs take to write what the protocols keep of the ends, in ns.
fn written(nagle: bool, sends: u64, receives: u64) -> [u64; 2] {
    let took = |lines| {
        let mut on = linux6(2).with_caches();
        on.settings.socket_lines = lines;
        on.settings.loopback.segment_memory = Bytes(0);
        let story = passes_by(on, nagle, sends, receives);
        [0, 1].map(|cpu| in_kernel(&story, cpu))
    };
    let (with, without) = (took(8), took(0));
    [0, 1].map(|cpu| with[cpu] - without[cpu])
}

#[test]
fn a_send_writes_the_other_end_if_a_packet_comes_there_and_an_acknowledgement_the_senders() {
    let sends = |nagle| written(nagle, 2, 0)[0] - written(nagle, 1, 0)[0];
    assert_eq!(
        sends(false),
        2 * sends(true),
        "8 lines of both ends, or of one"
    );
    assert!(sends(true) > 0);
    let [first, both] = [1, 2].map(|receives| written(false, 2, receives)[1]);
    assert!(both - first > first, "{first} ns for one end, {both}");
}

#[test]
fn a_segment_has_memory_of_its_own_that_a_sender_writes_and_a_receiver() {
    let written = |nagle, sends, receives| {
        let took = |memory| {
            let mut on = linux6(2).with_caches();
            on.settings.socket_lines = 0;
            on.settings.loopback.segment_memory = Bytes(memory);
            let story = passes_by(on, nagle, sends, receives);
            [0, 1].map(|cpu| in_kernel(&story, cpu))
        };
        let (with, without) = (took(1_216), took(0));
        [0, 1].map(|cpu| with[cpu] - without[cpu])
    };
    let [one, two] = [1, 2].map(|sends| written(false, sends, 0)[0]);
    assert!(one > 0 && two == 2 * one, "{one} ns, {two}");
    assert_eq!(written(true, 2, 0)[0], one, "the second one is held back");
    let [one, two] = [1, 2].map(|receives| written(false, 2, receives)[1]);
    assert!(one > 0 && 2 * two > 3 * one, "{one} ns, {two}");
}

#[test]
fn segments_use_the_memory_of_earlier_ones_again() {
    let took = |rounds: u64| {
        let mut on = linux6(1).with_caches();
        on.settings.socket_lines = 0;
        let story = on.plays(move |boot: &mut Boot<'_>| -> Started {
            let (near, far) = boot.stream(Bytes(RECEIVE_BUFFER), false)?;
            boot.task(called("both"), move |task: Task| async move {
                for _ in 0..rounds {
                    task.send(near, Bytes(100)).await;
                    task.send(near, Bytes(100)).await;
                    assert_eq!(task.receive(far, Bytes(100)).await, Bytes(100));
                    assert_eq!(task.receive(far, Bytes(100)).await, Bytes(100));
                }
            })?;
            Ok(())
        });
        in_kernel(&story, 0)
    };
    let (first, all) = (took(1), took(1_000));
    assert!(all < 1_000 * first / 2, "{first} ns the first time, {all}");
}

#[test]
fn a_call_without_a_packet_writes_some_lines_of_which_some_wait_for_one_another() {
    let held = |lines, call_lines| {
        let sends = |sends| {
            let mut on = linux6(2).with_caches();
            on.machine.miss_overlap = 2;
            on.settings.socket_lines = lines;
            on.settings.loopback.call_lines = call_lines;
            in_kernel(&passes_by(on, true, sends, 0), 0)
        };
        sends(2) - sends(1)
    };
    let line = held(15, (1, 1)) - held(0, (1, 1));
    assert!(line > 0);
    let lines = |all, call_lines| (held(all, call_lines) - held(0, call_lines)) / line;
    assert_eq!(lines(15, (8, 8)), 8);
    assert_eq!(lines(15, (8, 4)), 4 + 4 / 2, "two misses overlap");
    assert_eq!(lines(4, (8, 8)), 4, "there are no more");
}

#[test]
fn a_pipe_has_neither_packets_nor_a_send_buffer() {
    let costs = costs(&[("stream_call", 100), ("stream_packet", 1_000)]);
    let story = linux6(1)
        .costs(costs)
        .plays(|boot: &mut Boot<'_>| -> Started {
            let (near, far) = boot.pipe(Bytes(RECEIVE_BUFFER))?;
            boot.task(called("writer"), move |task: Task| async move {
                task.send(near, Bytes(RECEIVE_BUFFER + 1)).await;
            })?;
            boot.task(called("reader"), move |task: Task| async move {
                assert_eq!(task.receive(far, Bytes(5_000)).await, Bytes(RECEIVE_BUFFER));
                assert_eq!(task.receive(far, Bytes(5_000)).await, Bytes(1));
            })?;
            Ok(())
        });
    assert_eq!(story.ending, Ending::WorkDone);
    assert_eq!(in_kernel(&story, 0), 0);
}

/// When two tasks are through that send on one end at a time, and one that receives there.
fn at_one_end(owned: bool) -> [u64; 3] {
    let mut on = linux6(3).costs(costs(&[("stream_call", 50_000)]));
    on.settings.loopback.owned = owned;
    let story = on.plays(|boot: &mut Boot<'_>| -> Started {
        let (near, far) = boot.socket_pair(Bytes(RECEIVE_BUFFER))?;
        for _ in 0..2 {
            boot.task(called("sender"), move |task: Task| async move {
                task.send(near, Bytes(10)).await;
            })?;
        }
        boot.task(called("receiver"), move |task: Task| async move {
            task.compute(us(110)).await;
            task.receive(far, Bytes(10)).await;
        })?;
        Ok(())
    });
    [0, 1, 2].map(|task| story.exit_us(task))
}

#[test]
fn a_call_waits_for_the_owner_of_its_end() {
    assert_eq!(at_one_end(true), [50, 100, 160]);
    assert_eq!(at_one_end(false), [50, 50, 160]);
}

#[test]
fn what_waits_needs_memory() {
    let mut on = linux6(2);
    on.settings.loopback.send_buffer = Bytes(1 << 40);
    let story = on.plays_badly(|boot: &mut Boot<'_>| -> Started {
        let (near, _) = boot.socket_pair(Bytes(RECEIVE_BUFFER))?;
        boot.task(called("sender"), move |task: Task| async move {
            task.send(near, Bytes(1 << 39)).await;
        })?;
        Ok(())
    });
    assert!(
        matches!(story.ending, Ending::MemoryFull { .. }),
        "{:?}",
        story.ending
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is sent and however it is asked for, by whichever tasks: all of it comes, and
    /// nobody is left asleep.
    #[test]
    fn every_byte_arrives_once(
        sizes in proptest::collection::vec(1..9_000_u64, 1..30),
        at_most in 1..5_000_u64,
        send_buffer in 0..5_000_u64,
        nagle: bool,
        senders in 1..4_u64,
        cpus in 1..4_u16,
    ) {
        let expected = senders * sizes.iter().sum::<u64>();
        let mut on = linux6(cpus).costs(some_costs());
        on.settings.loopback.send_buffer = Bytes(send_buffer);
        let received = Rc::new(Cell::new(0));
        let sum = received.clone();
        let story = on.plays(move |boot: &mut Boot<'_>| -> Started {
            let (near, far) = boot.stream(Bytes(RECEIVE_BUFFER), nagle)?;
            for _ in 0..senders {
                let sizes = sizes.clone();
                boot.task(called("sender"), move |task: Task| async move {
                    for size in sizes {
                        task.send(near, Bytes(size)).await;
                    }
                })?;
            }
            let sum = sum.clone();
            boot.task(called("receiver"), move |task: Task| async move {
                while sum.get() < expected {
                    sum.set(sum.get() + task.receive(far, Bytes(at_most)).await.0);
                }
            })?;
            Ok(())
        });
        prop_assert_eq!(story.ending, Ending::WorkDone);
        prop_assert_eq!(received.get(), expected);
    }
}
