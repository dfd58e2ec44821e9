//! Senders outside the machine.

use std::cell::RefCell;
use std::rc::Rc;

use warmq_kernel::{Boot, Nic, RemotePeer, Socket};
use warmq_scenario::{
    Amount, Arrivals, EvalError, Expr, ObjectId, ObjectKind, Rate, Source, TaskKindId,
};
use warmq_units::{Bytes, Duration, Stream};

use super::Trouble;
use super::objects::Made;
use super::stage::Stage;

/// The link by which all sources reach the machine: 1 Gbit/s, and 50 us for each packet.
const LINK: (u64, Duration) = (1_000_000_000, Duration::from_us(50));

/// Starts every source.
pub(super) fn start(stage: &Rc<Stage>, boot: &mut Boot<'_>) -> Result<(), Trouble> {
    let mut card = None;
    for (id, object) in (0..).map(ObjectId).zip(stage.scenario().objects()) {
        let ObjectKind::Source(source) = &object.kind else {
            continue;
        };
        let nic = *card.get_or_insert_with(|| boot.nic(LINK.0, LINK.1));
        for number in 0..stage.bound.objects(id) {
            let sender = Sender::new(stage, source, id, number, nic)?;
            boot.remote(move |peer| sender.run(peer));
        }
    }
    Ok(())
}

/// A source with its numbers.
struct Sender {
    stage: Rc<Stage>,
    indexes: Vec<u64>,
    nic: Nic,
    to: Socket,
    bytes: Bytes,
    burst: u64,
    /// For how long it sends, and for how long it pauses then.
    on_off: Option<(Duration, Duration)>,
    start: Duration,
    end: Duration,
    packets: u64,
    gaps: Gaps,
}

/// The time from one burst to the next.
enum Gaps {
    Drawn(Amount, Rc<RefCell<Stream>>),
    /// The first gap, the last one, and how long the way takes from one to the other.
    Even(Duration, Duration, Duration),
}

impl Sender {
    fn new(
        stage: &Rc<Stage>,
        source: &Source,
        id: ObjectId,
        number: u64,
        nic: Nic,
    ) -> Result<Sender, EvalError> {
        let indexes = stage.bound.indexes_of_object(id, number);
        let eval = |expr: &Expr| stage.bound.eval(expr, &indexes);
        let span = |expr: &Option<Expr>| expr.as_ref().map(eval).transpose();
        let Made::Datagrams(sockets) = stage.made(&source.to) else {
            unreachable!("the reader resolves where a source sends")
        };
        let burst = eval(&source.burst)?.max(1);
        let gap = |rate: &Rate| -> Result<Duration, EvalError> {
            let count = eval(&rate.count)?.max(1);
            Ok(Duration(rate.per.0.saturating_mul(burst) / count))
        };
        let gaps = match (&source.arrivals, &source.ramp) {
            (Arrivals::Every(amount), _) => {
                // Streams of sources are numbered behind those of all tasks.
                let owner = TaskKindId(u32::MAX - id.0);
                let stream = stage.stream(&amount.stream, owner, number);
                Gaps::Drawn(amount.clone(), stream)
            }
            (Arrivals::Rate(rate), None) => Gaps::Even(gap(rate)?, gap(rate)?, Duration(1)),
            (Arrivals::Rate(rate), Some((to, over))) => {
                Gaps::Even(gap(rate)?, gap(to)?, Duration(eval(over)?.max(1)))
            }
        };
        let on_off = match &source.on_off {
            Some((on, off)) => Some((Duration(eval(on)?), Duration(eval(off)?))),
            None => None,
        };
        Ok(Sender {
            to: sockets[stage.bound.object_number(&source.to, &indexes)? as usize],
            bytes: Bytes(eval(&source.bytes)?),
            burst,
            on_off,
            start: Duration(span(&source.start)?.unwrap_or(0)),
            end: Duration(span(&source.end)?.unwrap_or(u64::MAX)),
            packets: span(&source.packets)?.unwrap_or(u64::MAX),
            gaps,
            stage: stage.clone(),
            nic,
            indexes,
        })
    }

    async fn run(self, peer: RemotePeer) {
        peer.pause(self.start).await;
        let (mut now, mut left, mut sending) = (self.start, self.packets, Duration::ZERO);
        while now < self.end && left > 0 {
            for _ in 0..self.burst.min(left) {
                peer.send_datagram(self.to, self.nic, self.bytes).await;
            }
            left = left.saturating_sub(self.burst);
            let Ok(gap) = self.gap(now - self.start) else {
                return;
            };
            let (mut pause, on_off) = (gap, self.on_off);
            sending += gap;
            if let Some((_, off)) = on_off.filter(|(on, _)| sending >= *on) {
                pause += off;
                sending = Duration::ZERO;
            }
            now += pause;
            peer.pause(pause).await;
        }
    }

    /// From a burst that began `since` the start to the next one, at least a picosecond. The rate
    /// of a ramp, and not its gap, changes evenly.
    fn gap(&self, since: Duration) -> Result<Duration, EvalError> {
        let gap = match &self.gaps {
            Gaps::Drawn(amount, stream) => {
                let bound = &self.stage.bound;
                Duration(bound.draw(amount, &self.indexes, &mut stream.borrow_mut())?)
            }
            Gaps::Even(first, last, over) => {
                let (first, last) = (u128::from(first.0.max(1)), u128::from(last.0.max(1)));
                let (over, gone) = (u128::from(over.0), u128::from(since.0.min(over.0)));
                // 1 / gap = (1 / first) * (1 - gone / over) + (1 / last) * (gone / over)
                let gap = first * last / over.max(1);
                let slope = last * (over - gone) / over + first * gone / over;
                Duration((gap * over / slope.max(1)) as u64)
            }
        };
        Ok(gap.max(Duration(1)))
    }
}
