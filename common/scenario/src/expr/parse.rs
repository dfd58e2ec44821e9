//! The text of an expression into its tree. What a number counts is checked on the way.

use std::sync::Arc;

use super::{Curve, Operator, SettingId, Tree};
use warmq_units::{thousandths, times};

use crate::quantity::Quantity;
use crate::site::Resource;

/// Operators and curves in one expression.
const MOST_OPERATORS: usize = 256;
/// Parentheses within one another.
const DEEPEST: usize = 64;

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    Setting(SettingId, Quantity),
    /// A setting that is a word, of which nothing can be computed.
    Word,
    Index(usize),
    /// A number of the machine.
    Machine(Resource),
}

/// Why a text is no expression, and what to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub what: String,
    pub help: String,
}

impl Refusal {
    pub(crate) fn new(what: impl Into<String>, help: impl Into<String>) -> Refusal {
        Refusal {
            what: what.into(),
            help: help.into(),
        }
    }
}

/// Where names are looked up.
pub(crate) trait Lookup {
    fn find(&self, name: &str) -> Option<Known>;
    fn curve(&self, name: &str) -> Result<Arc<Curve>, Refusal>;
    /// The fix for a name that is not found.
    fn suggestion(&self, name: &str) -> String;
}

type Read = Result<(Tree, Quantity), Refusal>;

/// Parses `text`, whose names `lookup` knows.
pub(crate) fn parse(text: &str, lookup: &dyn Lookup) -> Read {
    let mut parser = Parser {
        rest: text,
        lookup,
        operators: 0,
        depth: 0,
    };
    let read = parser.sum()?;
    match parser.rest.trim_start() {
        "" => Ok(read),
        rest => Err(Refusal::new(
            format!("`{rest}` is not understood here"),
            "write an operator (+ - * / %) between two values",
        )),
    }
}

/// A text that is one literal, such as `30` or `2 ms`.
pub(crate) fn literal(text: &str) -> Option<(i64, Quantity)> {
    struct Nothing;
    impl Lookup for Nothing {
        fn find(&self, _: &str) -> Option<Known> {
            None
        }
        fn curve(&self, _: &str) -> Result<Arc<Curve>, Refusal> {
            Err(Refusal::new("", ""))
        }
        fn suggestion(&self, _: &str) -> String {
            String::new()
        }
    }
    match parse(text, &Nothing) {
        Ok((Tree::Literal(value), quantity)) => Some((value, quantity)),
        _ => None,
    }
}

