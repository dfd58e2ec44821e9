//! Expressions give what another evaluator gives, and draws are the same every time.

use proptest::prelude::*;
use warmq_config::Chosen;
use warmq_scenario::{Action, Amount, Bound, Scenario, Site, TaskKindId};
use warmq_units::Seed;

/// The values of the index `i` for which the reader evaluates: those of the first and last task.
const INDEXES: [u64; 2] = [0, 3];

/// A value in 128 bits, or why it has none in 64.
type Expected = Result<i128, &'static str>;

/// The longest time of a scenario, a million seconds.
const MOST_PS: i128 = 1_000_000_000_000_000_000;

/// An expression, and what it gives for each of [`INDEXES`].
#[derive(Clone, Debug)]
struct Sample {
    text: String,
    values: [Expected; 2],
}

fn constant(text: &str, value: i64) -> Sample {
    let values = [Ok(value.into()); 2];
    let text = text.to_owned();
    Sample { text, values }
}

fn in_64_bits(value: i128) -> Expected {
    i64::try_from(value)
        .map(i128::from)
        .map_err(|_| "the result is larger than 63 bits")
}

/// Division rounds down, and a remainder has the sign of the divisor.
fn applied(left: Expected, operator: char, right: Expected) -> Expected {
    let (left, right) = (left?, right?);
    let (dividend, divisor) = (left * right.signum(), right.abs());
    match operator {
        '+' => in_64_bits(left + right),
        '-' => in_64_bits(left - right),
        '*' => in_64_bits(left * right),
        _ if right == 0 => Err("this divides by zero"),
        '/' => in_64_bits(dividend.div_euclid(divisor)),
        _ => in_64_bits(right.signum() * dividend.rem_euclid(divisor)),
    }
}

/// `value` as a time; `Err` if it is refused.
fn as_time(value: Expected) -> Expected {
    match value? {
        ..0 => Err("the result is negative"),
        value if value > MOST_PS => Err("the result is more than 1000000s"),
        value => Ok(value),
    }
}

/// The curve of [`running`], whose slope is 7 / 3 and then -1.
fn curve(place: Expected) -> Expected {
    Ok(match place? {
        ..2 => 1,
        place @ 2..8 => 1 + (7 * (place - 2)).div_euclid(3),
        place @ 8..20 => 15 - (place - 8),
        _ => 3,
    })
}

fn sample() -> impl Strategy<Value = Sample> {
    let literal = prop_oneof![4 => 0..20_i64, 1 => 0..=i64::MAX];
    let index = Sample {
        text: "i".to_owned(),
        values: INDEXES.map(|index| Ok(index.into())),
    };
    let leaf = prop_oneof![
        literal.prop_map(|value| constant(&value.to_string(), value)),
        Just(constant("seven", 7)),
        Just(index),
    ];
    leaf.prop_recursive(5, 40, 2, |inner| {
        let operators = prop::sample::select(vec!['+', '-', '*', '/', '%']);
        let placed = inner.clone().prop_map(|place| Sample {
            text: format!("bent({})", place.text),
            values: place.values.map(curve),
        });
        let applied =
            (inner.clone(), operators, inner).prop_map(|(left, operator, right)| Sample {
                text: format!("({} {operator} {})", left.text, right.text),
                values: [0, 1].map(|at| applied(left.values[at], operator, right.values[at])),
            });
        prop_oneof![4 => applied, 1 => placed]
    })
}

/// A scenario of four tasks, which run for `amount`.
fn running(amount: &str) -> String {
    let body = format!("[{{ run = \"1ms\" }}, {{ run = {amount} }}]");
    let curve = "[curve.bent]\npoints = [[2, 1], [8, 15], [20, 3]]\n";
    format!("[settings]\nseven = 7\n{curve}[task.t]\nfor = {{ i = 4 }}\nbody = {body}\n")
}

