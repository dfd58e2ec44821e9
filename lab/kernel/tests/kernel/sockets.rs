//! Streams between tasks of one machine.

use std::cell::Cell;
use std::rc::Rc;

use warmq_kernel::*;
use warmq_units::{Bytes, Duration};

use crate::support::*;

/// Sends `sizes` through a buffer of `capacity`. The receiver asks for `at_most` at a time, and
/// starts after `slow`.
fn stream(
    cpus: u16,
    capacity: u64,
    sizes: &[u64],
    at_most: u64,
    slow: u64,
) -> (Story, Vec<String>) {
    let said = Said::default();
    let (speaker, sizes) = (said.clone(), sizes.to_vec());
    let story = stage(cpus).plays(move |boot: &mut Boot<'_>| -> Started {
        let (near, far) = boot.socket_pair(Bytes(capacity))?;
        let (sizes, said) = (sizes.clone(), speaker.clone());
        boot.task(called("sender"), move |task: Task| async move {
            for size in sizes {
                task.compute(us(10)).await;
                task.send(near, Bytes(size)).await;
            }
            task.close(near).await;
        })?;
        boot.task(called("receiver"), move |task: Task| async move {
            task.compute(us(slow)).await;
            loop {
                let got = task.receive(far, Bytes(at_most)).await.0;
                if got == 0 {
                    return;
                }
                said.say(got.to_string());
            }
        })?;
        Ok(())
    });
    (story, said.all())
}

#[test]
fn every_byte_arrives_once_whoever_waits() {
    // An early receiver gets each message separately; a late one gets everything in the buffer at
    // once.
    let (_, eager) = stream(2, 1_000, &[100, 200, 300], 1_000, 0);
    assert_eq!(eager, ["100", "200", "300"]);
    let (_, late) = stream(2, 1_000, &[100, 200, 300], 1_000, 100);
    assert_eq!(late, ["600"]);
    let (_, sips) = stream(2, 1_000, &[100, 200, 300], 250, 100);
    assert_eq!(sips, ["250", "250", "100"]);
}

#[test]
fn a_sender_sleeps_while_the_buffer_is_full() {
    let (story, got) = stream(2, 1_000, &[600, 600, 600], 10_000, 500);
    assert_eq!(
        got.iter()
            .map(|got| got.parse::<u64>().unwrap())
            .sum::<u64>(),
        1_800
    );
    assert_eq!(got[0], "1000", "what fitted");
    assert_eq!(
        story.exit_us(0),
        510,
        "10 us of work, then from 500 on with the receiver"
    );
}

#[test]
fn a_message_larger_than_the_buffer_goes_in_pieces() {
    for cpus in [1, 2] {
        let (_, got) = stream(cpus, 1_000, &[2_500], 10_000, 0);
        assert_eq!(got, ["1000", "1000", "500"], "{cpus} CPUs");
    }
}

#[test]
fn closing_wakes_who_waits_at_either_end() {
    let story = stage(2).plays(|boot: &mut Boot<'_>| -> Started {
        let (near, far) = boot.socket_pair(Bytes(100))?;
        for name in ["reader", "another"] {
            boot.task(called(name), move |task: Task| async move {
                assert_eq!(task.receive(near, Bytes(50)).await, Bytes(0));
            })?;
        }
        boot.task(called("writer"), move |task: Task| async move {
            task.send(near, Bytes(500)).await;
            task.send(near, Bytes(500)).await;
        })?;
        boot.task(called("closer"), move |task: Task| async move {
            task.compute(us(1_000)).await;
            task.close(far).await;
            task.close(far).await;
        })?;
        Ok(())
    });
    assert_eq!(story.ending, Ending::WorkDone);
    assert_eq!([0, 1, 2, 3].map(|task| story.exit_us(task)), [1_000; 4]);
}

#[test]
fn two_readers_never_take_the_same_bytes() {
    let taken = Rc::new(Cell::new(0));
    let sum = taken.clone();
    let story =
        stage(3)
            .with_caches()
            .costs(some_costs())
            .plays(move |boot: &mut Boot<'_>| -> Started {
                let (near, far) = boot.socket_pair(Bytes(8_192))?;
                for name in ["one", "two"] {
                    let sum = sum.clone();
                    boot.task(called(name), move |task: Task| async move {
                        loop {
                            let got = task.receive(far, Bytes(4_000)).await.0;
                            if got == 0 {
                                return;
                            }
                            sum.set(sum.get() + got);
                        }
                    })?;
                }
                boot.task(called("sender"), move |task: Task| async move {
                    for _ in 0..20 {
                        task.send(near, Bytes(4_000)).await;
                        task.compute(us(200)).await;
                    }
                    task.close(near).await;
                })?;
                Ok(())
            });
    assert_eq!(
        (story.ending.clone(), taken.get()),
        (Ending::WorkDone, 80_000)
    );
}

