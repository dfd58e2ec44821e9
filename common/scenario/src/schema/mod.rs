//! A JSON schema of the language, by which editors complete and check scenarios.
//!
//! Key decision: it is generated. Verbs, kinds of objects and units come from the tables by which
//! the reader reads, keys from [`keys`]. The schema accepts whatever the reader accepts; what only
//! the whole of a scenario shows (names, units within expressions, who waits for whom) it leaves to
//! the reader.

mod json;
mod law;
mod single;
mod tests;

use self::json::{Json, texts};
use crate::keys::{self, Key, Kind};
use crate::object::Class;
use crate::quantity::Quantity;
use crate::read::VERBS;
use crate::site::Resource;

const NAME: &str = "^[A-Za-z][A-Za-z0-9_-]*$";
const IDENTIFIER: &str = "^[A-Za-z][A-Za-z0-9_]*$";

/// The JSON schema (draft 7) of scenarios, as the text of a file.
fn schema() -> String {
    let mut top = properties(single::TOP);
    top.push(("settings".to_owned(), named(IDENTIFIER, refer("setting"))));
    let curve = table(&[single::CURVE]);
    top.push(("curve".to_owned(), named(IDENTIFIER, curve)));
    for class in Class::ALL {
        let objects = named(NAME, table(&[keys::MANY, keys::of_class(class)]));
        top.push((class.name().to_owned(), objects));
    }
    let task = table(&[keys::MANY, keys::TASK]);
    top.push(("task".to_owned(), named(NAME, task)));
    top.push(("change".to_owned(), one_or_more(refer("change"))));
    top.push(("phase".to_owned(), one_or_more(table(&[keys::PHASE]))));
    top.push(("law".to_owned(), law::law()));
    let schema = Json::from([
        ("$schema", "http://json-schema.org/draft-07/schema#".into()),
        ("title", "A scenario of WarmQ".into()),
        (
            "description",
            "A workload as data: what there is, who does what, what can be set, what changes \
             meanwhile."
                .into(),
        ),
        ("type", "object".into()),
        ("properties", Json::Object(top)),
        ("required", texts(["task"])),
        ("additionalProperties", false.into()),
        ("definitions", definitions()),
    ]);
    format!("{schema}\n")
}

/// What other places refer to.
fn definitions() -> Json {
    let step = VERBS.iter().map(|verb| {
        let step = table(&[&verb.key, verb.keys, keys::WHEN]);
        step.with("title", verb.key[0].name)
    });
    let step: Vec<Json> = step.collect();
    Json::from([
        ("count", count()),
        ("time", expression("a time, as in \"10ms\"")),
        ("size", expression("a size, as in \"4KB\"")),
        ("amountOfTime", amount("a time, as in \"10ms\"")),
        (
            "amountOfWork",
            amount("a time or cycles, as in \"10ms\" or \"2000 cycles\""),
        ),
        (
            "place",
            pattern(r"^\s*(all|cpus?|llc|node|socket|core|part)\b", PLACE),
        ),
        (
            "policy",
            pattern(
                r"^\s*(normal|batch|idle|(fifo|rr)\s+\S+|deadline(\s+\S+){2,3})\s*$",
                POLICY,
            ),
        ),
        (
            "rate",
            pattern(
                r"\sper\s+[a-z]+\s*$",
                "A number and a unit of time: \"5000 per s\".",
            ),
        ),
        ("percent", pattern(r"%\s*$", "A part: \"25%\".")),
        (
            "reference",
            pattern(
                r"^\s*[A-Za-z][A-Za-z0-9_-]*\s*(\[[\s\S]*\])?\s*(\.(near|far))?\s*$",
                "NAME, or NAME[0] for one of many; .near or .far for an end of a stream.",
            ),
        ),
        ("setting", setting()),
        ("change", change()),
        ("step", Json::from([("anyOf", step.into())])),
    ])
}

const PLACE: &str = "\"all\", \"cpu 3\", \"cpus 0-3,8\", \"llc 0\", \"node 1\", \"socket 1\", \
                     \"core 2\", \"part 0 of 2\"; a number may be an expression in parentheses.";
const POLICY: &str = "\"normal\", \"batch\", \"idle\", \"fifo 50\" or \"rr 50\" with a priority, or \"deadline 1ms 5ms\" with a runtime, a \
     deadline (or none: the period) and a period.";

fn described(kind: &str, what: impl Into<Json>) -> Json {
    Json::from([("type", kind.into()), ("description", what.into())])
}

fn pattern(pattern: &str, what: &str) -> Json {
    described("string", what).with("pattern", pattern)
}

fn refer(definition: &str) -> Json {
    Json::from([("$ref", format!("#/definitions/{definition}").into())])
}

fn any_of(kinds: impl IntoIterator<Item = Json>) -> Json {
    let kinds: Vec<Json> = kinds.into_iter().collect();
    Json::from([("anyOf", kinds.into())])
}

/// The names that an expression may use beside settings and indexes.
fn count() -> Json {
    let numbers: Vec<&str> = Resource::ALL.iter().map(|(.., number)| *number).collect();
    let words: Vec<&str> = Resource::ALL.iter().map(|(_, word, _)| *word).collect();
    let what = format!(
        "A count: a whole number or an expression of numbers, settings, indexes and {}; or so many \
         per {}, as in \"0.9 per cpu\".",
        numbers.join(", "),
        words.join(", ")
    );
    let kinds = [("type", "integer"), ("type", "string")];
    any_of(kinds.map(|(key, kind)| Json::from([(key, kind.into())]))).with("description", what)
}

