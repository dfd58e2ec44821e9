//! The value of an expression.

use super::{Operator, Tree};
use crate::quantity::Quantity;
use crate::site::Site;

/// Why an expression has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A division, or the remainder of one, by zero.
    #[error("this divides by zero")]
    DivisionByZero,
    /// A result of more than 63 bits.
    #[error("the result is larger than 63 bits")]
    Overflow,
    /// A result below zero where none can be.
    #[error("the result is negative: {0}")]
    Negative(i64),
    /// A result above [`Quantity::most`].
    #[error("the result is more than {}", .0.most_written())]
    TooMuch(Quantity),
}

impl Tree {
    /// The value for `settings` and `indexes` on the machine `site`.
    ///
    /// # Panics
    /// When an index has no slot: a scope of another place was handed in.
    pub(crate) fn eval(
        &self,
        settings: &[i64],
        site: &Site,
        indexes: &[u64],
    ) -> Result<i64, Fault> {
        match self {
            Tree::Literal(value) => Ok(*value),
            Tree::Setting(id) => Ok(settings[id.0 as usize]),
            Tree::Index(slot) => i64::try_from(indexes[*slot]).map_err(|_| Fault::Overflow),
            Tree::Machine(resource) => whole(u128::from(site.number(*resource))),
            Tree::Per(thousandths, resource) => {
                let all = u128::from(*thousandths) * u128::from(site.number(*resource));
                whole((all / 1_000).max(1))
            }
            Tree::Curve(curve, place) => Ok(curve.at(place.eval(settings, site, indexes)?)),
            Tree::Operation(operator, operands) => {
                let left = operands[0].eval(settings, site, indexes)?;
                operator.apply(left, operands[1].eval(settings, site, indexes)?)
            }
        }
    }
}

fn whole(value: u128) -> Result<i64, Fault> {
    i64::try_from(value).map_err(|_| Fault::Overflow)
}

impl Operator {
    fn apply(self, left: i64, right: i64) -> Result<i64, Fault> {
        let divides = matches!(self, Operator::Divide | Operator::Remainder);
        if divides && right == 0 {
            return Err(Fault::DivisionByZero);
        }
        let result = match self {
            Operator::Add => left.checked_add(right),
            Operator::Subtract => left.checked_sub(right),
            Operator::Multiply => left.checked_mul(right),
            Operator::Divide => floor(left, right),
            Operator::Remainder => remainder(left, right),
        };
        result.ok_or(Fault::Overflow)
    }
}

fn floor(left: i64, right: i64) -> Option<i64> {
    let quotient = left.checked_div(right)?;
    let inexact = left % right != 0;
    Some(quotient - i64::from(inexact && (left < 0) != (right < 0)))
}

/// What is left after [`floor`]: of the sign of `right`.
fn remainder(left: i64, right: i64) -> Option<i64> {
    let rest = left.checked_rem(right)?;
    let wraps = rest != 0 && (rest < 0) != (right < 0);
    Some(if wraps { rest + right } else { rest })
}
