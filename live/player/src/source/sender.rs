//! One source that is under way.

use std::sync::atomic::Ordering;

use warmq_scenario::SpanId;
use warmq_scenario::program::{Bursts, SourceProgram};

use super::{Orders, Stamp};
use crate::error::PlayError;
use crate::stage::Stage;
use crate::stage::streams::Drawn;
use crate::sys::clock::now_ns;
use crate::sys::sockets;

const PS_PER_NS: u64 = 1_000;

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
    port: u16,
    payload: Vec<u8>,
    bursts: Bursts,
    streams: Drawn,
    pub(super) sequence: u64,
}

/// The least time from one burst to the next, in picoseconds.
const LEAST: u64 = PS_PER_NS;

/// The most bytes of a UDP datagram over IPv4.
const MOST_BYTES: u64 = 65_507;

impl Sender {
    pub(super) fn new(
        stage: &'static Stage,
        of: &SourceProgram,
        number: u64,
    ) -> Result<Sender, PlayError> {
        let bound = &stage.bound;
        let name = bound.scenario().object(of.id).name.clone();
        let spec = of.spec(number, bound, (&stage.cpus, &stage.changes))?;
        let bytes = spec.bytes.0;
        if bytes > MOST_BYTES {
            let text =
                format!("source `{name}`: a datagram of {bytes} bytes; {MOST_BYTES} are the most");
            return Err(PlayError::Input(text));
        }
        Ok(Sender {
            name,
            orders: &stage.orders[bound.object_of_class(of.id, number) as usize],
            turn: 0,
            echo: of.source.echo,
            first_number: bound.echo_number(of.id, number, 0),
            port: stage.objects().datagrams[spec.to].1,
            payload: vec![0; bytes as usize],
            bursts: Bursts::new(of, number, LEAST, bound)?,
            streams: of.drawn(stage.seed, number, &stage.streams),
            sequence: 0,
        })
    }

    /// When its next burst is due; none if there is none.
    pub(super) fn due(&self) -> Option<u64> {
        self.bursts.due()
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
        let since = since_ns.saturating_sub(start_ns) * PS_PER_NS;
        self.bursts.set_gap(gap, since);
        true
    }

    /// Sends a burst and says when the next is due. While it is stopped it sends nothing, and what
    /// it leaves out never comes. `begun` gets the number and the time of each datagram.
    ///
    /// # Errors
    /// What the kernel refuses; a number that cannot be computed.
    pub(super) fn send(
        &mut self,
        stage: &Stage,
        fd: i32,
        begun: &mut dyn FnMut(u64, u64),
    ) -> Result<u64, PlayError> {
        let stopped = self.orders.stopped.load(Ordering::Acquire) != 0;
        self.bursts.stop(stopped);
        let sent = self.bursts.take();
        for _ in 0..sent {
            self.send_one(fd, begun)?;
        }
        self.bursts.advance(&stage.bound, &mut self.streams)?;
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
            assert_eq!(sender.due(), Some(wanted));
            let fd = sockets::sender().expect("a socket");
            sender.send(stage, fd, &mut |_, _| ()).expect("sent");
            assert_eq!(sender.due(), Some(wanted + MS));
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
            let due = sender.due();
            let mut begun = |number: u64, _| numbers.push(number - sender_first(stage));
            let sent = sender.send(stage, fd, &mut begun).expect("sent");
            assert_eq!(sent, u64::from(stopped == 0));
            assert!(
                sender.due().is_none_or(|next| Some(next) > due),
                "its schedule goes on"
            );
        }
        assert_eq!(numbers, [0, 1, 2]);
        assert_eq!(sender.due(), None, "it has sent its packets");
    }

    fn sender_first(stage: &Stage) -> u64 {
        stage.bound.echo_number(stage.sources[0].id, 0, 0)
    }
}
