//! What people see in a terminal.

use warmq_report::{Point, PointValue, Row, Section, Terminal};

use crate::sample::report;

const PLAIN: Terminal = Terminal {
    width: 80,
    colors: false,
    all: false,
};

#[test]
fn a_section_shows_ours_beside_published_and_every_claim() {
    insta::assert_snapshot!(PLAIN.section(&report().sections[0]));
}

#[test]
fn the_summary_counts_claims_and_cells() {
    insta::assert_snapshot!(PLAIN.summary(&report()));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let narrow = Terminal {
        width: 44,
        colors: false,
        all: false,
    };
    let section = narrow.section(&report().sections[0]);
    let tables = section
        .lines()
        .skip(1)
        .filter(|line| !line.starts_with("ours ("));
    for line in tables {
        assert!(line.chars().count() <= 44, "{line}");
    }
}

#[test]
fn colors_are_for_terminals_only() {
    let colored = Terminal {
        colors: true,
        ..PLAIN
    };
    assert!(colored.summary(&report()).contains('\u{1b}'));
    assert!(!PLAIN.summary(&report()).contains('\u{1b}'));
    assert!(!PLAIN.section(&report().sections[0]).contains('\u{1b}'));
}

/// A figure of the lab that is 0.
fn row(metric: &str) -> Row {
    Row {
        experiment: "e".to_owned(),
        point: Point(vec![(
            "world".to_owned(),
            PointValue::Text("lab".to_owned()),
        )]),
        metric: metric.to_owned(),
        value: 0.0,
        unit: "%".to_owned(),
        low: 0.0,
        high: 0.0,
        published: None,
        calibration: false,
    }
}

#[test]
fn what_was_asked_for_is_shown_where_it_is_nothing() {
    let section = Section {
        together: true,
        rows: vec![row("usual_share"), row("walks")],
        asked_for: ["usual_share".to_owned()].into(),
        ..Section::default()
    };
    for all in [true, false] {
        let shown = Terminal { all, ..PLAIN }.section(&section);
        assert!(shown.contains("usual_share"), "{shown}");
        assert!(!shown.contains("walks"), "{shown}");
    }
}

#[test]
fn what_nobody_asked_for_is_counted_or_shown_where_all_is_wanted() {
    let row = |metric: &str, value: f64| Row {
        value,
        ..row(metric)
    };
    let section = Section {
        together: true,
        rows: vec![row("share", 1.0), row("walks", 2.0), row("locks", 0.0)],
        asked_for: ["share".to_owned()].into(),
        ..Section::default()
    };
    let few = PLAIN.section(&section);
    assert!(!few.contains("walks"), "{few}");
    assert!(
        few.contains("… and 1 more figure: --all shows them"),
        "{few}"
    );
    let all = Terminal { all: true, ..PLAIN }.section(&section);
    assert!(all.contains("walks") && !all.contains("--all"), "{all}");
    let nothing = Section {
        asked_for: Default::default(),
        ..section
    };
    assert!(PLAIN.section(&nothing).contains("walks"));
}

#[test]
fn a_row_of_an_experiment_without_points_is_called_by_its_metric() {
    assert_eq!(row("walks").place(), "walks at world = lab");
    let point = Point(Vec::new());
    assert_eq!(
        Row {
            point,
            ..row("walks")
        }
        .place(),
        "walks"
    );
}
