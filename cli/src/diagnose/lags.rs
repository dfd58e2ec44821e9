//! What groups were owed as a wait began: a picture of their lags and vruntimes on one CPU, from
//! the records that a simulated EEVDF makes at each pick and at each change of a weight.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use warmq_trace::{Comm, Record};
use warmq_units::{CpuId, Duration, Instant};

use crate::colors::Colors;

/// From so long before the wait begins until so long after is shown.
const BEFORE: Duration = Duration::from_ms(40);
const AFTER: Duration = Duration::from_ms(20);

const WIDTH: f64 = 960.0;
const LEFT: f64 = 64.0;
/// The height of one of the two panels, and the room between them.
const PANEL: f64 = 170.0;
const GAP: f64 = 34.0;

/// Where a group stood at a time: virtual ns.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample {
    at: Instant,
    vruntime: i64,
    lag: i64,
}

/// The groups of one CPU as a wait began there.
#[derive(Debug, Default, PartialEq)]
pub struct Lags {
    cpu: CpuId,
    began: Instant,
    groups: Vec<(String, Vec<Sample>)>,
}

/// What groups are owed around the beginning of a wait.
#[derive(Debug, Default)]
pub struct Owing {
    began: Instant,
    names: BTreeMap<u32, Comm>,
    cpus: BTreeMap<CpuId, BTreeMap<u32, Vec<Sample>>>,
    complete: bool,
}

impl Owing {
    /// Around `began`.
    pub fn around(began: Instant) -> Owing {
        Owing {
            began,
            ..Owing::default()
        }
    }

    /// Takes in a record.
    pub fn see(&mut self, at: Instant, record: &Record) {
        if at > self.began + AFTER {
            self.complete = true;
            return;
        }
        match *record {
            Record::Cgroup { group, name, .. } => {
                self.names.insert(group, name);
            }
            Record::Owed {
                cpu,
                group,
                vruntime,
                lag,
                ..
            } if at + BEFORE >= self.began => {
                let sample = Sample { at, vruntime, lag };
                let groups = self.cpus.entry(cpu).or_default();
                groups.entry(group).or_default().push(sample);
            }
            _ => {}
        }
    }

    /// Whether no more records are needed.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// The lags on the CPU where they are greatest; `None` if fewer than two groups were recorded,
    /// as with real kernels.
    pub fn lags(self) -> Option<Lags> {
        let Owing {
            began, names, cpus, ..
        } = self;
        let (cpu, groups) = cpus
            .into_iter()
            .filter(|(_, groups)| groups.len() > 1)
            .max_by_key(|(cpu, groups)| (greatest(groups), std::cmp::Reverse(*cpu)))?;
        let named = |(group, samples): (u32, Vec<Sample>)| (name(group, &names), samples);
        Some(Lags {
            cpu,
            began,
            groups: groups.into_iter().map(named).collect(),
        })
    }
}

/// The greatest lag, whatever its sign.
fn greatest(groups: &BTreeMap<u32, Vec<Sample>>) -> u64 {
    let all = groups.values().flatten();
    all.map(|sample| sample.lag.unsigned_abs())
        .max()
        .unwrap_or(0)
}

/// What people call a group.
fn name(group: u32, names: &BTreeMap<u32, Comm>) -> String {
    match (group, names.get(&group)) {
        (0, _) => "the root group".to_owned(),
        (_, Some(name)) => format!("group {name}"),
        (number, None) => format!("a group without a name (number {number} of the trace)"),
    }
}

/// One of the two panels: a line a group.
struct Panel {
    title: String,
    top: f64,
    lines: Vec<Vec<(Instant, f64)>>,
}

impl Panel {
    /// The least and the greatest value, never the same.
    fn bounds(&self) -> (f64, f64) {
        let values = self.lines.iter().flatten().map(|(_, value)| *value);
        let (low, high) = values.fold((0.0_f64, 0.0_f64), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        (low, high.max(low + 0.1))
    }
}

impl Lags {
    /// When the picture begins and ends.
    fn times(&self) -> (Instant, Instant) {
        let times: BTreeSet<Instant> = self.samples().map(|sample| sample.at).collect();
        let first = times.first().copied().unwrap_or(self.began);
        let last = times.last().copied().unwrap_or(self.began);
        (first, last.max(Instant(first.0 + 1)))
    }

    fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.groups.iter().flat_map(|(_, samples)| samples)
    }

    fn panels(&self) -> [Panel; 2] {
        let ms = |ns: i64| ns as f64 / 1e6;
        let zero = self
            .samples()
            .map(|sample| sample.vruntime)
            .min()
            .unwrap_or(0);
        let line = |value: &dyn Fn(&Sample) -> f64| {
            let of = |samples: &Vec<Sample>| {
                samples
                    .iter()
                    .map(|sample| (sample.at, value(sample)))
                    .collect()
            };
            self.groups.iter().map(|(_, samples)| of(samples)).collect()
        };
        [
            Panel {
                title: "lag, virtual ms: above 0 a group is owed time".to_owned(),
                top: 16.0,
                lines: line(&|sample| ms(sample.lag)),
            },
            Panel {
                title: "vruntime, virtual ms from the least shown".to_owned(),
                top: 16.0 + PANEL + GAP,
                lines: line(&|sample| ms(sample.vruntime - zero)),
            },
        ]
    }

