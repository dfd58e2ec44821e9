//! Why a scheduler lost: who waited for whom, what else differs from the base, and what the
//! scheduler's program did meanwhile.
//!
//! A law's cell has its evidence already. Of each setup with a loss the run that is worst in the
//! largest loss is made once more, with its records and the profile of the scheduler's program.

use std::collections::BTreeSet;

use itertools::join;
use warmq_diagnose::{Diagnosis, Watcher};
use warmq_experiment::judgement::{Compared, Judgement};
use warmq_experiment::laws::Records;
use warmq_experiment::{Engine, Measured, Plan};
use warmq_law::shown::{asked, value};
use warmq_law::{Cell, Verdict};
use warmq_metrics::evidence::longest_wait;
use warmq_report::Profile;
use warmq_trace::Observer;
use warmq_units::{Instant, printable};

use super::text::{losses, name, place};
use crate::failure::Failure;
use crate::laws::matrix;
use crate::listing;
use crate::study;

/// Setups that are played again for each scheduler: those of the largest losses.
const MOST_SETUPS: usize = 5;
/// Verdicts of a diagnosis that are printed.
const MOST_VERDICTS: usize = 2;
/// Callbacks of a profile that are printed.
const MOST_CALLBACKS: usize = 4;

/// What is set beside the base: name, words, and the unit of the figure.
const BESIDE: [(&str, &str, &str); 6] = [
    ("cpu_idle_share", "CPUs idle", "%"),
    ("cpu_interrupt_share", "in interrupts", "%"),
    ("switches_per_second", "switches", "1/s"),
    ("migrations_per_second", "migrations", "1/s"),
    ("wait_p99", "waits after wakeups (p99)", "us"),
    (
        "l3_misses_per_work",
        "level-3 misses for each unit of work",
        "",
    ),
];

/// All that `judged` lost, explained.
///
/// # Errors
/// A run that was made before, and is not made again.
pub fn of(judged: &Judgement<'_>, cells: &[Cell<'_>], engine: &Engine) -> Result<String, Failure> {
    let who = name(judged.column);
    let own = cells.iter().filter(|cell| cell.column == judged.column);
    let lost = own.filter(|cell| judged.laws.regressed.contains(&cell.law.name));
    let mut parts: Vec<String> = lost.map(law).collect();
    let (mut known, mut all) = (BTreeSet::new(), losses(judged));
    all.splice(0..0, judged.absent());
    for figure in &all {
        let setup = figure.setup.to_string();
        if known.len() < MOST_SETUPS && known.insert(setup) {
            let of_setup = all.iter().filter(|other| other.setup == figure.setup);
            parts.push(self::setup(figure, of_setup.copied(), engine)?);
        }
    }
    match parts.is_empty() {
        true => Ok(format!("Why {who} lost: it lost nothing.")),
        false => Ok(format!("Why {who} lost:\n\n{}", parts.join("\n\n"))),
    }
}

/// A law that is broken: what it asks, what there was, and who waited for whom.
fn law(cell: &Cell<'_>) -> String {
    let found = cell.judged.bounds.iter().zip(&cell.law.bounds);
    let broken = found.filter(|(finding, _)| finding.verdict == Verdict::Broken);
    let broken = broken.map(|(finding, bound)| {
        let was = value(finding.value, bound.unit);
        format!("It asks for {}, and that was {was}", asked(bound))
    });
    let mut sentences: Vec<String> = broken.collect();
    let rest = [cell.judged.why.clone(), matrix::instead(cell)];
    sentences.extend(rest.into_iter().filter(|text| !text.is_empty()));
    let head = format!("[law {}] {}.", cell.law.name, cell.law.says);
    let lines = [
        head,
        format!("{}.", sentences.join("; ")),
        format!("Again: {}", cell.again),
    ];
    lines.map(|line| listing::paragraph(&line)).join("\n")
}

/// A setup that is played again.
fn setup<'c>(
    worst: &Compared<'c>,
    figures: impl Iterator<Item = &'c Compared<'c>>,
    engine: &Engine,
) -> Result<String, Failure> {
    let lost = figures.map(|figure| {
        let mid = figure.ratio.map(|ratio| format!("{:.2}", ratio.mid));
        let says = mid.unwrap_or(figure.comparison.name().to_owned());
        format!("{} {says}", figure.figure.name)
    });
    let lost = join(lost, ", ");
    let plan = &worst.worst.plan;
    let (setup, seed) = (worst.setup.to_string(), plan.seed.0);
    let mut lines = vec![format!("[{}] seed {seed}: {lost}.", printable(&setup))];
    let mut seen = Records::default();
    let measured = engine.clone().profiled().observe(plan, &mut seen);
    let base = engine.observe(&worst.base.plan, &mut ());
    let base = base.map_err(|error| study::failed(&place(worst), &error))?;
    match measured {
        Ok(measured) => {
            lines.extend(waits(plan, &seen));
            lines.push(beside(&measured, &base));
            lines.extend(measured.profile.as_ref().map(profile));
        }
        Err(error) => {
            lines.push(format!("The run failed: {error}."));
            lines.extend(waits(plan, &seen));
        }
    }
    let lines = lines.into_iter().filter(|line| !line.is_empty());
    Ok(join(lines.map(|line| listing::paragraph(&line)), "\n"))
}

/// What the diagnosis says, and who waited longest for whom.
fn waits(plan: &Plan, Records { header, all }: &Records) -> Vec<String> {
    let from = Instant::START + plan.warmup;
    let until = from + plan.time;
    let mut watcher = Watcher::new(header, from, until);
    all.iter().for_each(|(at, record)| watcher.see(*at, record));
    let longest = longest_wait(all, &header.names, None, (from, until));
    let verdicts = Diagnosis::of(watcher).verdicts.into_iter();
    let verdicts = verdicts.take(MOST_VERDICTS).map(|verdict| {
        format!(
            "{}: {} {}",
            verdict.kind.name(),
            verdict.says,
            verdict.because
        )
    });
    let longest = longest.as_ref().map(matrix::waited);
    let longest = longest.map(|waited| format!("{waited}."));
    verdicts.chain(longest).collect()
}

/// What else differs from the base.
fn beside(measured: &Measured, base: &Measured) -> String {
    let each = BESIDE.iter().filter_map(|(name, words, unit)| {
        let (own, base) = (measured.figures.get(*name)?, base.figures.get(*name)?);
        let [own, base] = [own, base].map(|figure| value(*figure, unit));
        (own != base).then(|| format!("{words} {own} (base {base})"))
    });
    match join(each, ", ").as_str() {
        "" => String::new(),
        each => format!("Beside the base: {each}."),
    }
}

/// What the scheduler's program takes, by callbacks.
fn profile(profile: &Profile) -> String {
    let whole = profile.work.time.0.max(1) as f64;
    let callbacks = profile.callbacks.iter().take(MOST_CALLBACKS).map(|spot| {
        let share = 100.0 * spot.work.time.0 as f64 / whole;
        let function = spot
            .inside
            .first()
            .map_or("", |inside| inside.name.as_str());
        format!("{} {share:.0} % (most in {function})", spot.name)
    });
    let callbacks = join(callbacks, ", ");
    let of_cpus = 100.0 * whole / profile.cpu_time.0.max(1) as f64;
    let a_switch = whole / 1e6 / profile.switches.max(1) as f64;
    format!(
        "Its program takes {a_switch:.2} us of each switch, {of_cpus:.2} % of the CPUs' time: \
         {callbacks}."
    )
}
