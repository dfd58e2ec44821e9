//! How tasks take spin locks of user space: one rule for all who play.

use crate::bind::{Bound, EvalError};
use crate::expr::Expr;
use crate::object::{Spinlock, Then};
use crate::program::{StreamOf, Which};
use crate::step::CounterId;

/// More looks than any task makes, and no more than an expression can say.
const FOR_EVER: u64 = i64::MAX as u64;

/// What is counted of the spin locks of a table, in the order of
/// [`SpinlockNames`](warmq_trace::SpinlockNames).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpinCounters {
    /// How often one was taken.
    pub taken: CounterId,
    /// How often a task that wanted one found it held.
    pub contended: CounterId,
    /// CPU time between looks, in nanoseconds.
    pub spun: CounterId,
}

/// A step that takes a spin lock.
#[derive(Clone, Debug)]
pub struct TakeSpinlock {
    /// The lock.
    pub lock: Which,
    /// From where the lengths of sleeps are drawn.
    pub stream: StreamOf,
    /// What counts it.
    pub counters: SpinCounters,
}

/// The numbers of one spin lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spinning {
    /// Whether there is one for each CPU.
    pub per_cpu: bool,
    /// What a task computes between two looks, in picoseconds; at least 1.
    pub pause: u64,
    /// After how many looks in vain, besides a first one at once, it does what `then` says.
    pub spins: u64,
    /// What it does.
    pub then: InVain,
}

/// What a task does that has looked in vain as often as its lock says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InVain {
    /// It gives its CPU away, and looks again.
    Yield,
    /// It sleeps, and looks again; picoseconds.
    Sleep {
        /// The first time.
        delay: u64,
        /// The longest sleep.
        most: u64,
    },
    /// It waits in the lock's futex.
    Futex,
}

impl Spinning {
    /// The numbers of `lock` with the settings of `bound`, for the indexes `at`.
    ///
    /// # Errors
    /// As [`Bound::eval`].
    pub fn of(lock: &Spinlock, bound: &Bound, at: &[u64]) -> Result<Spinning, EvalError> {
        let eval = |expr: &Expr| bound.eval(expr, at);
        let (spins, then) = match &lock.then {
            // What never ends is followed by nothing.
            Then::Spin => (FOR_EVER, InVain::Yield),
            Then::Yield(spins) => (eval(spins)?, InVain::Yield),
            Then::Futex(spins) => (eval(spins)?, InVain::Futex),
            Then::Sleep { spins, delay, most } => {
                let (delay, most) = (eval(delay)?, eval(most)?);
                (eval(spins)?, InVain::Sleep { delay, most })
            }
        };
        Ok(Spinning {
            per_cpu: lock.per_cpu,
            pause: eval(&lock.pause)?,
            spins,
            then,
        })
    }

    /// CPU time of `looks`, in nanoseconds.
    pub fn spun_ns(&self, looks: u64) -> u64 {
        let ps = u128::from(looks) * u128::from(self.pause);
        u64::try_from(ps / 1_000).unwrap_or(u64::MAX)
    }
}

/// The sleep after one of `slept`: longer by a random part of it, up to all; one that would be
/// longer than `most` is `delay` again. As `perform_spin_delay()` of PostgreSQL has it. `below`
/// draws a number below the one that it is given.
pub fn longer(slept: u64, (delay, most): (u64, u64), below: impl FnOnce(u64) -> u64) -> u64 {
    let longer = slept.saturating_add(below(slept.saturating_add(1)));
    if longer > most { delay } else { longer }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_sleep_is_at_most_twice_as_long_as_the_one_before_or_the_first_again(
            slept in 1_u64..1 << 40, more in any::<u64>(), delay in 1_u64..1 << 20, most in 1_u64..1 << 41
        ) {
            let next = longer(slept, (delay, most), |bound| more % bound);
            prop_assert!(next == delay || (slept..=2 * slept).contains(&next) && next <= most);
        }
    }

    #[test]
    fn sleeps_grow_up_to_the_longest_and_begin_anew() {
        let all = |bound: u64| bound - 1;
        let grown = |slept| longer(slept, (1, 10), all);
        assert_eq!([1, 2, 4, 8].map(grown), [2, 4, 8, 1]);
        assert_eq!(longer(7, (1, 10), |_| 0), 7);
    }
}
