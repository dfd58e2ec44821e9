//! What the page holds, and what it must never hold.

use std::collections::BTreeSet;

use proptest::prelude::*;
use warmq_report::{
    Axis, Kind, Origin, Plot, PlotPoint, Report, Scale, Section, Series, VerticalLine, X,
    write_html,
};

use crate::sample::report;

fn page(report: &Report) -> String {
    let mut page = Vec::new();
    write_html(report, &mut page).expect("a vector takes everything");
    String::from_utf8(page).expect("text")
}

/// The values of every attribute `name` in the page.
fn attributes<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!(" {name}=\"");
    let after = page.split(start.as_str()).skip(1);
    after
        .map(|rest| rest.split('"').next().unwrap_or_default())
        .collect()
}

/// The page without its style sheet and script, one element a line.
fn body(page: &str) -> String {
    let body = page.split_once("<body>").expect("a body").1;
    let body = body.split_once("<script>").expect("a script").0;
    body.replace("><", ">\n<")
}

#[test]
fn the_page_shows_the_whole_report() {
    insta::assert_snapshot!(body(&page(&report())));
}

#[test]
fn the_page_asks_the_network_for_nothing() {
    let page = page(&report());
    // The library that zooms says in a comment where it comes from.
    let page = page.replace("/*! https://github.com/leeoniya/uPlot ", "/*! ");
    for reference in [
        "http:", "https:", "@import", "url(", " src=", "<iframe", "fetch(",
    ] {
        assert!(!page.contains(reference), "{reference}");
    }
    for link in attributes(&page, "href") {
        assert!(link.starts_with('#') || link == "data:,", "{link}");
    }
    assert!(page.contains("default-src &#39;none&#39;") || page.contains("default-src 'none'"));
}

#[test]
fn every_link_leads_to_one_place() {
    let mut report = report();
    let mut twin = report.sections[0].clone();
    report.sections.push(twin.clone());
    twin.id = "summary".into();
    report.sections.push(twin.clone());
    twin.id = "\"><b>".into();
    report.sections.push(twin);
    let page = page(&report);
    let ids = attributes(&page, "id");
    let distinct: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), distinct.len(), "{ids:?}");
    let links = attributes(&page, "href")
        .into_iter()
        .filter_map(|link| link.strip_prefix('#'));
    for link in links {
        assert!(distinct.contains(link), "{link}");
    }
    assert_eq!(distinct.len(), report.sections.len() + 2);
}

#[test]
fn words_of_a_report_are_never_markup() {
    let evil = "<script>alert(1)</script>\"'&";
    let mut report = report();
    report.title = evil.into();
    report.command = evil.into();
    for section in &mut report.sections {
        section.title = evil.into();
        section.notes = vec![evil.into()];
        for row in &mut section.rows {
            row.metric = evil.into();
        }
        for plot in &mut section.plots {
            plot.title = evil.into();
            plot.x.label = evil.into();
            plot.series[0].name = evil.into();
            plot.series[0].points[0].x = X::Category(evil.into());
            plot.markers = vec![VerticalLine {
                x: 1.0,
                label: evil.into(),
            }];
        }
    }
    let page = page(&report);
    assert_eq!(page.matches("<script>").count(), 2, "only our own");
    assert!(!page.contains("alert(1)</"));
}

#[test]
fn every_plot_is_described_to_those_who_cannot_see_it() {
    let page = page(&report());
    let plots = page.matches("role=\"img\"").count();
    assert_eq!(plots, 4, "two plots, each for wide and for narrow screens");
    let labels = attributes(&page, "aria-label")
        .into_iter()
        .filter(|label| label.starts_with("Plot."));
    assert_eq!(labels.count(), plots);
}

#[test]
fn plots_of_many_points_have_their_values_for_those_who_zoom() {
    let mut report = report();
    let (zoom, values) = ("new uPlot(", "<script class=\"points\"");
    assert!(
        !page(&report).contains(zoom),
        "no script where nothing is zoomed"
    );
    let lines = |plot: &&mut Plot| plot.kind == Kind::Lines;
    let plots = report
        .sections
        .iter_mut()
        .flat_map(|section| &mut section.plots);
    let plot = plots.into_iter().find(lines).expect("a plot of lines");
    let point = |x: f64| PlotPoint {
        x: X::Number(x),
        y: 2.0 * x,
        low: x,
        high: 3.0 * x,
    };
    plot.series[0].points = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(point).into();
    plot.series[0].name = "</script><b>alert(1)".into();
    let page = page(&report);
    assert_eq!(page.matches(values).count(), 1);
    assert!(page.contains("[2.0,4.0,2.0,6.0]") && page.contains(zoom));
    assert!(!page.contains("</script><b>"), "a name ends no script");
}

