//! The table `law`, which a scenario has that schedulers are held to. `warmq-law` reads it; what it
//! means is in docs/laws/own.md.

use super::json::{Json, texts};
use super::{any_of, described, one_or_more, refer};

const FAMILIES: [&str; 8] = [
    "shares",
    "starvation",
    "latency",
    "quota",
    "mixes",
    "work conservation",
    "locality",
    "robustness",
];

pub(super) fn law() -> Json {
    let text = |what: &str| described("string", what);
    let family = text("What it is about; the matrix is in this order.");
    let skip = ["lab", "guest", "host"].map(|world| (world, text("Why it says nothing there.")));
    let properties = Json::from([
        ("family", family.with("enum", texts(FAMILIES))),
        (
            "because",
            text("Why a decent scheduler keeps the bounds, by theory."),
        ),
        (
            "machine",
            text("The machine: its description's name [default: small-4llc]."),
        ),
        (
            "cpus",
            described("integer", "How many of its CPUs are used [default: 2]."),
        ),
        (
            "counted",
            described(
                "boolean",
                "True if it asks only where tasks run and what they get over seconds: guests of \
                 any number of CPUs then count instructions.",
            ),
        ),
        ("warmup", refer("time")),
        ("time", refer("time")),
        ("skip", object(Json::from(skip))),
        (
            "broken_by",
            text("A fault of the lab's scheduler `broken` under which it is broken."),
        ),
        ("bound", one_or_more(bound())),
    ]);
    object(properties).with("required", texts(["family", "because", "bound"]))
}

fn object(properties: Json) -> Json {
    Json::from([
        ("type", "object".into()),
        ("properties", properties),
        ("additionalProperties", false.into()),
    ])
}

/// A figure and how large or small it may be.
fn bound() -> Json {
    let what = "A number in the figure's unit, a time (\"8ms\"), or a part of another figure \
                (\"60 % of NAME\").";
    let limit = || {
        let kinds = ["number", "string"].map(|kind| Json::from([("type", kind.into())]));
        any_of(kinds).with("description", what)
    };
    let releases = Json::from([("pattern", r"^\d+\.\d+$".into())]);
    let since = Json::from([
        ("type", "object".into()),
        ("propertyNames", releases),
        ("additionalProperties", limit()),
    ]);
    let since = since.with(
        "description",
        "The limit of the kernel's own scheduler, by the release of Linux that it begins with.",
    );
    let figure = "A figure that `warmq metrics FILE` lists, or PHASE.FIGURE.";
    object(Json::from([
        ("figure", described("string", figure)),
        ("at_least", limit()),
        ("at_most", limit()),
        ("since", since),
    ]))
    .with("required", texts(["figure"]))
}