#[test]
fn room_left_by_one_writer_wakes_the_next() {
    let story = stage(1).plays(|boot: &mut Boot<'_>| -> Started {
        let (near, far) = boot.socket_pair(Bytes(100))?;
        for name in ["first", "one", "two"] {
            boot.task(called(name), move |task: Task| async move {
                let size = if name == "first" { 100 } else { 10 };
                task.send(near, Bytes(size)).await;
            })?;
        }
        boot.task(called("reader"), move |task: Task| async move {
            task.sleep(Duration::from_ms(20)).await;
            assert_eq!(task.receive(far, Bytes(100)).await, Bytes(100));
        })?;
        Ok(())
    });
    assert_eq!(
        story.ending,
        Ending::WorkDone,
        "both small messages found room"
    );
}

#[test]
fn a_send_costs_its_segments_and_its_lines() {
    let sent = |bytes| {
        let story = stage(1)
            .costs(costs(&[
                ("system_call", 100),
                ("socket_send", 1_000),
                ("stream_packet", 2_000),
                ("copy_per_line", 10),
            ]))
            .plays(move |boot: &mut Boot<'_>| -> Started {
                let (near, _) = boot.socket_pair(Bytes::from_kb(64))?;
                boot.task(called("sender"), move |task: Task| async move {
                    task.send(near, Bytes(bytes)).await;
                })?;
                Ok(())
            });
        story.spent(0, Mode::System).as_ns()
    };
    assert_eq!(sent(32), 100 + 1_000 + 2_000 + 10);
    assert_eq!(sent(1_448), 100 + 1_000 + 2_000 + 46 * 10);
    assert_eq!(sent(1_449), 100 + 1_000 + 2 * 2_000 + 46 * 10);
}

/// What fits into the usual send buffer of a Unix socket in messages of 100 bytes under Linux 6.
const MESSAGES: u64 = 278;

#[test]
fn a_unix_socket_passes_every_byte_and_neither_packets_nor_softirqs() {
    let named = [
        ("socket_send", 10),
        ("socket_receive", 10),
        ("stream_packet", 1_000),
    ];
    let story = stage(1)
        .costs(costs(&named))
        .plays(|boot: &mut Boot<'_>| -> Started {
            let (near, far) = boot.unix_pair(Bytes(212_992))?;
            boot.task(called("one"), move |task: Task| async move {
                task.send(near, Bytes(100)).await;
                task.send(near, Bytes(100)).await;
                assert_eq!(task.receive(far, Bytes(150)).await, Bytes(150));
                assert_eq!(task.receive(far, Bytes(150)).await, Bytes(50));
                task.send(far, Bytes(7)).await;
                assert_eq!(task.receive(near, Bytes(150)).await, Bytes(7));
                task.close(far).await;
                assert_eq!(task.receive(near, Bytes(1)).await, Bytes(0));
            })?;
            Ok(())
        });
    assert_eq!(story.ending, Ending::WorkDone);
    assert_eq!(story.spent(0, Mode::Softirq).as_ns(), 0);
    assert_eq!(story.spent(0, Mode::System).as_ns(), 6 * 10);
}

/// A buffer is full, and two tasks wait to send one message more. A third takes messages, and says
/// when who goes on.
#[test]
fn senders_wait_until_a_quarter_of_their_buffer_is_left_and_go_on_together() {
    let said = Said::default();
    let speaker = said.clone();
    let story = stage(1).plays(move |boot: &mut Boot<'_>| -> Started {
        let (near, far) = boot.unix_pair(Bytes(212_992))?;
        boot.task(called("filler"), move |task: Task| async move {
            for _ in 0..MESSAGES {
                task.send(near, Bytes(100)).await;
            }
        })?;
        for name in ["one", "two"] {
            let said = speaker.clone();
            boot.task(called(name), move |task: Task| async move {
                task.send(near, Bytes(100)).await;
                said.say(name);
            })?;
        }
        let said = speaker.clone();
        boot.task(called("receiver"), move |task: Task| async move {
            task.compute(us(100_000)).await;
            for taken in 1..=MESSAGES + 2 {
                task.receive(far, Bytes(100)).await;
                if (205..212).contains(&taken) {
                    said.say(taken.to_string());
                    task.yield_now().await;
                }
            }
        })?;
        Ok(())
    });
    assert_eq!(story.ending, Ending::WorkDone);
    // A quarter of 212,992 bytes are 69 messages of 768, and 209 of 278 are taken then.
    let expected = [
        "205", "206", "207", "208", "209", "one", "two", "210", "211",
    ];
    assert_eq!(said.all(), expected);
}

/// What a send and a receive of a byte through a Unix socket take in the kernel, in ns.
fn of_a_byte(named: &[(&str, u64)]) -> u64 {
    let story = stage(1)
        .costs(costs(named))
        .plays(|boot: &mut Boot<'_>| -> Started {
            let (near, far) = boot.unix_pair(Bytes(212_992))?;
            boot.task(called("one"), move |task: Task| async move {
                task.send(near, Bytes(1)).await;
                task.receive(far, Bytes(1)).await;
            })?;
            Ok(())
        });
    story.spent(0, Mode::System).as_ns()
}

#[test]
fn a_message_costs_as_much_as_a_call_of_a_stream_unless_the_machine_says_otherwise() {
    assert_eq!(of_a_byte(&[("stream_call", 300)]), 600);
    assert_eq!(
        of_a_byte(&[("stream_call", 300), ("unix_message", 500)]),
        1_000
    );
}
