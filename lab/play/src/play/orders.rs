//! What changes say of a source, at their times.

use warmq_scenario::{ObjectId, Set};
use warmq_units::{CpuSet, Duration, Instant};

use super::Trouble;
use super::cards::NO_CPU;
use super::changes::{cpus, times};
use super::stage::Stage;

/// What a source is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// It leaves out what is due from here on, or (false) not any more.
    Stop(bool),
    /// From here on so long from one burst to the next.
    Gap(Duration),
    /// From here on its card interrupts these CPUs.
    Arrival(CpuSet),
}

/// A change, and when it takes place next.
struct Planned {
    next: Instant,
    /// How long after one another it takes place, and when it ends; `None`: once.
    again: Option<(Duration, Instant)>,
    orders: Vec<Order>,
}

/// All that changes say of one source.
///
/// Their times are known from the beginning, so that the source looks at them by itself: nobody has
/// to wake it.
pub(super) struct Orders(Vec<Planned>);

impl Orders {
    /// Those of the `number`th source of table `id`.
    pub(super) fn of(stage: &Stage, id: ObjectId, number: u64) -> Result<Orders, Trouble> {
        let mut planned = Vec::new();
        for change in stage.bound.changes_of_source(id, number)? {
            let (next, again) = times(stage, &change.occurs)?;
            let mut orders = Vec::new();
            for set in &change.set {
                match set {
                    Set::Stop => orders.push(Order::Stop(true)),
                    Set::Continue => orders.push(Order::Stop(false)),
                    Set::Rate(rate) => {
                        let gap = stage.bound.gap_of_source(id, number, rate)?;
                        orders.push(Order::Gap(Duration(gap)));
                    }
                    Set::Arrival(place) => orders.push(Order::Arrival(cpus(stage, place, NO_CPU)?)),
                    _ => {}
                }
            }
            planned.push(Planned {
                next,
                again,
                orders,
            });
        }
        Ok(Orders(planned))
    }

    /// When the next change takes place.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.iter().map(|it| it.next).min()
    }

    /// Takes the next change; of those at the same time, the first of the scenario.
    pub(super) fn take(&mut self) -> Vec<Order> {
        let soonest = (0..self.0.len()).min_by_key(|index| self.0[*index].next);
        let Some(index) = soonest else {
            return Vec::new();
        };
        let planned = &mut self.0[index];
        let orders = planned.orders.clone();
        let next = planned
            .again
            .map(|(period, end)| (planned.next + period, end));
        match next.filter(|(next, end)| next < end && *next > planned.next) {
            Some((next, _)) => planned.next = next,
            None => {
                self.0.remove(index);
            }
        }
        orders
    }
}
