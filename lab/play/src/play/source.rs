//! Senders outside the machine.

use std::rc::Rc;

use warmq_kernel::{Boot, Nic, RemotePeer, Socket};
use warmq_scenario::program::{Bursts, SourceProgram, SourceSpec, To};
use warmq_scenario::{EvalError, ObjectId};
use warmq_units::{Bytes, Duration};

use super::Trouble;
use super::cards::Cards;
use super::orders::Orders;
use super::stage::{Drawn, Stage};

/// Starts every source.
pub(super) fn start(stage: &Rc<Stage>, boot: &mut Boot<'_>) -> Result<(), Trouble> {
    let mut cards = Cards::new(stage, boot);
    for of in &stage.sources {
        for number in 0..stage.bound.objects(of.id) {
            let spec = of.spec(number, &stage.bound, (&stage.cpus, &stage.changes))?;
            let nic = cards.of(of, &spec, boot)?;
            let sender = Sender::new(stage, (of, number), &spec, nic)?;
            match of.source.echo {
                Some(span) => boot.measuring_remote(span.0, move |peer| sender.run(peer)),
                None => boot.remote(move |peer| sender.run(peer)),
            };
        }
    }
    Ok(())
}

/// A source that is under way.
struct Sender {
    stage: Rc<Stage>,
    nic: Nic,
    /// Whether it measures how long answers take.
    echo: bool,
    /// The number of its first datagram among those of all sources.
    first_number: u64,
    /// How many datagrams it has sent.
    sent: u64,
    to: Socket,
    bytes: Bytes,
    bursts: Bursts,
    streams: Drawn,
    orders: Orders,
    /// Its table, and its number there.
    of: (ObjectId, u64),
}

/// The least time from one burst to the next.
const LEAST: Duration = Duration(1);

impl Sender {
    fn new(
        stage: &Rc<Stage>,
        (of, number): (&SourceProgram, u64),
        spec: &SourceSpec,
        nic: Nic,
    ) -> Result<Sender, Trouble> {
        Ok(Sender {
            to: stage.objects.datagrams[spec.to],
            bytes: spec.bytes,
            bursts: Bursts::new(of, number, LEAST.0, &stage.bound)?,
            streams: of.drawn(stage.seed, number, stage.shared.clone()),
            orders: Orders::of(stage, &spec.changes),
            of: (of.id, number),
            stage: stage.clone(),
            nic,
            echo: of.source.echo.is_some(),
            first_number: stage.bound.echo_number(of.id, number, 0),
            sent: 0,
        })
    }

    async fn run(mut self, peer: RemotePeer) {
        let mut now = 0;
        loop {
            let change = self.orders.next().map(|at| at.0);
            let change = change.filter(|at| *at < self.bursts.end());
            let Some(next) = [change, self.bursts.due()].into_iter().flatten().min() else {
                return;
            };
            peer.pause(Duration(next - now)).await;
            now = next;
            // What changes at the time of a burst changes before it.
            if change == Some(next) {
                if self.obey(now, &peer).await.is_err() {
                    return;
                }
                continue;
            }
            for _ in 0..self.bursts.take() {
                self.send(&peer).await;
            }
            let next = self.bursts.advance(&self.stage.bound, &mut self.streams);
            if next.is_err() {
                return;
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

    /// Does what the next change says.
    async fn obey(&mut self, now: u64, peer: &RemotePeer) -> Result<(), EvalError> {
        let stage = self.stage.clone();
        let change = self.orders.take();
        for to in change.iter().flat_map(|change| &stage.changes[*change].set) {
            match to {
                To::Stopped(stopped) => self.bursts.stop(*stopped),
                To::Arrival(cpus) => peer.steer(self.nic, cpus.clone()).await,
                To::Rate(rate) => {
                    let (id, number) = self.of;
                    let gap = stage.bound.gap_of_source(id, number, rate)?;
                    self.bursts.set_gap(gap, now);
                }
                _ => {}
            }
        }
        Ok(())
    }
}
