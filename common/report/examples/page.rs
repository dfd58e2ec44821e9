//! Writes a sample page with made-up figures, for looking at: `cargo run --example page >
//! page.html`.

use std::error::Error;
use std::io;

use warmq_report::{
    Axis, Digest, Fact, Kind, Label, Origin, Parameter, Plot, PlotPoint, Point, PointValue, Report,
    Row, Scale, Section, Series, Terminal, Verdict, VerticalLine, X, write_html,
};

const VANILLA: [f64; 8] = [92.4, 98.0, 98.0, 92.4, 96.2, 94.6, 92.3, 93.9];
const COLORED: [f64; 8] = [6.0, 7.5, 6.8, 7.2, 6.6, 7.4, 11.1, 13.7];

fn main() -> Result<(), Box<dyn Error>> {
    let report = Report {
        own: false,
        title: "Cache coloring, reproduced".into(),
        subtitle: "Speeding Up Kernel Scheduler by Reducing Cache Misses (Yamamura et al., \
                   USENIX 2002, FREENIX track), simulated from its own parameters. \
                   Sample page: every figure here is made up."
            .into(),
        command: "warmq reproduce coloring --quick".into(),
        version: "0.1.0".into(),
        facts: vec![
            fact("Seeds", "5"),
            fact("Machines", "ppro-4way, p3xeon-8way, host"),
            fact("Took", "1 min 34 s"),
        ],
        sections: vec![histogram(), bars(), lines(), locks(), walk()],
    };
    let terminal = Terminal {
        width: 100,
        colors: false,
        all: false,
    };
    for section in &report.sections {
        eprintln!("{}", terminal.section(section));
    }
    eprintln!("{}", terminal.summary(&report));
    write_html(&report, io::stdout().lock())?;
    Ok(())
}

fn fact(name: &str, value: &str) -> Fact {
    Fact {
        name: name.into(),
        value: value.into(),
    }
}

/// A number between 0 and 1 that looks like noise and is the same each time.
fn noise(seed: u64) -> f64 {
    let mixed = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40) as f64 / (1u64 << 24) as f64
}

fn row(
    experiment: &str,
    point: Vec<(&str, PointValue)>,
    metric: (&str, &str),
    value: f64,
    published: Option<f64>,
) -> Row {
    let spread = value * 0.03 * (0.3 + noise(value.to_bits() >> 20));
    Row {
        experiment: experiment.into(),
        point: Point::new(point),
        metric: metric.0.into(),
        value,
        unit: metric.1.into(),
        low: value - spread,
        high: value + spread,
        published,
        calibration: false,
    }
}

fn points(values: impl IntoIterator<Item = (X, f64)>, spread: f64) -> Vec<PlotPoint> {
    let point = |(x, y): (X, f64)| PlotPoint {
        x,
        y,
        low: y * (1.0 - spread),
        high: if y < 100.0 {
            (y * (1.0 + spread)).min(100.0)
        } else {
            y
        },
    };
    values.into_iter().map(point).collect()
}

fn series(name: &str, origin: Origin, points: Vec<PlotPoint>) -> Series {
    Series {
        name: name.into(),
        origin,
        points,
    }
}

fn verdict(holds: bool, statement: &str, numbers: &str, source: &str) -> Verdict {
    Verdict {
        statement: statement.into(),
        holds,
        numbers: numbers.into(),
        source: source.into(),
    }
}

fn parameters() -> Vec<Parameter> {
    [
        ("cache.l2.size", "1024", "KB", "section 4: machine B"),
        ("cache.l2.ways", "4", "", "section 4: machine B"),
        (
            "cache.l2.latency",
            "18",
            "cycles",
            "Intel, Pentium III Xeon datasheet (243770), table 3",
        ),
        (
            "bus.transaction",
            "80",
            "ns",
            "calibrated on table 6, vanilla hold mean, 2 CPUs",
        ),
        (
            "linux-2.4.context_switch",
            "2100",
            "cycles",
            "calibrated on table 4, 1 CPU",
        ),
    ]
    .map(|(name, value, unit, source)| Parameter {
        name: name.into(),
        value: value.into(),
        unit: unit.into(),
        source: source.into(),
    })
    .into()
}

