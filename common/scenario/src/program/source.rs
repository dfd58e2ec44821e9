//! When sources send, and how much.

use std::sync::Arc;

use warmq_units::{Bytes, CpuSet, Duration, Seed};

use super::{Cpus, Drawn, Draws, Planned, SharedStreams, To, Whom};
use crate::amount::StreamName;
use crate::bind::{Bound, EvalError, Indexes};
use crate::expr::Expr;
use crate::object::{ObjectId, ObjectKind, Rate, Source};
use crate::task::TaskKindId;

/// A table of sources.
#[derive(Clone, Debug)]
pub struct SourceProgram {
    /// The table.
    pub id: ObjectId,
    /// What the scenario says.
    pub source: Source,
    /// When datagrams arrive.
    pub(super) gaps: GapsOf,
    /// The streams of each source.
    pub streams: Vec<StreamName>,
}

/// How the times between bursts are found.
#[derive(Clone, Debug)]
pub(super) enum GapsOf {
    Drawn(Draws),
    Listed(Arc<[Duration]>),
    Rate(Rate),
}

/// The time from one burst to the next, in picoseconds.
#[derive(Clone, Debug)]
enum Gaps {
    Drawn(Draws),
    /// In turn, and which is next.
    Listed(Arc<[Duration]>, usize),
    /// The first gap, the last one, and how long the way takes from one to the other.
    Even(u64, u64, u64),
}

/// What a source is given.
#[derive(Clone, Debug)]
pub struct SourceSpec {
    /// The place among all datagram sockets of the one that it sends to.
    pub to: usize,
    /// The payload of a datagram.
    pub bytes: Bytes,
    /// On which CPUs its datagrams arrive: an empty set where the machine lacks them.
    pub cpus: Option<CpuSet>,
    /// The places of the changes that are about it.
    pub changes: Vec<usize>,
    /// Whether one of them says on which CPUs its datagrams arrive from then on.
    pub moves: bool,
}

impl SourceProgram {
    /// What the `number`th source is given on a machine of these `cpus`, with these changes later.
    ///
    /// # Errors
    /// As [`Bound::eval`].
    pub fn spec(
        &self,
        number: u64,
        bound: &Bound,
        (cpus, changes): (&Cpus, &[Planned]),
    ) -> Result<SourceSpec, EvalError> {
        let at = &bound.indexes_of_object(self.id, number);
        let is_own = |place: &usize| match &changes[*place].whom {
            Whom::Sources(table, numbers) => *table == self.id && numbers.contains(&number),
            _ => false,
        };
        let own: Vec<usize> = (0..changes.len()).filter(is_own).collect();
        let mut sets = own.iter().flat_map(|place| &changes[*place].set);
        Ok(SourceSpec {
            to: bound.object_place(&self.source.to, at)?,
            bytes: Bytes(bound.eval(&self.source.bytes, at)?),
            cpus: bound.cpus(cpus, &self.source.cpu, at)?,
            moves: sets.any(|to| matches!(to, To::Arrival(_))),
            changes: own,
        })
    }

    /// The streams that the `number`th source draws from. Those of sources are numbered behind
    /// those of all tasks.
    pub fn drawn<S: SharedStreams>(&self, seed: Seed, number: u64, shared: S) -> Drawn<S> {
        let owner = TaskKindId(u32::MAX - self.id.0);
        Drawn::new(&self.streams, seed, (owner, number), shared)
    }
}

/// The bursts of one source that is under way. Times are picoseconds from the start of the run.
#[derive(Clone, Debug)]
pub struct Bursts {
    indexes: Indexes,
    gaps: Gaps,
    least: u64,
    size: u64,
    /// For how long it sends, and for how long it pauses then.
    on_off: Option<(u64, u64)>,
    start: u64,
    end: u64,
    /// How many datagrams are left.
    left: u64,
    due: u64,
    /// How long it has sent since its last pause.
    sending: u64,
    stopped: bool,
}

