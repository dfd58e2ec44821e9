//! Numbers, amounts and objects of which as much is computed as can be before a task begins.

use std::ops::Range;

use warmq_units::{Seed, Stream};

use crate::amount::{Amount, StreamName};
use crate::bind::{Bound, EvalError};
use crate::expr::Expr;
use crate::object::ObjectId;
use crate::step::Reference;
use crate::task::TaskKindId;

/// A number that is not negative.
#[derive(Clone, Debug)]
pub enum Number {
    /// Always the same.
    Fixed(u64),
    /// Computed from indexes each time.
    Computed(Expr),
}

impl Number {
    /// `expr` with the settings of `bound`. One that has no value stays as it is: it is an error
    /// only where a task comes to it.
    pub fn of(expr: &Expr, bound: &Bound) -> Number {
        bound
            .constant(expr)
            .map_or_else(|| Number::Computed(expr.clone()), Number::Fixed)
    }

    /// Its value for `indexes`.
    ///
    /// # Errors
    /// As [`Bound::eval`].
    #[inline]
    pub fn get(&self, bound: &Bound, indexes: &[u64]) -> Result<u64, EvalError> {
        match self {
            Number::Fixed(value) => Ok(*value),
            Number::Computed(expr) => bound.eval(expr, indexes),
        }
    }
}

/// Which stream an amount is drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamOf {
    /// One of the task's own, by its place in [`Program::streams`](super::Program::streams).
    Own(usize),
    /// One that tasks share, by its place in [`Compiled::shared`](super::Compiled::shared).
    Shared(usize),
}

/// The streams that tasks and sources share.
pub trait SharedStreams {
    /// Draws from the one at a place of [`Compiled::shared`](super::Compiled::shared), while nobody
    /// else does.
    fn with<T>(&self, place: usize, draw: impl FnOnce(&mut Stream) -> T) -> T;
}

/// The streams that a task or a source draws from: its own, and those that it shares.
pub struct Drawn<S> {
    own: Vec<Stream>,
    shared: S,
}

impl<S: SharedStreams> Drawn<S> {
    /// Those `names` of the `number`th task of `kind`, and those that it shares.
    pub fn new(
        names: &[StreamName],
        seed: Seed,
        (kind, number): (TaskKindId, u64),
        shared: S,
    ) -> Drawn<S> {
        let own = names.iter().map(|name| name.stream(seed, kind, number));
        Drawn {
            own: own.collect(),
            shared,
        }
    }

    /// Draws from one of them.
    #[inline]
    pub fn with<T>(&mut self, from: StreamOf, draw: impl FnOnce(&mut Stream) -> T) -> T {
        match from {
            StreamOf::Own(own) => draw(&mut self.own[own]),
            StreamOf::Shared(shared) => self.shared.with(shared, draw),
        }
    }
}

/// An amount.
#[derive(Clone, Debug)]
pub enum Draws {
    /// Always the same.
    Fixed(u64),
    /// Drawn each time, or computed from indexes.
    Drawn(Box<Amount>, StreamOf),
}

impl Draws {
    /// The next amount for `indexes`.
    ///
    /// # Errors
    /// As [`Bound::draw`].
    #[inline]
    pub fn next(
        &self,
        bound: &Bound,
        indexes: &[u64],
        streams: &mut Drawn<impl SharedStreams>,
    ) -> Result<u64, EvalError> {
        match self {
            Draws::Fixed(value) => Ok(*value),
            Draws::Drawn(amount, from) => {
                streams.with(*from, |stream| bound.draw(amount, indexes, stream))
            }
        }
    }
}

/// An object, or several of one table among which indexes choose. Its place is that among all
/// objects of its class.
#[derive(Clone, Debug)]
pub struct Which {
    /// What the text says.
    pub reference: Reference,
    /// The place, if it is always the same.
    fixed: Option<usize>,
    /// The place of the table's first object.
    first: usize,
    /// How many objects of other classes are in the tables before this one.
    others: usize,
}

impl Which {
    /// The object that `reference` names with the settings of `bound`.
    pub fn of(reference: &Reference, bound: &Bound) -> Which {
        let table = reference.object;
        let first = bound.object_of_class(table, 0) as usize;
        let varies = reference.indexes.iter().any(Expr::uses_indexes);
        let fixed = (!varies).then(|| bound.object_number(reference, &[]).ok());
        Which {
            fixed: fixed.flatten().map(|number| first + number as usize),
            first,
            others: bound.object_of_all(table, 0) as usize - first,
            reference: reference.clone(),
        }
    }

    /// The table of objects.
    pub fn table(&self) -> ObjectId {
        self.reference.object
    }

    /// The place among all objects of its class.
    ///
    /// # Errors
    /// As [`Bound::object_number`].
    #[inline]
    pub fn place(&self, bound: &Bound, indexes: &[u64]) -> Result<usize, EvalError> {
        match self.fixed {
            Some(place) => Ok(place),
            None => {
                let number = bound.object_number(&self.reference, indexes)?;
                Ok(self.first + number as usize)
            }
        }
    }

    /// The number within the table of the object at `place`.
    pub fn in_table(&self, place: usize) -> usize {
        place - self.first
    }

    /// The number of the object at `place` among all objects.
    pub fn of_all(&self, place: usize) -> usize {
        self.others + place
    }

    /// The places that it may be at.
    pub fn places(&self, bound: &Bound) -> Range<usize> {
        match self.fixed {
            Some(place) => place..place + 1,
            None => self.first..self.first + bound.objects(self.table()) as usize,
        }
    }
}