struct Parser<'t> {
    rest: &'t str,
    lookup: &'t dyn Lookup,
    operators: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    /// Takes `letter` if it comes next.
    fn takes(&mut self, letter: char) -> bool {
        let rest = self.rest.trim_start();
        let stripped = rest.strip_prefix(letter);
        self.rest = stripped.unwrap_or(rest);
        stripped.is_some()
    }

    fn takes_one_of(&mut self, operators: &[(char, Operator)]) -> Option<Operator> {
        let found = operators.iter().find(|(letter, _)| self.takes(*letter));
        found.map(|(_, operator)| *operator)
    }

    /// The letters that come next and that `belongs` accepts.
    fn word(&mut self, belongs: fn(char) -> bool) -> &'t str {
        let rest = self.rest.trim_start();
        let end = rest.find(|letter| !belongs(letter)).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.rest = rest;
        word
    }

    fn sum(&mut self) -> Read {
        let operators = [('+', Operator::Add), ('-', Operator::Subtract)];
        let mut left = self.product()?;
        while let Some(operator) = self.takes_one_of(&operators) {
            let right = self.product()?;
            left = self.join(operator, left, right)?;
        }
        Ok(left)
    }

    fn product(&mut self) -> Read {
        let operators = [
            ('*', Operator::Multiply),
            ('/', Operator::Divide),
            ('%', Operator::Remainder),
        ];
        let mut left = self.value()?;
        while let Some(operator) = self.takes_one_of(&operators) {
            let right = self.value()?;
            left = self.join(operator, left, right)?;
        }
        Ok(left)
    }

    fn join(
        &mut self,
        operator: Operator,
        left: (Tree, Quantity),
        right: (Tree, Quantity),
    ) -> Read {
        self.one_more()?;
        let quantity = result_of(operator, left.1, right.1)?;
        let tree = Tree::Operation(operator, Box::new([left.0, right.0]));
        Ok((tree, quantity))
    }

    fn one_more(&mut self) -> Result<(), Refusal> {
        self.operators += 1;
        match self.operators > MOST_OPERATORS {
            true => Err(Refusal::new(
                format!("an expression has at most {MOST_OPERATORS} operators"),
                "make a setting of a part of it",
            )),
            false => Ok(()),
        }
    }

    fn value(&mut self) -> Read {
        if self.takes('(') {
            return self.parenthesis();
        }
        if self.takes('-') {
            return self.negated();
        }
        let digits = self.word(|letter| letter.is_ascii_digit() || letter == '_');
        if digits.bytes().any(|byte| byte.is_ascii_digit()) {
            return self.number(digits);
        }
        let name = self.word(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        match digits.is_empty() && name.is_empty() {
            true => Err(Refusal::new(
                "a value is missing",
                "write a number, the name of a setting or of an index, or a parenthesis",
            )),
            false => self.named(&format!("{digits}{name}")),
        }
    }

    fn parenthesis(&mut self) -> Read {
        self.deeper()?;
        let inner = self.sum()?;
        self.depth -= 1;
        match self.takes(')') {
            true => Ok(inner),
            false => Err(Refusal::new("a `)` is missing", "close every parenthesis")),
        }
    }

    fn curve(&mut self, name: &str) -> Read {
        let curve = self.lookup.curve(name)?;
        self.one_more()?;
        match self.parenthesis()? {
            (place, Quantity::Count) => Ok((Tree::Curve(curve, Box::new(place)), Quantity::Count)),
            (_, other) => Err(Refusal::new(
                format!(
                    "`{name}` is a curve over counts, and this is {}",
                    other.name()
                ),
                "divide it by a time, a size or cycles",
            )),
        }
    }

    fn negated(&mut self) -> Read {
        self.deeper()?;
        let (tree, quantity) = self.value()?;
        self.depth -= 1;
        match tree {
            Tree::Literal(value) => Ok((Tree::Literal(-value), quantity)),
            tree => self.join(
                Operator::Subtract,
                (Tree::Literal(0), quantity),
                (tree, quantity),
            ),
        }
    }

    fn deeper(&mut self) -> Result<(), Refusal> {
        self.depth += 1;
        match self.depth > DEEPEST {
            true => Err(Refusal::new(
                format!("parentheses lie more than {DEEPEST} deep"),
                "write a shorter expression",
            )),
            false => Ok(()),
        }
    }

    fn number(&mut self, digits: &str) -> Read {
        let is_decimal = self.rest.starts_with('.');
        let places = match is_decimal {
            true => self.word(|letter| letter == '.' || letter.is_ascii_digit()),
            false => "",
        };
        let number = format!("{digits}{places}");
        let unit = self.word(|letter| letter.is_ascii_alphabetic());
        if unit == "per" {
            return self.share_of(&number);
        }
        let (quantity, factor) = match unit {
            "" => (Quantity::Count, 1),
            unit => Quantity::of_unit(unit).ok_or_else(|| {
                let help = warmq_config::did_you_mean(unit, Quantity::units());
                Refusal::new(format!("`{unit}` is not a unit"), help)
            })?,
        };
        if is_decimal && quantity != Quantity::Time {
            let help = "write a whole number, a smaller unit, or a part as in \"0.9 per cpu\"";
            return Err(Refusal::new(
                format!("{number}{unit} is not a whole number"),
                help,
            ));
        }
        let value = times(&number.replace('_', ""), factor.unsigned_abs());
        match value.and_then(|value| i64::try_from(value).ok()) {
            Some(value) => Ok((Tree::Literal(value), quantity)),
            None => Err(no_number(&format!("{number}{unit}"), is_decimal)),
        }
    }

    /// What `number per` is of: `cpu`.
    fn share_of(&mut self, number: &str) -> Read {
        let word = self.word(|letter| letter.is_ascii_alphabetic());
        let Some(resource) = Resource::of_word(word) else {
            let words = Resource::ALL.iter().map(|(_, one, _)| *one);
            let help = warmq_config::did_you_mean(word, words);
            let what = format!("there is no number per `{word}`");
            return Err(Refusal::new(what, help));
        };
        match thousandths(number).filter(|share| *share > 0) {
            Some(share) => Ok((Tree::Per(share, resource), Quantity::Count)),
            None => Err(Refusal::new(
                format!("{number} per {word} is not understood"),
                "write a number above 0 with up to three decimal places",
            )),
        }
    }

    /// What a name stands for; before a parenthesis it is a curve's.
    fn named(&mut self, name: &str) -> Read {
        if self.takes('(') {
            return self.curve(name);
        }
        match self.lookup.find(name) {
            Some(Known::Setting(id, quantity)) => Ok((Tree::Setting(id), quantity)),
            Some(Known::Machine(resource)) => Ok((Tree::Machine(resource), Quantity::Count)),
            Some(Known::Index(slot)) => Ok((Tree::Index(slot), Quantity::Count)),
            Some(Known::Word) => Err(Refusal::new(
                format!("`{name}` is a choice, which is not a number"),
                format!("write when = \"{name} = WORD\" at the steps that depend on it"),
            )),
            None => Err(Refusal::new(
                format!("nothing is called `{name}` here"),
                self.lookup.suggestion(name),
            )),
        }
    }
}

fn no_number(number: &str, is_decimal: bool) -> Refusal {
    match is_decimal {
        true => Refusal::new(
            format!("{number} is not a whole number of ps, or is larger than 63 bits"),
            "write fewer decimal places, as in \"1.5ms\"",
        ),
        false => Refusal::new(
            format!("{number} is larger than 63 bits"),
            "write a smaller number",
        ),
    }
}

/// What the result of an operation counts.
fn result_of(operator: Operator, left: Quantity, right: Quantity) -> Result<Quantity, Refusal> {
    use Quantity::Count;
    match operator {
        Operator::Add | Operator::Subtract | Operator::Remainder if left == right => Ok(left),
        Operator::Multiply if right == Count => Ok(left),
        Operator::Multiply if left == Count => Ok(right),
        Operator::Divide if right == Count => Ok(left),
        Operator::Divide if left == right => Ok(Count),
        Operator::Multiply => Err(mismatch(
            "multiplied by",
            left,
            right,
            "one of them must be a count",
        )),
        Operator::Divide => Err(mismatch(
            "divided by",
            left,
            right,
            "divide by a count or by the same",
        )),
        Operator::Add => Err(mismatch("added to", right, left, SAME)),
        Operator::Subtract => Err(mismatch("subtracted from", right, left, SAME)),
        Operator::Remainder => Err(mismatch("divided by", left, right, SAME)),
    }
}

const SAME: &str = "both must count the same; give both a unit, or neither";

fn mismatch(verb: &str, left: Quantity, right: Quantity, help: &str) -> Refusal {
    let (left, right) = (left.name(), right.name());
    Refusal::new(format!("{left} cannot be {verb} {right}"), help)
}