fn finish(section: Section) -> Section {
    let command = format!("warmq run experiments/coloring/{}.toml --quick", section.id);
    Section {
        parameters: parameters(),
        command,
        took_s: 4.2 + section.rows.len() as f64 / 3.0,
        digests: vec![
            Digest {
                of: "all 16 runs".into(),
                value: "9c2e1a7f04b35d86".into(),
            },
            Digest {
                of: "cpus = 8, colors = 32, seed 1".into(),
                value: "41d06b9a7710ce52".into(),
            },
        ],
        labels: vec![Label {
            key: "colors".into(),
            value: 1.into(),
            text: "vanilla".into(),
        }],
        ..section
    }
}

fn histogram() -> Section {
    let bus = |bin: u32, colored: bool| {
        let base =
            260.0 * (0.3 + noise(u64::from(bin))) * if bin.is_multiple_of(64) { 6.0 } else { 1.0 };
        match (bin, colored) {
            (3, false) => 410_000.0,
            (bin, true) if bin < 64 && bin % 2 == 1 => {
                base + 9_000.0 * (0.7 + noise(99 + u64::from(bin)))
            }
            _ => base,
        }
    };
    let bins = |colored| {
        points(
            (0..256).map(|bin| (X::Number(f64::from(bin * 16)), bus(bin, colored))),
            0.0,
        )
    };
    let plot = |name: &str, colored| Plot {
        title: format!("Bus transactions by page offset, {name}"),
        x: Axis {
            hexadecimal: true,
            ..Axis::linear("Page offset", "")
        },
        y: Axis {
            holds: vec![410_000.0],
            ..Axis::linear("Bus transactions", "1/s").on(Scale::Log10)
        },
        kind: Kind::Histogram,
        series: vec![series(name, Origin::Simulated, bins(colored))],
        markers: if colored {
            vec![]
        } else {
            vec![VerticalLine {
                x: 48.0,
                label: "0x30".into(),
            }]
        },
        caption: "One spike: the line of the task structure that the walk reads.".into(),
    };
    let mut rows = Vec::new();
    for bin in 0..256u32 {
        let offset = ("offset", PointValue::Integer(i64::from(bin) * 16));
        for (colors, colored) in [(1, false), (32, true)] {
            let point = vec![offset.clone(), ("colors", colors.into())];
            rows.push(row(
                "fig1-bus-histogram",
                point,
                ("bus_transactions", "1/s"),
                bus(bin, colored),
                None,
            ));
        }
    }
    finish(Section {
        id: "fig1-bus-histogram".into(),
        title: "Where on a page the bus is busy".into(),
        paper: "Figure 1".into(),
        shows: "256 Apache processes on the four-way Pentium Pro with 512 KB of L2. Every \
                transaction on the memory bus is counted under the page offset of its address, as \
                the bus tracer GATES did. One offset stands out: the cache line that the walk of \
                the run queue reads in every task."
            .into(),
        plots: vec![plot("vanilla", false), plot("32 colors", true)],
        rows,
        verdicts: vec![verdict(
            true,
            "One offset, 0x30, has more bus transactions than any other.",
            "410,000 at 0x30; the next is 2,027 at 0x400",
            "figure 1",
        )],
        ..Section::default()
    })
}

