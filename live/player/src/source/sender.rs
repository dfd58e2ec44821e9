//! One source that is under way.

use std::sync::atomic::Ordering;

use warmq_scenario::{Arrivals, EvalError, Expr, Rate, SpanId, TaskKindId};
use warmq_units::Stream;

use super::{Orders, SourceProgram, Stamp};
use crate::error::PlayError;
use crate::program::{Draws, StreamOf};
use crate::stage::Stage;
use crate::stage::objects::Made;
use crate::sys::clock::now_ns;
use crate::sys::sockets;

const PS_PER_NS: u64 = 1_000;

/// The time from one burst to the next, in picoseconds.
enum Gaps {
    Drawn(Draws, Vec<Stream>),
    /// The first gap, the last one, and how long the way takes from one to the other.
    Even(u64, u64, u64),
}

/// A source that is under way. Times are picoseconds from the start of the run.
pub(super) struct Sender {
    name: String,
    orders: &'static Orders,
    /// The turn of its orders that it has followed.
    turn: u32,
    /// The span from a datagram to its answer, if there are answers.
    pub(super) echo: Option<SpanId>,
    /// The number of its first datagram among those of all sources.
    pub(super) first_number: u64,
    indexes: Vec<u64>,
    port: u16,
    payload: Vec<u8>,
    burst: u64,
    /// For how long it sends, and for how long it pauses then.
    on_off: Option<(u64, u64)>,
    start: u64,
    end: u64,
    left: u64,
    gaps: Gaps,
    /// When the next burst is due.
    pub(super) due: u64,
    /// How long it has sent since its last pause.
    sending: u64,
    pub(super) sequence: u64,
}

/// The most bytes of a UDP datagram over IPv4.
const MOST_BYTES: u64 = 65_507;

impl Sender {
    pub(super) fn new(stage: &Stage, of: &SourceProgram, number: u64) -> Result<Sender, PlayError> {
        let (bound, source) = (&stage.bound, &of.source);
        let indexes = bound.indexes_of_object(of.id, number);
        let eval = |expr: &Expr| bound.eval(expr, &indexes);
        let optional = |expr: &Option<Expr>| expr.as_ref().map(eval).transpose();
        let name = bound.scenario().object(of.id).name.clone();
        let bytes = eval(&source.bytes)?;
        if bytes > MOST_BYTES {
            let text =
                format!("source `{name}`: a datagram of {bytes} bytes; {MOST_BYTES} are the most");
            return Err(PlayError::Input(text));
        }
        let Made::Datagrams(sockets) = &stage.made()[source.to.object.0 as usize] else {
            unreachable!("the reader resolves where a source sends")
        };
        let burst = eval(&source.burst)?.max(1);
        let gap = |rate: &Rate| Ok::<u64, EvalError>(gap_of(eval(&rate.count)?, rate.per.0, burst));
        let gaps = match (&source.arrivals, &of.every) {
            (Arrivals::Rate(rate), _) => match &source.ramp {
                Some((to, over)) => Gaps::Even(gap(rate)?, gap(to)?, eval(over)?.max(1)),
                None => Gaps::Even(gap(rate)?, gap(rate)?, 1),
            },
            (Arrivals::Every(_) | Arrivals::Listed(_), every) => {
                // Streams of sources are numbered behind those of all tasks.
                let owner = TaskKindId(u32::MAX - of.id.0);
                let names = of.program.streams.iter();
                let streams = names.map(|name| name.stream(stage.seed, owner, number));
                Gaps::Drawn(every.clone().unwrap_or(Draws::Fixed(1)), streams.collect())
            }
        };
        let on_off = match &source.on_off {
            Some((on, off)) => Some((eval(on)?, eval(off)?)),
            None => None,
        };
        let start = optional(&source.start)?.unwrap_or(0);
        Ok(Sender {
            name,
            orders: &stage.orders[of.first + number as usize],
            turn: 0,
            echo: source.echo,
            first_number: bound.echo_number(of.id, number, 0),
            port: sockets[bound.object_number(&source.to, &indexes)? as usize].1,
            payload: vec![0; bytes as usize],
            burst,
            on_off,
            start,
            end: optional(&source.end)?.unwrap_or(u64::MAX),
            left: optional(&source.packets)?.unwrap_or(u64::MAX),
            gaps,
            due: start,
            sending: 0,
            sequence: 0,
            indexes,
        })
    }

    pub(super) fn has_more(&self) -> bool {
        self.left > 0 && self.due < self.end
    }