#[test]
fn a_long_report_stays_below_five_megabytes() {
    let bins = (0..256).map(|bin| PlotPoint::exact(X::Number(f64::from(bin) * 16.0), 1234.5));
    let series = |name: &str| Series {
        name: name.into(),
        origin: Origin::Simulated,
        points: bins.clone().collect(),
    };
    let plot = Plot {
        kind: Kind::Histogram,
        series: vec![series("vanilla"), series("32 colors")],
        ..Plot::default()
    };
    let section = |index: i32| Section {
        id: format!("section {index}"),
        plots: vec![plot.clone()],
        ..Section::default()
    };
    let report = Report {
        sections: (0..16).map(section).collect(),
        ..Report::default()
    };
    assert!(page(&report).len() < 5_000_000);
}

/// As of a part of a sweep that no claim is about.
#[test]
fn a_page_where_nothing_was_checked_does_not_say_that_all_is_well() {
    let section = Section {
        id: "part".into(),
        ..Section::default()
    };
    let text = body(&page(&Report {
        sections: vec![section],
        ..Report::default()
    }));
    assert!(text.contains("No claim was checked"), "{text}");
    assert!(!text.contains("holds"), "{text}");
}

#[test]
fn what_is_nobody_elses_has_no_summary_of_claims_and_its_sections_count_from_one() {
    let section = Section {
        id: "part".into(),
        ..Section::default()
    };
    let text = page(&Report {
        own: true,
        sections: vec![section],
        ..Report::default()
    });
    assert!(!text.contains("Summary"), "{text}");
    assert!(text.contains("href=\"#part\""), "{text}");
}

#[test]
fn points_have_no_line_and_no_zero_beside_them() {
    let of = |kind| {
        let points = [(0.89, 1.5), (0.9, 1.6), (0.91, 1.7)];
        let points = points.map(|(x, y)| PlotPoint::exact(x.into(), y));
        let series = Series {
            name: "mine".into(),
            points: points.into(),
            ..Series::default()
        };
        let plot = Plot {
            kind,
            series: vec![series],
            ..Plot::default()
        };
        page(&Report {
            sections: vec![Section {
                plots: vec![plot],
                ..Section::default()
            }],
            ..Report::default()
        })
    };
    let thick = |page: &str| page.matches("stroke-width=\"22\"").count();
    let (lines, points) = (of(Kind::Lines), of(Kind::Points));
    assert!(thick(&points) < thick(&lines), "{points}");
    // A tick of an axis from 0 on, and one of an axis that has the values alone.
    let has = |page: &str, tick: &str| page.lines().any(|line| line == tick);
    assert!(has(&lines, "0.5") && !has(&lines, "1.6"), "{lines}");
    assert!(has(&points, "1.6") && !has(&points, "0.5"), "{points}");
}

#[test]
fn an_empty_report_is_a_page_too() {
    assert!(page(&Report::default()).contains("Summary"));
}

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => -1e3..1e6f64,
        2 => -1e-9..1e-9f64,
        1 => prop::sample::select(vec![0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300]),
    ]
}

fn plot() -> impl Strategy<Value = Plot> {
    let x = prop_oneof![value().prop_map(X::Number), "[a-c]".prop_map(X::Category)];
    let point =
        (x, value(), value(), value()).prop_map(|(x, y, low, high)| PlotPoint { x, y, low, high });
    let origin = prop::sample::select(vec![Origin::Simulated, Origin::Published, Origin::Measured]);
    let series =
        ("[a-b]", origin, prop::collection::vec(point, 0..6)).prop_map(|(name, origin, points)| {
            Series {
                name,
                origin,
                points,
            }
        });
    let scale = || prop::sample::select(vec![Scale::Linear, Scale::Log2, Scale::Log10]);
    let kind = prop::sample::select(vec![Kind::Lines, Kind::Bars, Kind::Histogram]);
    let markers = prop::collection::vec(value(), 0..3);
    let parts = (
        kind,
        scale(),
        scale(),
        any::<bool>(),
        prop::collection::vec(series, 0..4),
        markers,
    );
    parts.prop_map(|(kind, x, y, hexadecimal, series, markers)| Plot {
        kind,
        x: Axis {
            hexadecimal,
            ..Axis::linear("x", "").on(x)
        },
        y: Axis::linear("y", "%").on(y),
        series,
        markers: markers
            .into_iter()
            .map(|x| VerticalLine {
                x,
                label: "here".into(),
            })
            .collect(),
        ..Plot::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever the figures are, there is a plot, and every coordinate in it lies on the sheet.
    #[test]
    fn any_figures_make_a_plot(plot in plot()) {
        let section = Section { id: "a".into(), plots: vec![plot], ..Section::default() };
        let page = page(&Report { sections: vec![section], ..Report::default() });
        for name in ["x", "y", "x1", "x2", "y1", "y2", "width", "height"] {
            for number in attributes(&page, name) {
                let number: f64 = number.parse().unwrap();
                prop_assert!((-1.0..=8000.0).contains(&number), "{name} = {number}");
            }
        }
    }
}