fn bars() -> Section {
    let published = [
        ("256 KB", 99.7, 82.7),
        ("512 KB", 99.6, 35.8),
        ("1024 KB", 99.5, 8.2),
    ];
    let ours = [
        ("256 KB", 99.9, 84.6),
        ("512 KB", 99.9, 47.3),
        ("1024 KB", 99.8, 8.6),
    ];
    let of = |values: [(&str, f64, f64); 3], colored: bool, spread| {
        let pick =
            move |(l2, vanilla, colors)| (X::from(l2), if colored { colors } else { vanilla });
        points(values.map(pick), spread)
    };
    let mut rows = Vec::new();
    for (ours, published) in ours.iter().zip(published) {
        for (colors, value, figure) in [(1, ours.1, published.1), (32, ours.2, published.2)] {
            let point = vec![("l2", ours.0.into()), ("colors", colors.into())];
            let cell = row(
                "table2-miss-ratio",
                point,
                ("walk_miss_ratio", "%"),
                value,
                Some(figure),
            );
            rows.push(Row {
                calibration: true,
                high: cell.high.min(100.0),
                ..cell
            });
        }
    }
    finish(Section {
        id: "table2-miss-ratio".into(),
        title: "Cache misses of the walk, by cache size".into(),
        paper: "Table 2".into(),
        shows: "1024 server processes on machine A. Without colors nearly every visit of the walk \
                misses the L2 cache, whatever its size; with 32 colors the larger caches keep the \
                run queue."
            .into(),
        plots: vec![Plot {
            title: "L2 miss ratio of the walk, 1024 processes".into(),
            x: Axis::linear("L2 cache", ""),
            y: Axis::linear("L2 miss ratio", "%"),
            kind: Kind::Bars,
            series: vec![
                series("vanilla", Origin::Simulated, of(ours, false, 0.0)),
                series("32 colors", Origin::Simulated, of(ours, true, 0.06)),
                series("vanilla", Origin::Published, of(published, false, 0.0)),
                series("32 colors", Origin::Published, of(published, true, 0.0)),
            ],
            markers: vec![],
            caption: "32 colors help from 512 KB on.".into(),
        }],
        rows,
        verdicts: vec![
            verdict(true, "Without colors the walk misses at every cache size.", "99.9 % at 256 KB, 99.9 % at 512 KB, 99.8 % at 1024 KB; at least 99 % wanted", "table 2"),
            verdict(false, "32 colors cut the misses by more than half at 512 KB.", "47.3 % of 99.9 % is 47.3 %; at most 45 % wanted", "section 4.2"),
        ],
        notes: vec!["Physical pages come from a fragmented allocator; their clusters decide the 256 KB column.".into()],
        ..Section::default()
    })
}

fn cpus(values: [f64; 8]) -> impl Iterator<Item = (X, f64)> {
    (1..=8)
        .zip(values)
        .map(|(cpu, value)| (X::Number(f64::from(cpu)), value))
}

fn lines() -> Section {
    let ours = |published: [f64; 8], shift: f64| {
        let mut index = 0;
        published.map(|value| {
            index += 1;
            (value * (1.0 + shift * (noise(index) - 0.3))).min(99.6)
        })
    };
    let (vanilla, colored) = (ours(VANILLA, 0.04), ours(COLORED, 0.5));
    let mut rows = Vec::new();
    for cpu in 0..8usize {
        for (colors, value, figure) in [
            (1, vanilla[cpu], VANILLA[cpu]),
            (32, colored[cpu], COLORED[cpu]),
        ] {
            let point = vec![("cpus", (cpu as i64 + 1).into()), ("colors", colors.into())];
            let cell = row(
                "table5-walk-misses",
                point,
                ("walk_miss_ratio", "%"),
                value,
                Some(figure),
            );
            rows.push(Row {
                calibration: cpu == 0,
                ..cell
            });
        }
    }
    finish(Section {
        id: "table5-walk-misses".into(),
        title: "Cache misses of the walk, by processors".into(),
        paper: "Table 5".into(),
        shows:
            "The web server on machine B, one to eight processors. Coloring keeps the run queue \
                in the cache of each."
                .into(),
        plots: vec![Plot {
            title: "L2 miss ratio of the walk".into(),
            x: Axis::linear("Processors", ""),
            y: Axis::linear("L2 miss ratio", "%"),
            kind: Kind::Lines,
            series: vec![
                series("vanilla", Origin::Simulated, points(cpus(vanilla), 0.02)),
                series("32 colors", Origin::Simulated, points(cpus(colored), 0.18)),
                series("vanilla", Origin::Published, points(cpus(VANILLA), 0.0)),
                series("32 colors", Origin::Published, points(cpus(COLORED), 0.0)),
            ],
            markers: vec![],
            caption: "Above 90 % without colors, below 15 % with 32 of them.".into(),
        }],
        rows,
        verdicts: vec![verdict(
            true,
            "With 32 colors the walk misses at most 15 % at every number of processors.",
            "highest: 14.1 % at 8 processors",
            "table 5",
        )],
        ..Section::default()
    })
}

