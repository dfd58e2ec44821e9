//! Answers to datagrams, and which CPUs take a card's interrupts.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use proptest::prelude::*;

use warmq_kernel::*;
use warmq_trace::{Interrupt, Record};
use warmq_units::{Bytes, CpuId, CpuSet, Duration, Instant};

use crate::support::*;

/// 1 Gbit/s: 8 ns for each byte of a datagram and of the 90 bytes around each 1,448 of them.
const BITS: u64 = 1_000_000_000;

fn wire(bytes: u64) -> Duration {
    Duration::from_ns(8 * (bytes + 90 * bytes.div_ceil(1_448).max(1)))
}

/// When each span of `name` began and ended, by number, and the ends in their order.
#[derive(Default)]
struct Spans {
    begun: BTreeMap<u64, Instant>,
    ended: Vec<(u64, Instant)>,
}

fn spans(story: &Story, name: u32) -> Spans {
    let mut found = Spans::default();
    for (at, record) in story.records() {
        match *record {
            Record::SpanBegin { span, number, .. } if span == name => {
                assert_eq!(
                    found.begun.insert(number, *at),
                    None,
                    "{number} begins once"
                );
            }
            Record::SpanEnd { span, number, .. } if span == name => {
                found.ended.push((number, *at));
            }
            _ => {}
        }
    }
    found
}

/// A peer, and the task that answers it.
#[derive(Clone, Copy, Debug)]
struct Pair {
    card: usize,
    datagrams: u64,
    bytes: u64,
    gap_us: u64,
    /// How long the task works on each datagram.
    work_us: u64,
    answer: u64,
    /// How often it answers each datagram.
    times: u64,
    buffer: u64,
}

fn pairs() -> impl Strategy<Value = Vec<Pair>> {
    let pair = (
        (0usize..3, 0u64..30, 0u64..3_000, 0u64..60),
        (0u64..60, 0u64..3_000, 0u64..3, 1u64..20_000),
    );
    let pair = pair.prop_map(|(sends, answers)| Pair {
        card: sends.0,
        datagrams: sends.1,
        bytes: sends.2,
        gap_us: sends.3,
        work_us: answers.0,
        answer: answers.1,
        times: answers.2,
        buffer: answers.3,
    });
    prop::collection::vec(pair, 1..5)
}

fn delay_of(card: usize) -> Duration {
    Duration::from_us(20 * card as u64)
}

/// Every pair has a socket of its own, on one of three cards whose rings hold 8 packets.
fn answered(pairs: &[Pair], cpus: u16) -> (Story, Vec<u64>) {
    let answers = Rc::new(RefCell::new(vec![0_u64; pairs.len()]));
    let (count, pairs) = (answers.clone(), pairs.to_vec());
    let stage = stage(cpus).costs(some_costs()).until_ms(50);
    let story = stage.plays(move |boot: &mut Boot<'_>| -> Started {
        let cards = [0, 1, 2].map(|card| boot.nic_with_ring(BITS, delay_of(card), 8));
        for (index, pair) in pairs.iter().copied().enumerate() {
            let socket = boot.datagram_socket(Bytes(pair.buffer))?;
            let count = count.clone();
            boot.task(called("answers"), move |task: Task| async move {
                loop {
                    let (bytes, from) = task.receive_datagram_from(socket).await;
                    assert_eq!(bytes, Bytes(pair.bytes));
                    task.compute(us(pair.work_us)).await;
                    for _ in 0..pair.times {
                        task.answer(socket, from, Bytes(pair.answer)).await;
                    }
                    count.borrow_mut()[index] += 1;
                }
            })?;
            let nic = cards[pair.card];
            boot.measuring_remote(index as u32, move |peer| async move {
                for number in 0..pair.datagrams {
                    peer.send_measured(socket, nic, Bytes(pair.bytes), number)
                        .await;
                    peer.pause(Duration::from_us(pair.gap_us)).await;
                }
            });
        }
        Ok(())
    });
    let answers = answers.borrow().clone();
    (story, answers)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_answer_is_back_once_in_order_and_no_earlier_than_its_way_takes(
        pairs in pairs(), cpus in 1u16..4
    ) {
        let (story, answers) = answered(&pairs, cpus);
        // (Card, when it was back, how long it occupied the link.)
        let mut back: Vec<(usize, Instant, Duration)> = Vec::new();
        for (index, pair) in pairs.iter().enumerate() {
            let spans = spans(&story, index as u32);
            prop_assert_eq!(spans.begun.len() as u64, pair.datagrams);
            let wanted = if pair.times == 0 { 0 } else { answers[index] };
            prop_assert_eq!(spans.ended.len() as u64, wanted, "each answered datagram, once");
            let numbers = spans.ended.windows(2).all(|two| two[0].0 < two[1].0);
            prop_assert!(numbers, "one task answers one after another: {:?}", spans.ended);
            let way = delay_of(pair.card) * 2 + wire(pair.bytes) + wire(pair.answer);
            let least = way + Duration::from_us(pair.work_us);
            for (number, at) in &spans.ended {
                let took = *at - spans.begun[number];
                prop_assert!(took >= least, "{took}, not {least}");
                back.push((pair.card, *at, wire(pair.answer)));
            }
        }
        // Each card sends one answer after another.
        back.sort();
        for two in back.windows(2).filter(|two| two[0].0 == two[1].0) {
            prop_assert!(two[1].1 - two[0].1 >= two[1].2, "{two:?}");
        }
    }
}

