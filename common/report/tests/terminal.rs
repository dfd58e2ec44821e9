//! What people see in a terminal.

mod sample;

use sample::report;
use warmq_report::{Point, PointValue, Row, Section, Terminal};

const PLAIN: Terminal = Terminal {
    width: 80,
    colors: false,
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

#[test]
fn what_was_asked_for_is_shown_where_it_is_nothing() {
    let row = |metric: &str| Row {
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
    };
    let section = Section {
        together: true,
        rows: vec![row("usual_share"), row("walks")],
        asked_for: ["usual_share".to_owned()].into(),
        ..Section::default()
    };
    let shown = PLAIN.section(&section);
    assert!(shown.contains("usual_share"), "{shown}");
    assert!(!shown.contains("walks"), "{shown}");
}