fn expression(what: &str) -> Json {
    let units: Vec<&str> = Quantity::units().collect();
    let what = format!("An expression that is {what}. Units: {}.", units.join(", "));
    described("string", what)
}

/// An expression, or a table that says how it is drawn.
fn amount(what: &str) -> Json {
    let value = || any_of([Json::from([("type", "string".into())])]);
    let values = || described("array", "Expressions.").with("items", value());
    let stream = || described("string", "The seeded stream, shared by all who name it.");
    let drawn = |key: &str, of: Json, more: Vec<(String, Json)>| {
        let mut properties = vec![(key.to_owned(), of), ("stream".to_owned(), stream())];
        let required = more.iter().map(|(key, _)| key.as_str());
        let required = texts(std::iter::once(key).chain(required));
        properties.extend(more);
        Json::from([
            ("type", "object".into()),
            ("properties", Json::Object(properties)),
            ("required", required),
            ("additionalProperties", false.into()),
        ])
    };
    let shape = any_of([
        Json::from([("type", "number".into())]),
        Json::from([("type", "string".into())]),
    ]);
    any_of([
        expression(what),
        drawn("uniform", values(), Vec::new()),
        drawn("exponential", value(), Vec::new()),
        drawn("pareto", value(), vec![("shape".to_owned(), shape)]),
        drawn("among", values(), Vec::new()),
    ])
}

fn setting() -> Json {
    any_of([
        kind(Kind::Value),
        table(&[single::SETTING]).with("description", "What can be set, and to what."),
    ])
}

fn change() -> Json {
    let of_target = |(target, sets): &(Key, &[Key])| {
        let set = table(&[sets]).with("description", "What is set.");
        let mut properties = properties(single::AT);
        properties.push((target.name.to_owned(), property(target)));
        properties.push(("set".to_owned(), set));
        Json::from([
            ("type", "object".into()),
            ("properties", Json::Object(properties)),
            ("required", texts([target.name, "set"])),
            ("additionalProperties", false.into()),
        ])
    };
    let targets = keys::TARGETS.iter().map(of_target);
    any_of(targets.chain([table(&[single::AT, single::SCHEDULER])]))
}

/// A table with these keys.
fn table(keys: &[&[Key]]) -> Json {
    let all = || keys.iter().copied().flatten();
    let properties: Vec<(String, Json)> = keys.iter().flat_map(|keys| properties(keys)).collect();
    let required = all()
        .filter(|key| key.missing.is_some())
        .map(|key| key.name);
    Json::from([
        ("type", "object".into()),
        ("properties", Json::Object(properties)),
        ("required", texts(required)),
        ("additionalProperties", false.into()),
    ])
}

fn properties(keys: &[Key]) -> Vec<(String, Json)> {
    let keys = keys.iter();
    keys.map(|key| (key.name.to_owned(), property(key)))
        .collect()
}

/// What a key's value is. Beside a reference other members would not count: it is wrapped.
fn property(key: &Key) -> Json {
    let kind = kind(key.kind);
    Json::from([
        ("description", key.what.into()),
        ("allOf", vec![kind].into()),
    ])
}

/// A table of tables whose names match `names`.
fn named(names: &str, inner: Json) -> Json {
    Json::from([
        ("type", "object".into()),
        ("propertyNames", Json::from([("pattern", names.into())])),
        ("additionalProperties", inner),
    ])
}

/// An array of tables, or a single one.
fn one_or_more(inner: Json) -> Json {
    let list = Json::from([("type", "array".into()), ("items", inner.clone())]);
    any_of([list, inner])
}

fn kind(kind: Kind) -> Json {
    let of_type = |name: &str| Json::from([("type", name.into())]);
    match kind {
        Kind::Count => refer("count"),
        Kind::Time => refer("time"),
        Kind::Size => refer("size"),
        Kind::AmountOfTime => refer("amountOfTime"),
        Kind::AmountOfWork => refer("amountOfWork"),
        Kind::Place => refer("place"),
        Kind::Policy => refer("policy"),
        Kind::Rate => refer("rate"),
        Kind::Percent => refer("percent"),
        Kind::Object(_) | Kind::Cgroup | Kind::Task | Kind::Span => refer("reference"),
        Kind::Fragment => any_of([of_type("integer"), of_type("string")]),
        Kind::Pattern => pattern(
            r"^(sequential|random|stride [\s\S]+)$",
            "\"sequential\", \"random\", or \"stride 8\" for every eighth line.",
        ),
        Kind::When => pattern("=", "SETTING = WORD"),
        Kind::Text => of_type("string"),
        Kind::Flag => of_type("boolean"),
        Kind::Switch => any_of([of_type("boolean"), of_type("string")]),
        Kind::True => Json::from([("enum", vec![true.into()].into())]),
        Kind::Words(words) => Json::from([("enum", texts(words.iter().copied()))]),
        Kind::Steps => Json::from([("type", "array".into()), ("items", refer("step"))]),
        Kind::NamedSteps => named(IDENTIFIER, refer("step")),
        Kind::NamedTasks => named(IDENTIFIER, refer("reference")),
        Kind::Indexes => named(IDENTIFIER, refer("count")),
        Kind::Value => any_of(["integer", "string", "boolean"].map(of_type)),
        Kind::Points => {
            let point = Json::from([("type", "array".into()), ("items", of_type("integer"))]);
            Json::from([("type", "array".into()), ("items", point)])
        }
        Kind::ListOfWords => Json::from([("type", "array".into()), ("items", of_type("string"))]),
    }
}
