//! The loops that a task is in.

use super::{Edge, Program};
use crate::bind::{Bound, EvalError, Indexes};

/// A loop that is under way; its counter is an index.
#[derive(Clone, Debug)]
struct Loop {
    times: u64,
    except: Option<u64>,
}

impl Loop {
    /// The first counter from `counter` on that has a round.
    fn enters(&self, counter: u64) -> Option<u64> {
        let counter = counter + u64::from(self.except == Some(counter));
        (counter < self.times).then_some(counter)
    }
}

/// The indexes of a task, and its loops that are under way.
#[derive(Clone, Debug)]
pub struct Loops {
    /// Those of the task, then the counter of each loop around the step.
    pub indexes: Indexes,
    under_way: Vec<Loop>,
}

impl Loops {
    /// Of a task with `own` indexes that does `program`, outside all loops.
    pub fn new(own: &[u64], program: &Program) -> Loops {
        let mut indexes = Vec::with_capacity(own.len() + program.depth);
        indexes.extend(own);
        Loops {
            indexes,
            under_way: Vec::with_capacity(program.depth),
        }
    }

    /// Passes the edge of a loop at `at`, and says where the task goes on.
    ///
    /// # Errors
    /// A number of the loop that cannot be computed.
    #[inline]
    pub fn pass(&mut self, edge: &Edge, at: usize, bound: &Bound) -> Result<usize, EvalError> {
        match edge {
            Edge::Repeat {
                times,
                except,
                after,
            } => {
                let number = |number: &super::Number| number.get(bound, &self.indexes);
                let new = Loop {
                    times: number(times)?,
                    except: except.as_ref().map(number).transpose()?,
                };
                let Some(counter) = new.enters(0) else {
                    return Ok(*after);
                };
                self.under_way.push(new);
                self.indexes.push(counter);
                Ok(at + 1)
            }
            Edge::Again { first } => Ok(match self.again() {
                true => *first,
                false => at + 1,
            }),
        }
    }

    /// Whether the innermost loop has another round; leaves the loop if not.
    fn again(&mut self) -> bool {
        let (Some(inner), Some(counter)) = (self.under_way.last(), self.indexes.last_mut()) else {
            return false;
        };
        match inner.enters(*counter + 1) {
            Some(next) => *counter = next,
            None => {
                self.under_way.pop();
                self.indexes.pop();
                return false;
            }
        }
        true
    }
}
