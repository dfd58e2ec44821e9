//! What a reader gets from a document, and what is reported of the rest.

use proptest::prelude::*;
use warmq_config::{Document, Fields, Kind, Problems, Source, Value};
use warmq_units::{Bytes, Duration};

const TEXT: &str = "\
name = \"a\"
size = \"512KB\"
[time]
slice = \"4ms\"
latency_ns = 37.5
[[cpu]]
number = 1
[[cpu]]
number = 2
";

fn document() -> Document {
    Document::parse("trial.toml", TEXT).unwrap()
}

/// All values of [`TEXT`], and a problem for each that is missing or wrong.
fn read(fields: &Fields<'_>) -> Option<(String, Bytes, Duration, u64, Vec<u64>)> {
    let name = fields.required("name", "add name = \"x\"");
    let size = fields.required("size", "add size = \"1KB\"");
    let size = size.and_then(|item| item.bytes());
    let time = fields.required("time", "add a table [time]")?.table()?;
    let slice = time.item("slice").and_then(|item| item.duration());
    let latency = time.item("latency_ns").and_then(|item| item.thousandths());
    time.finish();
    let number = |cpu: &Fields<'_>| {
        let number = cpu.required("number", "add number = 1");
        cpu.finish();
        number?.integer(1..=8)
    };
    let numbers = fields.tables("cpu").iter().map(number).collect();
    fields.finish();
    let numbers: Option<Vec<u64>> = numbers;
    Some((name?.text()?, size?, slice?, latency?, numbers?))
}

fn wrong(document: &Document) -> Vec<String> {
    let problems: Problems = document.read(read).unwrap_err();
    problems.list.iter().map(ToString::to_string).collect()
}

#[test]
fn values_are_read_with_their_units() {
    let slice = Duration::from_ms(4);
    let expected = (
        "a".to_owned(),
        Bytes::from_kb(512),
        slice,
        37_500,
        vec![1, 2],
    );
    assert_eq!(document().read(read), Ok(expected));
}

#[test]
fn one_reading_reports_all_that_is_wrong_in_the_order_of_the_text() {
    let text = TEXT
        .replace("name", "nam")
        .replace("512KB", "512 apples")
        .replace("slice = \"4ms\"", "slise = 4")
        .replace("37.5", "37.12345")
        .replace("number = 2", "number = 9");
    let expected = [
        "trial.toml:1: `name` is missing; add name = \"x\"",
        "trial.toml:1: `nam`: unknown key; did you mean `name`?",
        "trial.toml:2: `size`: \"512 apples\" is not allowed here; write a size such as \"512KB\"",
        "trial.toml:4: `time.slise`: unknown key; did you mean `slice`?",
        "trial.toml:5: `time.latency_ns`: 37.12345 is not allowed here; write a number from 0 with up to three decimal places",
        "trial.toml:9: `cpu[1].number`: 9 is not allowed here; write a whole number from 1 to 8",
    ];
    assert_eq!(
        wrong(&Document::parse("trial.toml", &text).unwrap()),
        expected
    );
}

#[test]
fn an_option_sets_a_value_in_place_of_the_files_or_adds_it() {
    let mut document = document();
    document.set(&["name"], "b c", Source::option("--name", "b c"));
    document.set(
        &["time", "slice"],
        "1s",
        Source::option("--set", "slice=1s"),
    );
    let (name, _, slice, ..) = document.read(read).unwrap();
    assert_eq!((name.as_str(), slice), ("b c", Duration::from_s(1)));

    let mut empty = Document::parse("empty.toml", "").unwrap();
    empty.set(&["a", "b"], "3", Source::option("--set", "a.b=3"));
    let b = empty.read(|root| root.table("a")?.item("b")?.count());
    assert_eq!(b, Ok(3));
}

#[test]
fn what_is_wrong_with_an_option_is_reported_at_the_option() {
    let mut document = document();
    document.set(&["size"], "[1]", Source::option("--set", "size=[1]"));
    document.set(&["nam"], "x", Source::option("--set", "nam=x"));
    let problems = document.read(read).unwrap_err();
    let reported: Vec<(String, &str)> = problems
        .list
        .iter()
        .map(|problem| {
            (
                problem.to_string(),
                &problem.source.text[problem.span.clone()],
            )
        })
        .collect();
    let expected = [
        (
            "--set: `size`: a list is not allowed here; write a size such as \"512KB\"",
            "[1]",
        ),
        ("--set: `nam`: unknown key; did you mean `name`?", "nam=x"),
    ];
    assert_eq!(
        reported,
        expected.map(|(text, place)| (text.to_owned(), place))
    );
}

#[test]
fn a_value_of_a_setting_is_of_its_kind_and_within_its_bounds() {
    let kind = Kind::Bytes {
        min: Bytes::from_kb(64),
        max: Bytes::from_mb(4),
    };
    let of = |text: &str| {
        let document = Document::parse("trial.toml", text).unwrap();
        document.read(|root| root.item("l2")?.value(&kind))
    };
    assert_eq!(of("l2 = \"1MB\""), Ok(Value::Bytes(Bytes::from_mb(1))));
    for text in ["l2 = \"5MB\"", "l2 = 65536", "l2 = true", "l2 = \"much\""] {
        let problem = of(text).unwrap_err().to_string();
        let help = "is not allowed here; write a size from \"64KB\" to \"4MB\"";
        assert!(problem.ends_with(help), "{problem}");
    }
}

/// A series of kernels looks like a number.
#[test]
fn a_word_that_looks_like_a_number_needs_no_quotes() {
    let kind = Kind::Choice(vec!["7.3".to_owned(), "6.18".to_owned()]);
    let of = |text: &str| {
        let document = Document::parse("trial.toml", text).unwrap();
        document.read(|root| root.item("series")?.value(&kind))
    };
    for text in ["series = 6.18", "series = \"6.18\""] {
        assert_eq!(of(text), Ok(Value::Text("6.18".to_owned())));
    }
    assert!(of("series = 6").is_err() && of("series = 6.1").is_err());
}

#[test]
fn a_value_is_recognized_however_it_is_written() {
    let size = Value::Bytes(Bytes::from_mb(1));
    assert!(size.is_written("1MB") && size.is_written("1024 KB"));
    assert!(!size.is_written("1") && !Value::Integer(1).is_written("1MB"));
    assert!(Value::Duration(Duration::from_ms(1)).is_written("1000us"));
}

proptest! {
    #[test]
    fn whatever_the_text_every_problem_has_a_place_in_it(text in "[a-z\\[\\]=\"{}0-9.,\n é-]{0,80}") {
        let read = Document::parse("any.toml", &text).and_then(|document| document.read(read));
        if let Err(problems) = read {
            prop_assert!(!problems.list.is_empty());
            for problem in &problems.list {
                prop_assert!(text.get(problem.span.clone()).is_some(), "{problem:?}");
            }
        }
    }
}
