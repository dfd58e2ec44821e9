//! Who ran on which CPU, as text: one run of each point of an experiment.

use warmq_experiment::{Engine, Experiment, Options, Point, TIME_UP};
use warmq_metrics::Chart;
use warmq_trace::{Observer, Record};
use warmq_units::{CpuId, Duration, Instant};

use crate::failure::Failure;
use crate::progress::Watch;
use crate::study::failed;

/// More letters than this do not fit on a line that a person looks at.
const MOST_LETTERS: usize = 200;

/// A chart, the last CPU that it has seen, and when.
struct Drawn {
    chart: Chart,
    last: CpuId,
    end: Instant,
}

impl Observer for Drawn {
    fn see(&mut self, at: Instant, record: &Record) {
        self.chart.see(at, record);
        self.end = self.end.max(at);
        if let Record::Switch { cpu, .. } = *record {
            self.last = self.last.max(cpu);
        }
    }
}

/// A chart of each point, in steps of `step`, with the first seed.
///
/// # Errors
/// A run without a measurement.
pub fn text(
    experiment: &Experiment,
    options: &Options,
    engine: &Engine,
    step: Duration,
) -> Result<String, Failure> {
    let mut text = String::new();
    for point in experiment.points_of(options) {
        let name = experiment.name_of(point);
        let lines = {
            let _watch = Watch::until_done(&name);
            lines(experiment, options, point, engine, step)?
        };
        text.push_str(&format!("{name}\n"));
        for (cpu, line) in lines.iter().enumerate() {
            let shown: String = line.chars().take(MOST_LETTERS).collect();
            text.push_str(&format!("  cpu{cpu}  {shown}\n"));
        }
    }
    text.push_str(&format!(
        "a letter is the first of a task's name and stands for {step}; . is idle, ? another program's task"
    ));
    Ok(text)
}

fn lines(
    experiment: &Experiment,
    options: &Options,
    point: &Point,
    engine: &Engine,
    step: Duration,
) -> Result<Vec<String>, Failure> {
    let extent = experiment.extent(options);
    let plan = experiment.parts.plan(point, extent.seeds[0], &extent);
    let mut drawn = Drawn {
        chart: Chart::new(usize::from(u16::MAX), step),
        last: CpuId(0),
        end: Instant::START,
    };
    let measured = engine.observe(&plan, &mut drawn);
    let measured = measured.map_err(|error| failed(&experiment.name_of(point), &error))?;
    // Where all tasks have ended, so has the chart.
    let end = match measured.ending == TIME_UP {
        true => Instant::START + plan.warmup + plan.time,
        false => drawn.end,
    };
    let lines = drawn.chart.lines_of(usize::from(drawn.last.0) + 1, end);
    // What is shown begins where measuring would.
    let before = usize::try_from(plan.warmup.0 / step.0.max(1)).unwrap_or(usize::MAX);
    let measured = |line: String| line.chars().skip(before).collect();
    Ok(lines.into_iter().map(measured).collect())
}
