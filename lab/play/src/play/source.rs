//! Senders outside the machine.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use warmq_kernel::{Boot, Nic, RemotePeer, Socket};
use warmq_scenario::{
    Amount, Arrivals, EvalError, Expr, ObjectId, ObjectKind, Rate, Source, TaskKindId,
};
use warmq_units::{Bytes, Duration, Instant, Stream};

use super::Trouble;
use super::cards::Cards;
use super::objects::Made;
use super::orders::{Order, Orders};
use super::stage::Stage;

/// Starts every source.
pub(super) fn start(stage: &Rc<Stage>, boot: &mut Boot<'_>) -> Result<(), Trouble> {
    let mut cards = Cards::new(stage, boot);
    for (id, object) in (0..).map(ObjectId).zip(stage.scenario().objects()) {
        let ObjectKind::Source(source) = &object.kind else {
            continue;
        };
        for number in 0..stage.bound.objects(id) {
            let nic = cards.of((source, id, number), stage, boot)?;
            let sender = Sender::new(stage, source, id, number, nic)?;
            match source.echo {
                Some(span) => boot.measuring_remote(span.0, move |peer| sender.run(peer)),
                None => boot.remote(move |peer| sender.run(peer)),
            };
        }
    }
    Ok(())
}

/// A source with its numbers.
struct Sender {
    stage: Rc<Stage>,
    indexes: Vec<u64>,
    nic: Nic,
    /// Whether it measures how long answers take.
    echo: bool,
    /// The number of its first datagram among those of all sources.
    first_number: u64,
    /// How many datagrams it has sent.
    sent: u64,
    to: Socket,
    bytes: Bytes,
    burst: u64,
    /// For how long it sends, and for how long it pauses then.
    on_off: Option<(Duration, Duration)>,
    start: Duration,
    end: Duration,
    packets: u64,
    gaps: Gaps,
    orders: Orders,
}

/// How far a source is.
#[derive(Default)]
struct Sending {
    /// When the next burst is due.
    due: Duration,
    /// How many datagrams are left.
    left: u64,
    /// How long it has sent since its last pause.
    sending: Duration,
    /// Whether it leaves out what is due.
    stopped: bool,
}

/// The time from one burst to the next.
enum Gaps {
    Drawn(Amount, Rc<RefCell<Stream>>),
    /// In turn, and which is next.
    Listed(Arc<[Duration]>, usize),
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
    ) -> Result<Sender, Trouble> {
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
            (Arrivals::Listed(gaps), _) => Gaps::Listed(gaps.clone(), 0),
            (Arrivals::Rate(rate), None) => Gaps::Even(gap(rate)?, gap(rate)?, Duration(1)),
            (Arrivals::Rate(rate), Some((to, over))) => {
                Gaps::Even(gap(rate)?, gap(to)?, Duration(eval(over)?.max(1)))
            }
        };
        let orders = Orders::of(stage, id, number, &gap)?;
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
            orders,
            stage: stage.clone(),
            nic,
            echo: source.echo.is_some(),
            first_number: stage.bound.echo_number(id, number, 0),
            sent: 0,
            indexes,
        })
    }

    async fn run(mut self, peer: RemotePeer) {
        let mut state = Sending {
            due: self.start,
            left: self.packets,
            ..Sending::default()
        };
        let mut now = Duration::ZERO;
        while state.left > 0 {
            let change = self.orders.next().map(|at| at - Instant::START);
            let change = change.filter(|at| *at < self.end);
            let due = Some(state.due).filter(|due| *due < self.end);
            let Some(next) = [change, due].into_iter().flatten().min() else {
                return;
            };
            peer.pause(next - now).await;
            now = next;
            // What changes at the time of a burst changes before it.
            if change == Some(next) {
                for order in self.orders.take() {
                    self.obey(order, now, &mut state, &peer).await;
                }
                continue;
            }
            if !state.stopped {
                let burst = self.burst.min(state.left);
                for _ in 0..burst {
                    self.send(&peer).await;
                }
                state.left -= burst;
            }
            let Ok(gap) = self.gap(now - self.start) else {
                return;
            };
            state.due += gap;
            state.sending += gap;
            if let Some((_, off)) = self.on_off.filter(|(on, _)| state.sending >= *on) {
                state.due += off;
                state.sending = Duration::ZERO;
            }
        }
    }

    async fn send(&mut self, peer: &RemotePeer) {
        let (to, nic, bytes) = (self.to, self.nic, self.bytes);
        let number = self.first_number + self.sent;
        self.sent += 1;
        match self.echo {
            true => peer.send_measured(to, nic, bytes, number).await,
            false => peer.send_datagram(to, nic, bytes).await,
        }
    }

    /// A new rate counts from `now`; a source that has not started yet starts when it would have.
    async fn obey(&mut self, order: Order, now: Duration, state: &mut Sending, peer: &RemotePeer) {
        match order {
            Order::Stop(stopped) => state.stopped = stopped,
            Order::Arrival(cpus) => peer.steer(self.nic, cpus).await,
            Order::Gap(gap) => {
                self.gaps = Gaps::Even(gap, gap, Duration(1));
                if now >= self.start {
                    state.due = now + gap;
                }
            }
        }
    }

    /// From a burst that began `since` the start to the next one, at least a picosecond. The rate
    /// of a ramp, and not its gap, changes evenly.
    fn gap(&mut self, since: Duration) -> Result<Duration, EvalError> {
        let gap = match &mut self.gaps {
            Gaps::Listed(gaps, next) => {
                let gap = gaps[*next];
                *next = (*next + 1) % gaps.len();
                gap
            }
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