fn amount(scenario: &Scenario) -> &Amount {
    match &scenario.task(TaskKindId(0)).body[1].action {
        Action::Run(amount) => amount,
        other => panic!("{other:?}"),
    }
}

fn bound(scenario: &Scenario) -> Bound {
    let defaults = Chosen::new(scenario.settings(), Default::default()).expect("none is chosen");
    scenario
        .bind(&defaults, &Site::default())
        .expect("it was read")
}

fn drawn(text: &str, seed: u64, draws: usize) -> Vec<u64> {
    let scenario = Scenario::read("s.toml", text).expect("a scenario");
    let (bound, amount) = (bound(&scenario), amount(&scenario));
    let mut stream = amount.stream.stream(Seed(seed), TaskKindId(0), 3);
    let draw = |_| bound.draw(amount, &[3], &mut stream).expect("a draw");
    (0..draws).map(draw).collect()
}

proptest! {
    #[test]
    fn an_expression_has_the_value_that_another_evaluator_gives(sample in sample()) {
        let read = Scenario::read("s.toml", &running(&format!("\"{} * 1ps\"", sample.text)));
        let expected = sample.values.map(as_time);
        if let Some(why) = expected.iter().find_map(|value| value.err()) {
            let refused = read.expect_err("it has no value").to_string();
            prop_assert!(refused.contains(why), "{refused}");
            return Ok(());
        }
        let scenario = read.map_err(|problems| TestCaseError::fail(problems.to_string()))?;
        let (bound, mut stream) = (bound(&scenario), Seed(0).stream("of a constant"));
        for (index, expected) in INDEXES.into_iter().zip(expected) {
            let value = bound.draw(amount(&scenario), &[index], &mut stream).expect("a value");
            prop_assert_eq!(Ok(i128::from(value)), expected);
        }
    }

    #[test]
    fn a_decimal_is_the_time_that_it_is_everywhere_else(
        whole in 0..1_000_000_u64,
        part in "[0-9]{1,12}",
        unit in prop::sample::select(vec!["s", "ms", "us", "ns"]),
    ) {
        let text = format!("{whole}.{part}{unit}");
        let elsewhere = text.parse::<warmq_units::Duration>().ok();
        let read = Scenario::read("s.toml", &running(&format!("\"{text}\"")));
        let here = read.ok().map(|scenario| {
            let mut stream = Seed(0).stream("of a constant");
            bound(&scenario).draw(amount(&scenario), &[0], &mut stream).expect("a value")
        });
        prop_assert_eq!(here, elsewhere.map(|span| span.0), "{}", text);
    }

    #[test]
    fn an_even_draw_lies_between_its_ends_and_has_their_mean(low in 0..1_000_000_u64, width in 0..1_000_000_u64) {
        let high = low + width;
        let draws = drawn(&running(&format!("{{ uniform = [\"{low}ns\", \"{high}ns\"] }}")), 7, 20_000);
        prop_assert!(draws.iter().all(|draw| (low * 1_000..=high * 1_000).contains(draw)));
        let mean = draws.iter().sum::<u64>() / 20_000;
        // The standard deviation of the mean is 0.2 % of the width.
        let error = mean.abs_diff((low + high) * 500);
        prop_assert!(error * 50 <= width * 1_000, "{mean}");
    }
}

#[test]
fn draws_are_the_same_every_time_and_on_every_machine() {
    let ways = [
        "{ uniform = [\"1ms\", \"3ms\"] }",
        "{ exponential = \"2ms\" }",
        "{ pareto = \"1ms\", shape = \"1.5\" }",
        "{ among = [\"1ms\", \"5ms\"], stream = \"sizes\" }",
    ];
    let told: Vec<String> = ways
        .iter()
        .map(|way| format!("{way}: {:?}", drawn(&running(way), 1, 5)))
        .collect();
    insta::assert_snapshot!(told.join("\n"));
    assert_ne!(
        drawn(&running(ways[1]), 1, 5),
        drawn(&running(ways[1]), 2, 5)
    );
}