#[test]
fn a_round_trip_is_both_ways_the_kernel_and_the_work() {
    let pair = Pair {
        card: 2,
        datagrams: 1,
        bytes: 64,
        gap_us: 0,
        work_us: 50,
        answer: 200,
        times: 1,
        buffer: 4_096,
    };
    // On an idle CPU, before the first tick.
    let (story, _) = answered(&[pair], 1);
    let spans = spans(&story, 0);
    let took = spans.ended[0].1 - spans.begun[&0];
    let (interrupt, packet) = (400, 3_000);
    // The CPU goes to its task on its way out of the interrupt, in the middle of `recvfrom()`.
    let received = 200 + 1_000 + 500;
    let sent = 300 + 900 + 3_000;
    // `recvfrom()` and `sendto()` copy lines of 32 bytes, 10 ns each.
    let ways = delay_of(2) * 2 + wire(64) + wire(200);
    let kernel = Duration::from_ns(interrupt + packet + received + sent);
    let copied = took - ways - kernel - Duration::from_us(50);
    assert_eq!(
        copied,
        Duration::from_ns(10 * (64 / 32 + 200_u64.div_ceil(32)))
    );
}

#[test]
fn what_came_from_this_machine_has_no_answer() {
    let story = stage(1)
        .costs(some_costs())
        .plays(|boot: &mut Boot<'_>| -> Started {
            let socket = boot.datagram_socket(Bytes::from_kb(4))?;
            boot.task(called("both"), move |task: Task| async move {
                task.answer(socket, Sender::default(), Bytes(64)).await;
                task.send_datagram(socket, Bytes(64)).await;
                let (bytes, from) = task.receive_datagram_from(socket).await;
                assert_eq!((bytes, from), (Bytes(64), Sender::default()));
                let before = task.now().await;
                task.answer(socket, from, Bytes(64)).await;
                assert_eq!(task.now().await, before, "it costs nothing");
            })?;
            Ok(())
        });
    assert_eq!(story.ending, Ending::WorkDone);
}

#[test]
fn who_measures_is_a_task_that_never_runs_and_has_the_last_number() {
    let pair = Pair {
        card: 0,
        datagrams: 3,
        bytes: 64,
        gap_us: 0,
        work_us: 0,
        answer: 64,
        times: 1,
        buffer: 4_096,
    };
    let (story, _) = answered(&[pair, pair], 2);
    let outside = story
        .records()
        .iter()
        .filter_map(|(_, record)| match record {
            Record::SpanBegin { task, .. } | Record::SpanEnd { task, .. } => Some(task.0),
            _ => None,
        });
    let outside: Vec<u32> = outside.collect();
    assert_eq!(outside, [2; 12]);
    let figures = story.task(2);
    assert_eq!(figures.comm.raw(), "warmq-source");
    assert_eq!((figures.ran, figures.waited), Default::default());
}

/// The CPUs that took interrupts of cards, in order, from `from` to `to` in ms.
fn interrupted(story: &Story, from: u64, to: u64) -> Vec<u16> {
    let at = |ms| Instant::START + Duration::from_ms(ms);
    let taken = story
        .records()
        .iter()
        .filter_map(|(when, record)| match record {
            Record::InterruptEnter {
                cpu,
                interrupt: Interrupt::Network,
            } if (at(from)..at(to)).contains(when) => Some(cpu.0),
            _ => None,
        });
    taken.collect()
}

fn set(cpus: &[u16]) -> CpuSet {
    cpus.iter().copied().map(CpuId).collect()
}