impl Bursts {
    /// Those of the `number`th source of a table, at least `least` apart.
    ///
    /// # Errors
    /// As [`Bound::eval`].
    pub fn new(
        of: &SourceProgram,
        number: u64,
        least: u64,
        bound: &Bound,
    ) -> Result<Bursts, EvalError> {
        let (source, indexes) = (&of.source, bound.indexes_of_object(of.id, number));
        let eval = |expr: &Expr| bound.eval(expr, &indexes);
        let or = |expr: &Option<Expr>, other| expr.as_ref().map_or(Ok(other), eval);
        let pair = |(on, off): &(Expr, Expr)| Ok::<_, EvalError>((eval(on)?, eval(off)?));
        let gap = |rate: &Rate| bound.gap_of_source(of.id, number, rate);
        let gaps = match (&of.gaps, &source.ramp) {
            (GapsOf::Drawn(amount), _) => Gaps::Drawn(amount.clone()),
            (GapsOf::Listed(gaps), _) => Gaps::Listed(gaps.clone(), 0),
            (GapsOf::Rate(rate), None) => Gaps::Even(gap(rate)?, gap(rate)?, 1),
            (GapsOf::Rate(rate), Some((to, over))) => {
                Gaps::Even(gap(rate)?, gap(to)?, eval(over)?.max(1))
            }
        };
        let start = or(&source.start, 0)?;
        Ok(Bursts {
            gaps,
            least,
            size: eval(&source.burst)?.max(1),
            on_off: source.on_off.as_ref().map(pair).transpose()?,
            start,
            end: or(&source.end, u64::MAX)?,
            left: or(&source.packets, u64::MAX)?,
            due: start,
            sending: 0,
            stopped: false,
            indexes,
        })
    }

    /// When the next burst is due; none if there is none.
    pub fn due(&self) -> Option<u64> {
        (self.left > 0 && self.due < self.end).then_some(self.due)
    }

    /// When it ends, whatever changes say; at once where it has sent all its datagrams.
    pub fn end(&self) -> u64 {
        match self.left {
            0 => 0,
            _ => self.end,
        }
    }

    /// From here on it leaves out what is due, or (false) not any more. What it leaves out never
    /// comes.
    pub fn stop(&mut self, stopped: bool) {
        self.stopped = stopped;
    }

    /// From `now` on it sends at even distances. One that has not started yet starts when it would
    /// have.
    pub fn set_gap(&mut self, gap: u64, now: u64) {
        self.gaps = Gaps::Even(gap, gap, 1);
        if now >= self.start {
            self.due = now.saturating_add(gap);
        }
    }

    /// How many datagrams are sent now that a burst is due.
    pub fn take(&mut self) -> u64 {
        let sent = match self.stopped {
            true => 0,
            false => self.size.min(self.left),
        };
        self.left -= sent;
        sent
    }

    /// Finds out when the next burst is due after the one that was taken.
    ///
    /// # Errors
    /// As [`Bound::draw`].
    pub fn advance(
        &mut self,
        bound: &Bound,
        streams: &mut Drawn<impl SharedStreams>,
    ) -> Result<(), EvalError> {
        let gap = self.gap(bound, streams)?.max(self.least);
        self.due = self.due.saturating_add(gap);
        self.sending = self.sending.saturating_add(gap);
        if let Some((_, off)) = self.on_off.filter(|(on, _)| self.sending >= *on) {
            self.due = self.due.saturating_add(off);
            self.sending = 0;
        }
        Ok(())
    }

    fn gap(
        &mut self,
        bound: &Bound,
        streams: &mut Drawn<impl SharedStreams>,
    ) -> Result<u64, EvalError> {
        let since = self.due.saturating_sub(self.start);
        Ok(match &mut self.gaps {
            Gaps::Drawn(amount) => amount.next(bound, &self.indexes, streams)?,
            Gaps::Listed(gaps, next) => {
                let gap = gaps[*next];
                *next = (*next + 1) % gaps.len();
                gap.0
            }
            Gaps::Even(first, last, over) => ramped((*first, *last), *over, since),
        })
    }
}

impl Bound {
    /// The gap between bursts of the `number`th source of a table, in picoseconds, at `rate`.
    ///
    /// # Errors
    /// As [`Bound::eval`].
    pub fn gap_of_source(&self, id: ObjectId, number: u64, rate: &Rate) -> Result<u64, EvalError> {
        let at = self.indexes_of_object(id, number);
        let count = self.eval(&rate.count, &at)?;
        let burst = match &self.scenario().object(id).kind {
            ObjectKind::Source(source) => self.eval(&source.burst, &at)?,
            _ => 1,
        };
        Ok(gap_of(count, rate.per.0, burst.max(1)))
    }
}

/// The gap between bursts of `burst` in picoseconds, at `count` datagrams in `per` picoseconds.
fn gap_of(count: u64, per: u64, burst: u64) -> u64 {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_ramp_stays_between_its_ends(
            first in 1_000_u64..1 << 40, last in 1_000_u64..1 << 40, over in 1_u64..1 << 50,
            since: u64
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
    fn a_long_ramp_between_short_gaps_is_no_storm() {
        // 1,000,000 a second all along, in a ramp of a thousand seconds.
        let gap = gap_of(1_000_000, 1_000_000_000_000, 1);
        assert!(ramped((gap, gap), 1_000_000_000_000_000, 5).abs_diff(gap) <= 1);
    }
}