    /// Does what changes have said since it looked last; true if its next burst is due at another
    /// time now.
    pub(super) fn follow(&mut self, start_ns: u64) -> bool {
        let turn = self.orders.turn.load(Ordering::Acquire);
        if turn == self.turn {
            return false;
        }
        self.turn = turn;
        let gap = self.orders.gap.load(Ordering::Relaxed);
        let since_ns = self.orders.since_ns.load(Ordering::Relaxed);
        self.take_rate(gap, since_ns.saturating_sub(start_ns) * PS_PER_NS);
        true
    }

    /// From `since` on it sends at even distances. One that has not started yet starts when it
    /// would have.
    fn take_rate(&mut self, gap: u64, since: u64) {
        self.gaps = Gaps::Even(gap, gap, 1);
        if since >= self.start {
            self.due = since.saturating_add(gap);
        }
    }

    /// Sends a burst and says when the next is due. While it is stopped it sends nothing, and what
    /// it leaves out never comes. `begun` is told the number and the time of each datagram.
    ///
    /// # Errors
    /// What the kernel refuses; a number that cannot be computed.
    pub(super) fn send(
        &mut self,
        stage: &Stage,
        fd: i32,
        begun: &mut dyn FnMut(u64, u64),
    ) -> Result<u64, PlayError> {
        let mut sent = 0;
        if self.orders.stopped.load(Ordering::Acquire) == 0 {
            sent = self.burst.min(self.left);
            for _ in 0..sent {
                self.send_one(fd, begun)?;
            }
            self.left -= sent;
        }
        let gap = self.gap(stage)?;
        self.sending = self.sending.saturating_add(gap);
        let mut pause = gap;
        if let Some((_, off)) = self.on_off.filter(|(on, _)| self.sending >= *on) {
            pause = pause.saturating_add(off);
            self.sending = 0;
        }
        self.due = self.due.saturating_add(pause);
        Ok(sent)
    }

    fn send_one(&mut self, fd: i32, begun: &mut dyn FnMut(u64, u64)) -> Result<(), PlayError> {
        let number = self.first_number + self.sequence;
        let time_ns = now_ns();
        stamp(&mut self.payload, number, time_ns);
        self.sequence += 1;
        begun(number, time_ns);
        sockets::send_datagram(fd, self.port, &self.payload).map_err(|error| {
            PlayError::Ended(format!("source `{}` cannot send: {error}", self.name))
        })
    }

    /// From this burst to the next, at least a nanosecond.
    fn gap(&mut self, stage: &Stage) -> Result<u64, EvalError> {
        let gap =
            match &mut self.gaps {
                Gaps::Drawn(Draws::Fixed(gap), _) => *gap,
                Gaps::Drawn(Draws::Drawn(amount, StreamOf::Own(own)), streams) => stage
                    .bound
                    .draw(amount, &self.indexes, &mut streams[*own])?,
                Gaps::Drawn(Draws::Drawn(amount, StreamOf::Shared(shared)), _) => {
                    stage.streams.with(*shared, |stream| {
                        stage.bound.draw(amount, &self.indexes, stream)
                    })?
                }
                Gaps::Even(first, last, over) => {
                    ramped((*first, *last), *over, self.due.saturating_sub(self.start))
                }
            };
        Ok(gap.max(1_000))
    }
}

/// The gap between bursts of `burst` in picoseconds, at `count` datagrams in `per` picoseconds.
pub fn gap_of(count: u64, per: u64, burst: u64) -> u64 {
    let gap = u128::from(per) * u128::from(burst) / u128::from(count.max(1));
    u64::try_from(gap).unwrap_or(u64::MAX)
}

/// The gap at `since` of a way that takes `over` from the first gap to the last. The rate, and not
/// the gap, changes evenly.
fn ramped((first, last): (u64, u64), over: u64, since: u64) -> u64 {
    let (first, last) = (u128::from(first.max(1)), u128::from(last.max(1)));
    let (over, gone) = (u128::from(over.max(1)), u128::from(since.min(over)));
    // 1 / gap = (1 / first) * (1 - gone / over) + (1 / last) * (gone / over)
    // gap = first * last * over / (last * (over - gone) + first * gone), scaled to fit.
    let weighed = last * (over - gone) / over + first * gone / over;
    u64::try_from(first * last / weighed.max(1)).unwrap_or(u64::MAX)
}

