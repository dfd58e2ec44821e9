//! What was tried as a report: which settings are best, in which scenario, and how the rounds went.

use warmq_experiment::judgement::{Family, Ratio};
use warmq_report::{Axis, Kind, Plot, PlotPoint, Point, PointValue, Report, Row, Section, Series};
use warmq_units::printable;

use super::super::text::legend;
use super::{FRONT, NOTHING, Tried, Tuning, by_score};

/// Names in a plot beside two for all others: it has eight colors.
const MOST_NAMES: usize = 6;
/// Of those that were judged whole.
const RATIO: &str = "ratio to the base";
/// Of the others.
const OUT: &str = "out in an earlier round";
/// A key of rows whose values are the columns of tables.
const FIGURE: &str = "figure";

impl Tuning<'_> {
    /// The report; `command` makes it again.
    pub fn report(&self, command: &str) -> Report {
        Report {
            title: format!("Settings of {}", printable(self.rounds[0][0].column.name())),
            subtitle: legend(self.contest),
            command: command.to_owned(),
            own: true,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            sections: vec![self.front(), self.scenarios(), self.halving()],
            ..Report::default()
        }
    }

    /// Those that no other one beats by their names, and the others in two groups; each as it was
    /// in its last round.
    fn groups(&self) -> Vec<(&str, Vec<&Tried>)> {
        let whole = self.whole();
        let all = whole.iter().copied();
        let (front, mut rest): (Vec<&Tried>, Vec<&Tried>) = all.partition(|one| self.is_front(one));
        rest.extend(front.iter().skip(MOST_NAMES));
        let mut out: Vec<&Tried> = Vec::new();
        for one in self.rounds.iter().rev().flat_map(|round| by_score(round)) {
            if whole
                .iter()
                .chain(&out)
                .all(|other| other.column != one.column)
            {
                out.push(one);
            }
        }
        let named = front.into_iter().take(MOST_NAMES);
        let named = named.map(|one| (one.label.as_str(), vec![one]));
        let mut groups: Vec<_> = named
            .chain([("others judged whole", rest), (OUT, out)])
            .collect();
        groups.retain(|(_, group)| !group.is_empty());
        groups
    }

    /// Throughput against latency of all candidates, and all that is known of them.
    fn front(&self) -> Section {
        let mid = |one: &Tried, family| one.ratio(family).map_or(f64::NAN, |ratio| ratio.mid);
        let place = |one: &Tried| [Family::Throughput, Family::Latency].map(|of| mid(one, of));
        let whole = self.whole().into_iter().map(|one| (RATIO, one));
        let out = self.groups().into_iter().filter(|(name, _)| *name == OUT);
        let out = out.flat_map(|(name, group)| group.into_iter().map(move |one| (name, one)));
        let rows = whole.chain(out).flat_map(|(metric, one)| {
            let is_front = metric == RATIO && self.is_front(one);
            let score = ("score", exactly(one.score));
            let families = one
                .families
                .iter()
                .map(|(family, ratio)| (family.name(), *ratio));
            families.chain([score]).map(move |(figure, ratio)| {
                let keys = [
                    ("front", if is_front { "*" } else { "" }.into()),
                    ("breaks", one.breaks.as_str().into()),
                    ("seeds", (one.seeds as i64).into()),
                    (FIGURE, figure.into()),
                ];
                row(Some(one), keys, metric, ratio)
            })
        });
        let axes = ["throughput", "latency"];
        let plot = plot(axes, self.groups(), |one| vec![place(one)]);
        let shows = format!("{} {}.", self.recommendation(), FRONT.replace("* ", "*: "));
        section(
            ["Pareto front", "Which settings are best"],
            shows,
            plot,
            rows.collect(),
        )
    }

    /// Each scenario under each that was judged whole, and which is best in it.
    fn scenarios(&self) -> Section {
        let whole = self.whole();
        let bars = whole.iter().take(MOST_NAMES + 2).map(|one| {
            let points = one.scenarios.iter();
            let points = points.map(|(name, ratio)| PlotPoint::exact((&**name).into(), *ratio));
            series(&one.label, points.collect())
        });
        let rows = self.by_scenario().into_iter().enumerate();
        let rows = rows.flat_map(|(at, (scenario, best, _))| {
            whole.iter().map(move |one| {
                let keys = [
                    ("scenario", scenario.into()),
                    ("best settings", best.label.as_str().into()),
                    (FIGURE, one.label.as_str().into()),
                ];
                row(None, keys, RATIO, exactly(one.scenarios[at].1))
            })
        });
        let shows = format!(
            "{} Those are named where none is better by more than {} %, which is no difference.",
            self.recommendation(),
            100.0 * self.contest.set.margins.difference
        );
        let plot = Plot {
            kind: Kind::Bars,
            series: bars.collect(),
            ..plot(["scenario", RATIO], Vec::new(), |_| Vec::new())
        };
        let title = ["Scenarios", "Which settings are best in which scenario"];
        section(title, shows, plot, rows.collect())
    }

    /// The scores of all rounds.
    fn halving(&self) -> Section {
        let rounds = || self.rounds.iter().zip(1_i32..);
        let scores = |one: &Tried| {
            let found = rounds().filter_map(|(round, number)| {
                let found = round.iter().find(|other| other.column == one.column)?;
                Some([f64::from(number), found.score])
            });
            found.collect()
        };
        let rows = rounds().flat_map(|(round, number)| {
            by_score(round).into_iter().map(move |one| {
                let key = format!("round {number}, seeds {}", one.seeds);
                row(
                    Some(one),
                    [(FIGURE, key.into())],
                    "score",
                    exactly(one.score),
                )
            })
        });
        let shows = "Each round has one seed more, the last one all and the laws. The better half \
                     goes on, with whichever is best in a scenario.";
        let plot = plot(["round", "score"], self.groups(), scores);
        let title = ["Successive halving", "How the candidates went out"];
        section(title, shows.to_owned(), plot, rows.collect())
    }

    fn recommendation(&self) -> String {
        let best = self.recommended();
        let best = best.map(|best| format!("Recommended: {}.", best.label));
        best.unwrap_or_else(|| NOTHING.to_owned())
    }
}

