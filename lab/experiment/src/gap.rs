//! The gaps of drawn instances as a section of a page: an experiment that is computed.

use warmq_affinity::{Figure, Gap, Gaps, Shape};
use warmq_report::{
    Axis, Kind, Parameter, Plot, PlotPoint, Point, Row, Section, Series, Verdict, X,
};

/// The name of the section, by which it is asked for.
pub const GAP: &str = "oracle-gap";

/// Instances of each shape, and in a quick report.
const COUNT: u64 = 1000;
const QUICK_COUNT: u64 = 100;

/// Instances of one shape: its name, CPUs, tasks and fragments.
struct Named(&'static str, Option<u64>, Option<u64>, Option<u64>);

/// As the table of docs/affinity/model.md has them, and one CPU, where the order of bins is all
/// there is.
const SHAPES: [Named; 5] = [
    ONE_CPU,
    Named("any", None, None, None),
    FEW,
    Named("2 CPUs, 6 fragments", Some(2), Some(12), Some(6)),
    Named("3 CPUs, 10 fragments", Some(3), Some(10), Some(10)),
];
const ONE_CPU: Named = Named("1 CPU, 4 fragments", Some(1), Some(10), Some(4));
const FEW: Named = Named("2 CPUs, 2 fragments", Some(2), Some(12), Some(2));

/// What is compared with the optimum.
const SCHEDULES: [(&str, Figure); 2] = [
    ("online", Gap::online_permille),
    ("whole bins", Gap::whole_bins_permille),
];

/// The shapes of instances, by name.
pub fn shapes() -> impl Iterator<Item = (&'static str, Shape)> {
    SHAPES
        .into_iter()
        .map(|Named(name, cpus, tasks, fragments)| {
            (name, Shape::default().sized(cpus, tasks, fragments))
        })
}

/// How many instances of each shape there are.
pub fn count(quick: bool) -> u64 {
    if quick { QUICK_COUNT } else { COUNT }
}

/// The section of what was `found` of so many instances of each shape; `command` makes it again.
pub fn section(count: u64, found: &[(&str, Gaps)], command: &str) -> Section {
    Section {
        id: GAP.to_owned(),
        title: "How far the online algorithm is from the optimum".to_owned(),
        shows: "Small random instances of the affinity model, in which the optimum can be computed: how much later \
                than the optimum the online algorithm is done, and the best schedule that splits no fragment's tasks."
            .to_owned(),
        plots: vec![plot(found)],
        rows: found
            .iter()
            .flat_map(|(shape, gaps)| rows(shape, gaps))
            .collect(),
        columns: vec!["schedule".to_owned()],
        verdicts: verdicts(found),
        parameters: vec![Parameter {
            name: "instances".to_owned(),
            value: count.to_string(),
            unit: String::new(),
            source: format!("ours: of each shape, seeds 1 to {count}"),
        }],
        notes: vec![
            "Caches of 4 lines, 0 to 4 units to fill or to write back a line, runs of 1 to 9 units: runs are short \
             beside a switch, so these figures say what can happen, not what a machine will show."
                .to_owned(),
        ],
        command: command.to_owned(),
        ..Section::default()
    }
}

fn rows(shape: &str, gaps: &Gaps) -> Vec<Row> {
    let of_schedule = |(schedule, figure): (&str, Figure)| {
        let optimal = gaps.at_most(figure, 0) as u64 * 1000 / gaps.all.len() as u64;
        let figures = [
            ("optimal", optimal),
            ("late_mean", gaps.mean(figure)),
            ("late_p50", gaps.percentile(figure, 50)),
            ("late_p90", gaps.percentile(figure, 90)),
            ("late_p99", gaps.percentile(figure, 99)),
            ("late_max", gaps.percentile(figure, 100)),
        ];
        figures.map(|(metric, permille)| {
            let point = [("instances", shape.into()), ("schedule", schedule.into())];
            Row::ours(
                GAP,
                Point::new(point),
                (metric, "%"),
                [percent(permille); 3],
            )
        })
    };
    SCHEDULES.into_iter().flat_map(of_schedule).collect()
}

fn plot(found: &[(&str, Gaps)]) -> Plot {
    let series = SCHEDULES.map(|(schedule, figure)| Series {
        name: schedule.to_owned(),
        points: found
            .iter()
            .map(|(shape, gaps)| PlotPoint {
                x: X::Category((*shape).to_owned()),
                y: percent(gaps.mean(figure)),
                low: percent(gaps.mean(figure)),
                high: percent(gaps.percentile(figure, 90).max(gaps.mean(figure))),
            })
            .collect(),
        ..Series::default()
    });
    Plot {
        title: "Later than the optimum".to_owned(),
        x: Axis::linear("instances", ""),
        y: Axis::linear("later than the optimum", "%"),
        kind: Kind::Bars,
        series: series.into(),
        caption: "Bars: the mean. Whiskers: up to the 90th percentile.".to_owned(),
        ..Plot::default()
    }
}

fn verdicts(found: &[(&str, Gaps)]) -> Vec<Verdict> {
    let of = |wanted: &Named| {
        let (_, gaps) = found.iter().find(|(shape, _)| *shape == wanted.0)?;
        Some(gaps)
    };
    let [one_cpu, few] = [of(&ONE_CPU), of(&FEW)];
    let on_one_cpu = one_cpu.map(|gaps| {
        let late = gaps.percentile(Gap::online_permille, 100);
        Verdict {
            statement: "On one CPU the online algorithm is optimal: bin after bin".to_owned(),
            holds: late == 0,
            numbers: format!("the latest is {} % later", percent(late)),
            source: "affinity paper, the model".to_owned(),
        }
    });
    let bins = few.map(|gaps| {
        let [online, whole] = SCHEDULES.map(|(_, figure)| gaps.mean(figure));
        Verdict {
            statement: "With as many fragments as CPUs, most of what the online algorithm loses is lost by whole bins"
                .to_owned(),
            holds: 2 * whole > online,
            numbers: format!(
                "whole bins {} % later in the mean, online {} %",
                percent(whole),
                percent(online)
            ),
            source: "ours".to_owned(),
        }
    });
    on_one_cpu.into_iter().chain(bins).collect()
}

fn percent(permille: u64) -> f64 {
    permille as f64 / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quick_section_has_every_shape_under_both_schedules_and_its_claims_hold() {
        let found = shapes().map(|(name, shape)| {
            let gaps = Gaps::of(&shape, 1, QUICK_COUNT, &mut |_| ());
            (name, gaps.unwrap())
        });
        let section = section(QUICK_COUNT, &found.collect::<Vec<_>>(), "");
        assert_eq!(section.rows.len(), SHAPES.len() * SCHEDULES.len() * 6);
        assert_eq!(section.plots[0].series.len(), 2);
        for verdict in &section.verdicts {
            assert!(verdict.holds, "{verdict:?}");
        }
    }
}