/// Number and time of sending, where the payload has room.
fn stamp(payload: &mut [u8], number: u64, time_ns: u64) {
    let mut stamp = Stamp::default();
    stamp[..8].copy_from_slice(&number.to_le_bytes());
    stamp[8..].copy_from_slice(&time_ns.to_le_bytes());
    let room = payload.len().min(stamp.len());
    payload[..room].copy_from_slice(&stamp[..room]);
}

/// Number and time that a datagram was stamped with.
pub(super) fn read_stamp(stamp: &Stamp) -> (u64, u64) {
    let half = |from: usize| {
        let bytes = stamp[from..from + 8].try_into();
        bytes.map_or(0, u64::from_le_bytes)
    };
    (half(0), half(8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_ramp_stays_between_its_ends(
            first in 1_000_u64..1 << 40, last in 1_000_u64..1 << 40, over in 1_u64..1 << 50, since: u64
        ) {
            let gap = ramped((first, last), over, since);
            let (least, most) = (first.min(last), first.max(last));
            // Divisions round down twice.
            prop_assert!(gap >= least - 1 && gap <= most + most / least.min(1_000) + 1, "{gap}");
        }
    }

    #[test]
    fn the_rate_of_a_ramp_changes_evenly() {
        // From 1,000 to 3,000 a second in a second: 2,000 in the middle.
        let (first, last) = (gap_of(1_000, 1 << 40, 1), gap_of(3_000, 1 << 40, 1));
        let middle = ramped((first, last), 1_000_000, 500_000);
        assert!(middle.abs_diff(gap_of(2_000, 1 << 40, 1)) <= 3, "{middle}");
        assert_eq!(ramped((first, last), 1_000_000, 0), first);
        assert!(ramped((first, last), 1_000_000, u64::MAX).abs_diff(last) <= 1);
    }

    #[test]
    fn the_payload_has_what_fits() {
        let mut payload = [0xff_u8; 10];
        stamp(&mut payload, 7, 8);
        assert_eq!(payload, [7, 0, 0, 0, 0, 0, 0, 0, 8, 0]);
        stamp(&mut [], 1, 1);
        let mut whole = Stamp::default();
        stamp(&mut whole, u64::MAX, 1 << 60);
        assert_eq!(read_stamp(&whole), (u64::MAX, 1 << 60));
    }

    const TWO: &str = "
        [datagram.d]
        [source.early]
        to = \"d\"
        bytes = \"1B\"
        every = { exponential = \"10ms\" }
        packets = 3
        [source.late]
        to = \"d\"
        bytes = \"1B\"
        rate = \"1 per s\"
        start = \"5s\"
        [task.t]
        body = [{ receive = \"d\" }]";

    const MS: u64 = 1_000_000_000;

    #[test]
    fn a_new_rate_counts_from_the_change_but_not_before_the_start() {
        let stage = testing::stage(TWO);
        for (of, wanted) in [(0, 2_001 * MS), (1, 5_000 * MS)] {
            let mut sender = Sender::new(stage, &stage.sources[of], 0).expect("a source");
            assert!(!sender.follow(10), "nothing has changed yet");
            let orders = &stage.orders[of];
            orders.gap.store(MS, Ordering::Relaxed);
            orders.since_ns.store(2_000_000_010, Ordering::Relaxed);
            orders.turn.store(1, Ordering::Release);
            assert!(sender.follow(10));
            assert_eq!(sender.due, wanted);
            assert_eq!(sender.gap(stage).expect("a gap"), MS);
            assert!(!sender.follow(10), "it has followed");
        }
    }

    #[test]
    fn what_is_due_while_a_source_is_stopped_never_comes() {
        let stage = testing::stage(TWO);
        let fd = sockets::sender().expect("a socket");
        let mut sender = Sender::new(stage, &stage.sources[0], 0).expect("a source");
        let mut numbers = Vec::new();
        for stopped in [0, 1, 1, 0, 0] {
            stage.orders[0].stopped.store(stopped, Ordering::Relaxed);
            let due = sender.due;
            let mut begun = |number: u64, _| numbers.push(number - sender_first(stage));
            let sent = sender.send(stage, fd, &mut begun).expect("sent");
            assert_eq!(sent, u64::from(stopped == 0));
            assert!(sender.due > due, "its schedule goes on");
        }
        assert_eq!(numbers, [0, 1, 2]);
        assert!(!sender.has_more(), "it has sent its packets");
    }

    fn sender_first(stage: &Stage) -> u64 {
        stage.bound.echo_number(stage.sources[0].id, 0, 0)
    }
}