/// A datagram each ms over a card, which interrupts `cpus` of four, and from 10 ms on `later`. The
/// task that receives them does `also` first.
fn steered<F>(cpus: Option<CpuSet>, later: Option<CpuSet>, also: fn(Task) -> F) -> Story
where
    F: Future<Output = ()> + 'static,
{
    let stage = stage(4).costs(some_costs()).until_ms(20);
    stage.plays(move |boot: &mut Boot<'_>| -> Started {
        let nic = boot.nic(BITS, Duration::ZERO);
        if let Some(cpus) = &cpus {
            boot.steer(nic, cpus);
        }
        let socket = boot.datagram_socket(Bytes::from_kb(64))?;
        boot.task(
            called("receiver").bound([cpu(0)]),
            move |task: Task| async move {
                also(task.clone()).await;
                loop {
                    task.receive_datagram(socket).await;
                }
            },
        )?;
        let later = later.clone();
        boot.remote(move |peer| async move {
            for sent in 0..20 {
                if let Some(later) = later.clone().filter(|_| sent == 10) {
                    peer.steer(nic, later).await;
                }
                peer.send_datagram(socket, nic, Bytes(64)).await;
                peer.pause(Duration::from_ms(1)).await;
            }
        });
        Ok(())
    })
}

async fn nothing(_: Task) {}

#[test]
fn a_card_interrupts_the_cpus_it_is_steered_to_in_turn() {
    let story = steered(Some(set(&[1, 3])), None, nothing);
    let wanted: Vec<u16> = [1, 3].repeat(10);
    assert_eq!(interrupted(&story, 0, 20), wanted);
    let all = steered(None, None, nothing);
    assert_eq!(interrupted(&all, 0, 20), [0, 1, 2, 3].repeat(5));
}

#[test]
fn a_card_can_be_steered_elsewhere_while_it_receives() {
    let story = steered(None, Some(set(&[2])), nothing);
    assert_eq!(interrupted(&story, 0, 10), [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]);
    assert_eq!(interrupted(&story, 10, 20), [2; 10]);
    // CPUs that are not there are ignored.
    let lacking = steered(Some(set(&[9])), Some(set(&[1, 9])), nothing);
    assert_eq!(interrupted(&lacking, 0, 4), [0, 1, 2, 3]);
    assert_eq!(interrupted(&lacking, 10, 20), [1; 10]);
}

#[test]
fn a_cpu_that_is_offline_is_skipped_and_one_that_is_online_stands_in_for_all() {
    async fn one_goes(task: Task) {
        assert!(task.change(Change::Online(cpu(2), false)).await);
    }
    let story = steered(Some(set(&[1, 2, 3])), None, one_goes);
    assert_eq!(interrupted(&story, 1, 20)[..6], [3, 1, 3, 1, 3, 1]);
    async fn both_go(task: Task) {
        assert!(task.change(Change::Online(cpu(2), false)).await);
        assert!(task.change(Change::Online(cpu(3), false)).await);
        // The timer's resolution is 10 ms.
        task.sleep(Duration::from_ms(5)).await;
        assert!(task.change(Change::Online(cpu(3), true)).await);
    }
    let story = steered(Some(set(&[2, 3])), None, both_go);
    assert_eq!(interrupted(&story, 1, 9), [0; 8]);
    assert_eq!(interrupted(&story, 12, 20), [3; 8]);
}

/// There are fewer vectors than cards, but each CPU has its own.
#[test]
fn cards_that_share_a_vector_are_polled_where_they_interrupted() {
    let stage = stage(2).costs(some_costs()).until_ms(5);
    let story = stage.plays(|boot: &mut Boot<'_>| -> Started {
        let socket = boot.datagram_socket(Bytes::from_kb(64))?;
        boot.task(called("receiver"), move |task: Task| async move {
            for _ in 0..2 {
                task.receive_datagram(socket).await;
            }
        })?;
        let cards: Vec<Nic> = (0..61).map(|_| boot.nic(BITS, Duration::ZERO)).collect();
        for (nic, on) in [(cards[0], 0), (cards[60], 1)] {
            boot.steer(nic, &set(&[on]));
            boot.remote(move |peer| async move {
                peer.send_datagram(socket, nic, Bytes(64)).await;
            });
        }
        Ok(())
    });
    assert_eq!(story.ending, Ending::WorkDone);
    for on in 0..2 {
        let softirqs = story.records().iter().filter(|(_, record)| {
            matches!(record, Record::InterruptEnter { cpu, interrupt: Interrupt::NetworkSoftirq }
                if cpu.0 == on)
        });
        assert_eq!(softirqs.count(), 1, "cpu{on}");
    }
}
