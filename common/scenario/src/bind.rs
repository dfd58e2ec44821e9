//! A scenario with values for its settings: how many there are of what, and what expressions give.

use std::sync::Arc;

use warmq_config::{Chosen, Kind, Problem, Problems, Setting, Value};
use warmq_units::{Bytes, Stream};

use crate::amount::{Amount, Draw};
use crate::check::{self, Findings};
use crate::expr::{Expr, Fault, Spot};
use crate::object::{ObjectId, ObjectKind};
use crate::scenario::Scenario;
use crate::site::Site;
use crate::step::{Reference, SpanReference, TaskReference, When};
use crate::task::TaskKindId;

/// The value of each index in scope, outermost first: those of the task, then one for each
/// [`Action::Repeat`](crate::Action::Repeat) around the step.
pub type Indexes = Vec<u64>;

/// Why something cannot be computed, with the place of the expression.
pub type EvalError = Box<Problem>;

/// A scenario with values for its settings.
///
/// Invariant: the products of dimensions do not overflow, and are within the limits of [`check`].
#[derive(Clone, Debug)]
pub struct Bound {
    scenario: Arc<Scenario>,
    /// By setting; of a choice the number of its word.
    values: Vec<i64>,
    site: Site,
    objects: Vec<Vec<u64>>,
    tasks: Vec<Vec<u64>>,
}

impl Scenario {
    /// This scenario with the values `chosen` for its settings, the others at their defaults, and
    /// with the numbers of the machine `site`.
    ///
    /// # Errors
    /// What does not work with these values, each with its place and a fix.
    pub fn bind(&self, chosen: &Chosen, site: &Site) -> Result<Bound, Problems> {
        let mut bound = Bound {
            scenario: Arc::new(self.clone()),
            values: self
                .settings
                .iter()
                .map(|setting| number(setting, chosen))
                .collect(),
            site: *site,
            objects: Vec::new(),
            tasks: Vec::new(),
        };
        let mut findings = Findings::new(self);
        for object in &self.objects {
            let dimensions = bound.dimensions(&object.dimensions, &mut findings);
            bound.objects.push(dimensions);
        }
        for task in &self.tasks {
            let dimensions = bound.dimensions(&task.dimensions, &mut findings);
            bound.tasks.push(dimensions);
        }
        check::limits(&bound, &mut findings);
        findings.verdict()?;
        check::values(&bound, &mut findings);
        findings.verdict()?;
        Ok(bound)
    }
}

/// A setting's value as a number in its base unit.
fn number(setting: &Setting, chosen: &Chosen) -> i64 {
    let mut in_force = chosen.in_force();
    let found = in_force.find(|(known, _)| known.name == setting.name);
    match found.map_or(&setting.default, |(_, value)| value) {
        Value::Bool(flag) => i64::from(*flag),
        Value::Integer(count) => *count,
        // `most` of a setting has at most 63 bits.
        Value::Bytes(size) => size.0 as i64,
        Value::Duration(span) => span.0 as i64,
        Value::Text(word) => match &setting.kind {
            Kind::Choice(words) => words
                .iter()
                .position(|choice| choice == word)
                .map_or(-1, |place| place as i64),
            _ => -1,
        },
    }
}

impl Bound {
    /// The scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// How many bytes its regions have together, each in pages of its own: the player compares them
    /// with the memory that its machine has.
    ///
    /// # Errors
    /// As [`Bound::eval`]; a sum of more than 63 bits. Regions of up to 64 GB do not come to it,
    /// but that limit is known to hold only for the first and the last of a table.
    pub fn memory(&self, page: Bytes) -> Result<Bytes, EvalError> {
        let mut all = 0_u64;
        for (number, object) in (0..).zip(self.scenario.objects()) {
            let ObjectKind::Region { bytes } = &object.kind else {
                continue;
            };
            let id = ObjectId(number);
            // Objects whose size depends on no index are alike.
            let (looked_at, times) = match bytes.uses_indexes() {
                true => (self.objects(id), 1),
                false => (self.objects(id).min(1), self.objects(id)),
            };
            for number in 0..looked_at {
                let size = self.eval(bytes, &self.indexes_of_object(id, number))?;
                let size = size.next_multiple_of(page.0);
                let sum = size
                    .checked_mul(times)
                    .and_then(|product| all.checked_add(product));
                let sum = sum.filter(|sum| i64::try_from(*sum).is_ok());
                all = sum.ok_or_else(|| self.fault(bytes, Fault::Overflow))?;
            }
        }
        Ok(Bytes(all))
    }

