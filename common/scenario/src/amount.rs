//! Amounts: constant, or drawn each time.

use warmq_units::{Seed, Stream};

use crate::expr::Expr;
use crate::quantity::Quantity;
use crate::task::TaskKindId;

/// How much, each time it is asked.
#[derive(Clone, Debug)]
pub struct Amount {
    /// How it is drawn.
    pub draw: Draw,
    /// The stream it is drawn from.
    pub stream: StreamName,
}

/// A distribution.
#[derive(Clone, Debug)]
pub enum Draw {
    /// Always the same.
    Constant(Expr),
    /// Evenly from the first to the second, both included.
    Uniform(Expr, Expr),
    /// Exponential, with this mean.
    Exponential(Expr),
    /// Pareto.
    Pareto {
        /// The least value.
        least: Expr,
        /// The shape in thousandths, above 1,000.
        shape: u64,
    },
    /// One of these, equally likely; at least one.
    Among(Vec<Expr>),
}

/// A stream of randomness by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamName {
    /// One stream for all who name it.
    Shared(String),
    /// A stream for each task at this step.
    OfStep(String),
}

impl StreamName {
    /// The stream of `seed` for the task `number` of the table `task`. A shared stream must be made
    /// once and handed to all who share it.
    pub fn stream(&self, seed: Seed, task: TaskKindId, number: u64) -> Stream {
        match self {
            StreamName::Shared(name) => seed.stream(name),
            StreamName::OfStep(key) => seed.stream(&format!("{key} {} {number}", task.0)),
        }
    }
}

impl Amount {
    /// What it counts.
    pub fn quantity(&self) -> Quantity {
        match &self.draw {
            Draw::Constant(expr) | Draw::Exponential(expr) | Draw::Uniform(expr, _) => {
                expr.quantity
            }
            Draw::Pareto { least, .. } => least.quantity,
            Draw::Among(values) => values
                .first()
                .map_or(Quantity::Count, |value| value.quantity),
        }
    }

    /// Its expressions.
    pub(crate) fn expressions(&self) -> Vec<&Expr> {
        match &self.draw {
            Draw::Constant(expr) | Draw::Exponential(expr) => vec![expr],
            Draw::Uniform(low, high) => vec![low, high],
            Draw::Pareto { least, .. } => vec![least],
            Draw::Among(values) => values.iter().collect(),
        }
    }
}
