//! What people see in a terminal.

mod sample;

use sample::report;
use warmq_report::Terminal;

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
