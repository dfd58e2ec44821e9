//! What programs count, as their code and their types say.

use warmq_bpf::Object;

const COUNTING: &[u8] = include_bytes!("../../../../lab/sched-ext/tests/programs/counting.bpf.o");

fn counting() -> Object {
    Object::read(COUNTING).expect("an object")
}

fn names(path: &str, enumeration: Option<&str>) -> Vec<String> {
    let counters = counting().counters(path, enumeration).into_iter();
    counters.map(|counter| counter.name).collect()
}

/// Not what is set, what nobody writes, what goes down as well, times, greatest values.
#[test]
fn what_the_code_only_adds_to_is_a_counter() {
    let expected = [
        "by_cpu",
        "by_kind",
        "cpus[].steps",
        "nr_enqueued",
        "nr_ran",
        "own.stops",
        "stats",
        "totals.inner.runs",
    ];
    assert_eq!(counting().counted(), expected);
}

#[test]
fn elements_have_names_by_an_enumeration_or_numbers() {
    assert_eq!(
        names("cpus[cpu].steps", Some("step")),
        ["enqueued", "ran", "stopped", "longest"]
    );
    assert_eq!(
        names("by_kind", None),
        ["by_kind.0", "by_kind.1", "by_kind.2"]
    );
    assert_eq!(names("stats", None), ["stats.0", "stats.1"]);
    assert_eq!(names("stats", Some("step")), ["enqueued", "ran"]);
    assert_eq!(names("totals.inner.runs", None), ["totals.inner.runs"]);
    let many = &counting().counters("by_cpu", None)[..];
    assert_eq!(many.len(), 1, "64 elements are added up");
    assert_eq!((many[0].copies, many[0].size), ((64, 8), 8));
}

/// Of two CPUs: only so many of the elements that each CPU has one of.
#[test]
fn counters_are_written_with_their_maps_and_places() {
    let object = counting();
    let written = |path| {
        let counters = object.counters(path, None);
        object.written(counters.iter(), 2)
    };
    let by_key = written("stats");
    let (first, second) = by_key.split_once(' ').expect("two of them");
    assert_eq!(first.split(':').next(), Some("stats.0"));
    assert_eq!(
        second,
        first
            .replace("stats.0", "stats.1")
            .replace(":8:0:0:", ":8:1:0:")
    );
    for (path, copies) in [("cpus[cpu].steps", "2"), ("cpus[].steps", "8")] {
        let written = written(path);
        let fields: Vec<&str> = written.split(' ').next().unwrap_or("").split(':').collect();
        assert_eq!((fields.len(), fields[6]), (8, copies), "{written}");
    }
}

#[test]
fn what_is_no_counter_has_none() {
    for path in [
        "nothing",
        "cpus",
        "cpus[].nothing",
        "totals",
        "by_cpu[64]",
        "nr_ran[]",
        "",
    ] {
        assert_eq!(names(path, None), [""; 0], "{path}");
    }
    assert_eq!(names("by_kind", Some("no_enumeration")), [""; 0]);
}