    /// Gives each group a color.
    pub fn give(&self, colors: &mut Colors) {
        self.groups.iter().for_each(|(name, _)| colors.give(name));
    }

    /// The picture, with its legend.
    pub fn picture(&self, who: &str, colors: &Colors) -> Markup {
        let lines = self.groups.iter().map(|(name, _)| colors.of(name));
        let lines: Vec<&str> = lines.collect();
        let (first, last) = self.times();
        let span = last.since(first).0 as f64;
        let x = |at: Instant| LEFT + (WIDTH - LEFT) * at.since(first).0 as f64 / span;
        let ms = |at: Instant| format!("{:.1} ms", at.0 as f64 / 1e9);
        let height = 16.0 + 2.0 * PANEL + GAP + 18.0;
        html! {
            p { "What groups were owed on CPU " (self.cpu.0) " as " (who) " began to wait" }
            div class="chart" { svg viewBox=(format!("0 0 {WIDTH} {height}")) role="img"
                aria-label=(format!("lag and vruntime of groups on CPU {} as {who} began to wait", self.cpu.0)) {
                @for panel in self.panels() { (drawn(&panel, &lines, &x)) }
                line x1=(format!("{:.1}", x(self.began))) x2=(format!("{:.1}", x(self.began)))
                    y1="16" y2=(height - 18.0) stroke="var(--broken)" stroke-dasharray="4 3" {}
                text x=(LEFT) y=(height - 4.0) { (ms(first)) }
                text x=(WIDTH) y=(height - 4.0) text-anchor="end" { (ms(last)) }
            } }
            div class="key" {
                @for (name, _) in &self.groups {
                    span { i style=(format!("background:{}", colors.of(name))) {} (name) }
                }
                span { i style="border:2px dashed var(--broken)" {} (who) " begins to wait" }
            }
        }
    }
}

fn drawn(panel: &Panel, colors: &[&str], x: &dyn Fn(Instant) -> f64) -> Markup {
    let (low, high) = panel.bounds();
    let y = |value: f64| panel.top + PANEL * (high - value) / (high - low);
    let points = |line: &[(Instant, f64)]| {
        let line = line.iter();
        let places = line.map(|(at, value)| format!("{:.1},{:.1}", x(*at), y(*value)));
        itertools::join(places, " ")
    };
    html! {
        text x=(LEFT) y=(panel.top - 4.0) { (panel.title) }
        @for value in [low, 0.0, high] {
            text x=(LEFT - 6.0) y=(format!("{:.1}", y(value) + 4.0)) text-anchor="end" { (format!("{value:.1}")) }
        }
        line x1=(LEFT) x2=(WIDTH) y1=(format!("{:.1}", y(0.0))) y2=(format!("{:.1}", y(0.0))) stroke="currentColor" stroke-opacity="0.3" {}
        @for (line, color) in panel.lines.iter().zip(colors) {
            polyline points=(points(line)) fill="none" stroke-width="1.5" stroke=(color) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::START + Duration::from_ms(ms)
    }

    fn owed(cpu: u16, group: u32, lag: i64) -> Record {
        Record::Owed {
            cpu: CpuId(cpu),
            group,
            weight: 1024,
            vruntime: -lag,
            lag,
        }
    }

    fn lags(records: &[(Instant, Record)], began: Instant) -> Option<Lags> {
        let mut owing = Owing::around(began);
        records
            .iter()
            .for_each(|(at, record)| owing.see(*at, record));
        owing.lags()
    }

    #[test]
    fn the_cpu_is_shown_where_groups_are_owed_most() {
        let named = Record::Cgroup {
            group: 1,
            parent: 0,
            weight: 100,
            name: Comm::new("web"),
        };
        let records = [
            (ms(1), named),
            (ms(1), owed(0, 1, 99)),
            (ms(70), owed(0, 1, 5)),
            (ms(70), owed(0, 2, -5)),
            (ms(80), owed(1, 1, 7)),
            (ms(80), owed(1, 2, -7)),
            (ms(95), owed(2, 1, 1_000)),
            (ms(200), owed(0, 2, 5_000)),
        ];
        let found = lags(&records, ms(100)).expect("two groups on two CPUs");
        assert_eq!(found.cpu, CpuId(1));
        let names: Vec<&str> = found.groups.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names[0], "group web");
        assert!(names[1].starts_with("a group without a name"), "{names:?}");
        assert_eq!(found.times(), (ms(80), Instant(ms(80).0 + 1)));
    }

    #[test]
    fn one_group_alone_is_no_picture() {
        let records = [(ms(95), owed(2, 1, 1_000))];
        assert_eq!(lags(&records, ms(100)), None);
    }
}