    /// How many objects there are along each index; empty for a single one.
    pub fn dimensions_of_object(&self, id: ObjectId) -> &[u64] {
        &self.objects[id.0 as usize]
    }

    /// How many objects there are.
    pub fn objects(&self, id: ObjectId) -> u64 {
        product(self.dimensions_of_object(id))
    }

    /// How many tasks there are, started by a step or by themselves.
    pub fn tasks(&self, id: TaskKindId) -> u64 {
        product(&self.tasks[id.0 as usize])
    }

    /// Whether a run waits for the tasks of `id` to end. Where all that start by themselves are in
    /// the background, it waits for them all.
    pub fn is_awaited(&self, id: TaskKindId) -> bool {
        let kinds = (0..).map(TaskKindId).zip(self.scenario.tasks());
        let mut first = kinds.filter(|(id, kind)| !kind.spawned && self.tasks(*id) > 0);
        let background = self.scenario.task(id).background;
        !background || first.all(|(_, kind)| kind.background)
    }

    /// The indexes of the `number`th object.
    pub fn indexes_of_object(&self, id: ObjectId, number: u64) -> Indexes {
        split(self.dimensions_of_object(id), number)
    }

    /// The indexes of the `number`th task.
    pub fn indexes_of_task(&self, id: TaskKindId, number: u64) -> Indexes {
        split(&self.tasks[id.0 as usize], number)
    }

    /// The value of `expr`, which is not negative.
    ///
    /// # Errors
    /// A division by zero, a result of more than 63 bits or below zero.
    pub fn eval(&self, expr: &Expr, indexes: &[u64]) -> Result<u64, EvalError> {
        let value = self.eval_signed(expr, indexes)?;
        let negative = |_| self.fault(expr, Fault::Negative(value));
        u64::try_from(value).map_err(negative)
    }

    /// The value of `expr`, such as a nice value.
    ///
    /// # Errors
    /// A division by zero, a result of more than 63 bits.
    pub fn eval_signed(&self, expr: &Expr, indexes: &[u64]) -> Result<i64, EvalError> {
        let value = expr.tree.eval(&self.values, &self.site, indexes);
        let value = value.and_then(|value| match value > expr.quantity.most() {
            true => Err(Fault::TooMuch(expr.quantity)),
            false => Ok(value),
        });
        value.map_err(|fault| self.fault(expr, fault))
    }

    /// The value of `expr` if it is the same everywhere.
    pub(crate) fn constant(&self, expr: &Expr) -> Option<u64> {
        match expr.uses_indexes() {
            true => None,
            false => self.eval(expr, &[]).ok(),
        }
    }

    /// An amount, drawn from `stream` unless it is constant.
    ///
    /// # Errors
    /// As [`Bound::eval`]; a uniform amount whose least value is above its greatest.
    pub fn draw(
        &self,
        amount: &Amount,
        indexes: &[u64],
        stream: &mut Stream,
    ) -> Result<u64, EvalError> {
        Ok(match &amount.draw {
            Draw::Constant(value) => self.eval(value, indexes)?,
            Draw::Uniform(low, high) => {
                let (least, most) = (self.eval(low, indexes)?, self.eval(high, indexes)?);
                if least > most {
                    return Err(self.error(
                        &low.spot,
                        "the least value is above the greatest",
                        "write the least value first",
                    ));
                }
                stream.between(least, most)
            }
            Draw::Exponential(mean) => {
                let drawn = stream.exponential(self.eval(mean, indexes)?);
                drawn.min(mean.quantity.most() as u64)
            }
            Draw::Pareto { least, shape } => {
                let drawn = stream.pareto(self.eval(least, indexes)?, *shape);
                drawn.min(least.quantity.most() as u64)
            }
            Draw::Among(values) => {
                let chosen = stream.below(values.len() as u64);
                self.eval(&values[chosen as usize], indexes)?
            }
        })
    }

    /// The number of the object that `reference` names, within its table.
    ///
    /// # Errors
    /// As [`Bound::eval`]; an index that no object has.
    pub fn object_number(&self, reference: &Reference, indexes: &[u64]) -> Result<u64, EvalError> {
        let dimensions = self.dimensions_of_object(reference.object);
        self.number(&reference.indexes, dimensions, &reference.spot, indexes)
    }

    /// The number of the task that `reference` names, within its table.
    ///
    /// # Errors
    /// As [`Bound::eval`]; an index that no task has.
    pub fn task_number(
        &self,
        reference: &TaskReference,
        indexes: &[u64],
    ) -> Result<u64, EvalError> {
        let dimensions = &self.tasks[reference.task.0 as usize];
        self.number(&reference.indexes, dimensions, &reference.spot, indexes)
    }