/// A row, with a key for each setting of a candidate.
fn row<'t>(
    one: Option<&'t Tried>,
    more: impl IntoIterator<Item = (&'t str, PointValue)>,
    metric: &str,
    ratio: Ratio,
) -> Row {
    let settings = one.into_iter().flat_map(|one| &one.settings);
    let settings = settings.map(|(key, value)| (key.as_str(), value.as_str().into()));
    let Ratio { mid, low, high } = ratio;
    let point = Point::new(settings.chain(more));
    Row::ours("tune", point, (metric, ""), [mid, low, high])
}

fn exactly(mid: f64) -> Ratio {
    let (low, high) = (mid, mid);
    Ratio { mid, low, high }
}

fn series(name: &str, points: Vec<PlotPoint>) -> Series {
    let name = name.to_owned();
    Series {
        name,
        points,
        ..Series::default()
    }
}

/// A plot of points, which `places` gives of each candidate.
fn plot(
    [x, y]: [&str; 2],
    groups: Vec<(&str, Vec<&Tried>)>,
    places: impl Fn(&Tried) -> Vec<[f64; 2]>,
) -> Plot {
    let all = groups.iter().map(|(name, group)| {
        let places = group.iter().flat_map(|one| places(one));
        series(
            name,
            places.map(|[x, y]| PlotPoint::exact(x.into(), y)).collect(),
        )
    });
    Plot {
        title: format!("{y} by {x}"),
        kind: Kind::Points,
        x: Axis::linear(x, ""),
        y: Axis::linear(y, ""),
        series: all.collect(),
        ..Plot::default()
    }
}

/// A section whose tables have figures as columns.
fn section([name, title]: [&str; 2], shows: String, plot: Plot, rows: Vec<Row>) -> Section {
    Section {
        id: name.to_owned(),
        paper: name.to_owned(),
        title: title.to_owned(),
        shows,
        plots: vec![plot],
        rows,
        columns: vec![FIGURE.to_owned()],
        ..Section::default()
    }
}
