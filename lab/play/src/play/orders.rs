//! What changes say of a source, at their times.

use std::rc::Rc;

use warmq_scenario::{EvalError, ObjectId, Rate, Set, Target};
use warmq_units::{Duration, Instant};

use super::changes::times;
use super::stage::Stage;

/// What a source is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// It leaves out what is due from here on, or (false) not any more.
    Stop(bool),
    /// From here on so long from one burst to the next.
    Gap(Duration),
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
    /// Those of the `number`th source of table `id`, whose bursts `gap` says for a rate.
    pub(super) fn of(
        stage: &Rc<Stage>,
        id: ObjectId,
        number: u64,
        gap: &dyn Fn(&Rate) -> Result<Duration, EvalError>,
    ) -> Result<Orders, EvalError> {
        let mut planned = Vec::new();
        for change in stage.scenario().changes() {
            let meant = match &change.target {
                Target::Sources(table) => *table == id,
                Target::Source(one) => {
                    one.object == id && stage.bound.object_number(one, &[])? == number
                }
                _ => false,
            };
            if !meant {
                continue;
            }
            let (next, again) = times(stage, &change.occurs)?;
            let mut orders = Vec::new();
            for set in &change.set {
                match set {
                    Set::Stop => orders.push(Order::Stop(true)),
                    Set::Continue => orders.push(Order::Stop(false)),
                    Set::Rate(rate) => orders.push(Order::Gap(gap(rate)?)),
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