fn locks() -> Section {
    let vanilla = [0.0, 9.2, 15.4, 19.7, 22.9, 27.2, 35.9, 45.6];
    let colored = [0.0, 2.3, 4.1, 6.0, 7.2, 9.3, 14.0, 23.4];
    let hold = [
        [0.0, 42.0, 40.0, 40.0, 41.0, 43.0, 43.0, 36.0],
        [0.0, 12.0, 12.0, 13.0, 13.0, 13.0, 11.0, 13.0],
    ];
    let plot = |title: &str, axis: Axis, published: [[f64; 8]; 2], shift: f64| Plot {
        title: title.into(),
        x: Axis::linear("Processors", ""),
        y: axis,
        kind: Kind::Lines,
        series: ["vanilla", "32 colors"]
            .into_iter()
            .zip(published)
            .flat_map(|(name, values)| {
                let ours = points(cpus(values.map(|value| value * shift)).skip(1), 0.07);
                [
                    series(name, Origin::Simulated, ours),
                    series(name, Origin::Published, points(cpus(values).skip(1), 0.0)),
                ]
            })
            .collect(),
        markers: vec![],
        caption: String::new(),
    };
    let mut rows = Vec::new();
    for (metric, values, shift) in [
        (("lock_contention", "%"), [vanilla, colored], 1.12),
        (("lock_hold_mean", "us"), hold, 0.93),
    ] {
        for (cpu, (plain, with)) in (1..).zip(values[0].into_iter().zip(values[1])).skip(1) {
            for (colors, published) in [(1, plain), (32, with)] {
                let point = vec![("cpus", cpu.into()), ("colors", colors.into())];
                let off: f64 = if cpu == 2 && colors == 32 { 1.7 } else { 1.0 };
                rows.push(row(
                    "table6-lock",
                    point,
                    metric,
                    published * shift * off,
                    Some(published),
                ));
            }
        }
    }
    finish(Section {
        id: "table6-lock".into(),
        title: "The run-queue lock".into(),
        paper: "Table 6".into(),
        shows: "A shorter walk holds the lock for a shorter time, and fewer requests find it held."
            .into(),
        plots: vec![
            plot(
                "Requests that found the lock held",
                Axis::linear("Contention", "%"),
                [vanilla, colored],
                1.12,
            ),
            plot(
                "How long the lock is held",
                Axis::linear("Mean hold time", "us"),
                hold,
                0.93,
            ),
        ],
        rows,
        ..Section::default()
    })
}

fn walk() -> Section {
    let blocks = [64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0];
    let plain = [2.1, 5.0, 8.3, 16.7, 34.9, 36.0, 37.2];
    let colors = [2.0, 4.9, 8.1, 8.2, 8.4, 14.2, 33.0];
    let over = |values: [f64; 7], shift: f64, spread| {
        points(
            blocks
                .map(X::Number)
                .into_iter()
                .zip(values.map(|value| value * shift)),
            spread,
        )
    };
    let mut rows = Vec::new();
    for (index, count) in blocks.iter().enumerate() {
        for (kind, value) in [("vanilla", plain[index]), ("32 colors", colors[index])] {
            for (origin, shift) in [("measured", 1.0), ("simulated", 1.08)] {
                let point = vec![
                    ("blocks", (*count as i64).into()),
                    ("layout", kind.into()),
                    ("origin", origin.into()),
                ];
                rows.push(row(
                    "walk-host",
                    point,
                    ("time_per_visit", "ns"),
                    value * shift,
                    None,
                ));
            }
        }
    }
    finish(Section {
        id: "walk-host".into(),
        title: "The walk on this machine".into(),
        paper: String::new(),
        shows:
            "The same walk over the caches of this machine, timed, beside the walk simulated on \
                a model of it. Blocks of 8 KB, one hot line each, in random order."
                .into(),
        plots: vec![Plot {
            title: "Time a visit, measured and simulated".into(),
            x: Axis::linear("Blocks", "").on(Scale::Log2),
            y: Axis::linear("Time a visit", "ns"),
            kind: Kind::Lines,
            series: vec![
                series("vanilla", Origin::Simulated, over(plain, 1.08, 0.02)),
                series("32 colors", Origin::Simulated, over(colors, 0.93, 0.03)),
                series("vanilla", Origin::Measured, over(plain, 1.0, 0.05)),
                series("32 colors", Origin::Measured, over(colors, 1.0, 0.08)),
            ],
            markers: vec![
                VerticalLine {
                    x: 256.0,
                    label: "equation 3: 1 color".into(),
                },
                VerticalLine {
                    x: 1024.0,
                    label: "4 colors".into(),
                },
            ],
            caption: "Beyond 256 blocks one color no longer suffices.".into(),
        }],
        rows,
        columns: vec!["layout".into(), "origin".into()],
        ..Section::default()
    })
}