    /// The number of the span that `reference` names, among those of its name: that of `task`, or
    /// one made of its indexes, of which each has its share of 64 bits.
    ///
    /// # Errors
    /// As [`Bound::eval`].
    pub fn span_number(
        &self,
        reference: &SpanReference,
        indexes: &[u64],
        task: u32,
    ) -> Result<u64, EvalError> {
        let Some(bits) = u64::BITS.checked_div(reference.indexes.len() as u32) else {
            return Ok(task.into());
        };
        let mut number = 0_u64;
        for expr in &reference.indexes {
            let index = self.eval(expr, indexes)?;
            number = number.checked_shl(bits).unwrap_or(0) | index;
        }
        Ok(number)
    }

    /// The number of the span that the `datagram`th datagram of a source begins, among those of its
    /// name: 24 bits for the source, counted over all tables of objects, and 40 for the datagram.
    pub fn echo_number(&self, id: ObjectId, source: u64, datagram: u64) -> u64 {
        self.object_of_all(id, source) << 40 | (datagram & ((1 << 40) - 1))
    }

    /// The number of the `number`th object of a table, counted over all tables.
    pub fn object_of_all(&self, id: ObjectId, number: u64) -> u64 {
        let before = (0..id.0).map(|table| self.objects(ObjectId(table)));
        before.sum::<u64>() + number
    }

    /// The place of the `number`th object of a table among all objects of its class.
    pub fn object_of_class(&self, id: ObjectId, number: u64) -> u64 {
        let class = |id: ObjectId| self.scenario.object(id).kind.class();
        let before = (0..id.0)
            .map(ObjectId)
            .filter(|table| class(*table) == class(id));
        before.map(|table| self.objects(table)).sum::<u64>() + number
    }

    /// The place of the object that `reference` names among all objects of its class.
    ///
    /// # Errors
    /// As [`Bound::object_number`].
    pub fn object_place(&self, reference: &Reference, indexes: &[u64]) -> Result<usize, EvalError> {
        let number = self.object_number(reference, indexes)?;
        Ok(self.object_of_class(reference.object, number) as usize)
    }

    /// Whether a step takes place that has this condition.
    pub fn holds(&self, when: Option<When>) -> bool {
        when.is_none_or(|when| self.values[when.setting.0 as usize] == i64::from(when.word))
    }

    fn number(
        &self,
        wanted: &[Expr],
        dimensions: &[u64],
        spot: &Arc<Spot>,
        indexes: &[u64],
    ) -> Result<u64, EvalError> {
        let mut number = 0;
        for (expr, count) in wanted.iter().zip(dimensions) {
            let index = self.eval(expr, indexes)?;
            if index >= *count {
                let what = format!("there is no number {index}: there are {count}, counted from 0");
                return Err(self.error(spot, &what, "write an index below that"));
            }
            number = number * count + index;
        }
        Ok(number)
    }

    fn fault(&self, expr: &Expr, fault: Fault) -> EvalError {
        let help = match fault {
            Fault::DivisionByZero => "change the divisor, or the setting that it comes from",
            Fault::Overflow => "compute with smaller numbers",
            Fault::Negative(_) => "subtract less",
            Fault::TooMuch(_) => "write less",
        };
        self.error(&expr.spot, &fault.to_string(), help)
    }

    pub(crate) fn error(&self, spot: &Spot, what: &str, help: &str) -> EvalError {
        let document = &self.scenario.document;
        Box::new(document.problem(&spot.key, &spot.place, what, help))
    }

    fn dimensions(&self, dimensions: &[Expr], findings: &mut Findings<'_>) -> Vec<u64> {
        let count = |count: &Expr| match self.eval(count, &[]) {
            Ok(count) => count,
            Err(problem) => {
                findings.add(*problem);
                0
            }
        };
        dimensions.iter().map(count).collect()
    }
}

/// How many there are in all; checked by [`check::limits`] before anybody else asks.
fn product(dimensions: &[u64]) -> u64 {
    let all = dimensions.iter();
    all.fold(1, |product: u64, count| product.saturating_mul(*count))
}

/// The place of the `number`th in a table of `dimensions`, the last index running fastest.
fn split(dimensions: &[u64], number: u64) -> Indexes {
    let mut left = number;
    let mut indexes: Indexes = Vec::with_capacity(dimensions.len());
    for count in dimensions.iter().rev() {
        indexes.push(left % count);
        left /= count;
    }
    indexes.reverse();
    indexes
}
