//! A small made-up report for tests.

use warmq_report::{
    Axis, Digest, Fact, Kind, Label, Origin, Parameter, Plot, PlotPoint, Point, PointValue, Report,
    Row, Scale, Section, Series, Verdict, VerticalLine, X,
};

/// A row with an interval of 1 around its value.
pub fn row<const N: usize>(
    point: [(&str, PointValue); N],
    (metric, unit): (&str, &str),
    value: f64,
    published: Option<f64>,
) -> Row {
    Row {
        experiment: "table2".into(),
        point: Point::new(point),
        metric: metric.into(),
        value,
        unit: unit.into(),
        low: value - 1.0,
        high: value + 1.0,
        published,
        calibration: false,
    }
}

/// Two cache sizes, vanilla and 32 colors: a calibrated cell, two that agree, one that is off.
pub fn rows() -> Vec<Row> {
    let misses = ("walk_miss_ratio", "%");
    let cell = |l2: &str, colors: i64, value, published| {
        row(
            [("l2", l2.into()), ("colors", colors.into())],
            misses,
            value,
            published,
        )
    };
    vec![
        Row {
            calibration: true,
            ..cell("512 KB", 1, 99.5, Some(99.6))
        },
        cell("512 KB", 32, 51.25, Some(35.8)),
        cell("1024 KB", 1, 98.75, Some(99.5)),
        cell("1024 KB", 32, 8.5, None),
    ]
}

fn series(name: &str, origin: Origin, values: &[(X, f64)]) -> Series {
    let point = |(x, y): &(X, f64)| PlotPoint {
        x: x.clone(),
        y: *y,
        low: y - 1.0,
        high: y + 1.0,
    };
    Series {
        name: name.into(),
        origin,
        points: values.iter().map(point).collect(),
    }
}

fn bars() -> Plot {
    Plot {
        title: "Misses".into(),
        x: Axis::linear("L2 cache", ""),
        y: Axis::linear("L2 miss ratio", "%"),
        kind: Kind::Bars,
        series: vec![
            series(
                "32 colors",
                Origin::Simulated,
                &[("512 KB".into(), 51.25), ("1024 KB".into(), 8.5)],
            ),
            series("32 colors", Origin::Published, &[("512 KB".into(), 35.8)]),
        ],
        markers: vec![],
        caption: "Colors help.".into(),
    }
}

fn lines() -> Plot {
    Plot {
        title: "Time a visit".into(),
        x: Axis::linear("Blocks", "").on(Scale::Log2),
        y: Axis::linear("Time a visit", "ns"),
        kind: Kind::Lines,
        series: vec![
            series(
                "vanilla",
                Origin::Simulated,
                &[(256.0.into(), 8.0), (512.0.into(), 17.0)],
            ),
            series(
                "vanilla",
                Origin::Measured,
                &[(256.0.into(), 8.3), (512.0.into(), 16.7)],
            ),
        ],
        markers: vec![VerticalLine {
            x: 256.0,
            label: "equation 3".into(),
        }],
        caption: String::new(),
    }
}

/// A report with two sections, one of them without rows.
pub fn report() -> Report {
    let misses = Section {
        id: "table2".into(),
        title: "Cache misses of the walk".into(),
        paper: "Table 2".into(),
        shows: "Colors keep the run queue in the cache.".into(),
        plots: vec![bars()],
        rows: rows(),
        labels: vec![Label {
            key: "colors".into(),
            value: 1.into(),
            text: "vanilla".into(),
        }],
        verdicts: vec![
            Verdict {
                statement: "Without colors the walk misses.".into(),
                holds: true,
                numbers: "98.8 % > 90 %".into(),
                source: "section 4.1".into(),
            },
            Verdict {
                statement: "32 colors halve the misses at 512 KB.".into(),
                holds: false,
                numbers: "51.3 % of 99.5 %".into(),
                source: String::new(),
            },
        ],
        parameters: vec![Parameter {
            name: "cache.l2.ways".into(),
            value: "4".into(),
            unit: String::new(),
            source: "section 4".into(),
        }],
        notes: vec!["Pages are fragmented.".into()],
        command: "warmq run table2.toml".into(),
        digests: vec![Digest {
            of: "all runs".into(),
            value: "9c2e1a7f".into(),
        }],
        took_s: 2.5,
        ..Section::default()
    };
    let walk = Section {
        id: "walk".into(),
        title: "The walk on this machine".into(),
        plots: vec![lines()],
        ..Section::default()
    };
    Report {
        own: false,
        title: "Coloring".into(),
        subtitle: "A sample.".into(),
        command: "warmq reproduce coloring".into(),
        version: "0.1.0".into(),
        facts: vec![Fact {
            name: "Seeds".into(),
            value: "3".into(),
        }],
        sections: vec![misses, walk],
    }
}
