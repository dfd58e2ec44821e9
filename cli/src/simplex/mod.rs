//! Simplex beside receivers of datagrams: measured with progress, then shown.

mod json;
mod table;
mod verdict;

use warmq_bench::simplex::{SimplexReport, SimplexSettings, compare};

use crate::failure::Failure;
use crate::output::say;
use crate::progress::Watch;

pub use json::json_lines;
pub use table::table;

/// Above this share of a CPU used by other programs, the figures are doubtful.
const BUSY: f64 = 0.05;
/// Simplex alone takes this many times what it was calibrated to when it is not alone.
const SLOW: f64 = 1.1;
/// Repetitions whose shares of work differ by more than this do not agree.
const GAP: f64 = 0.1;

/// Measures with progress shown, and warns of what makes the figures doubtful.
///
/// # Errors
/// Settings that make no sense; what the machine cannot do; a time limit that left nothing.
pub fn measure(settings: &SimplexSettings) -> Result<SimplexReport, Failure> {
    // What cannot be meant is told before anything that takes time.
    settings.check()?;
    let mut watch = None;
    let report = compare(settings, &mut |progress| {
        // Not before all that can be refused was: a refusal is told alone.
        let begin = || Watch::over("measurements of Simplex", progress.total);
        let watch: &mut Watch = watch.get_or_insert_with(begin);
        watch.see(progress.done, progress.total, &progress.last);
    })?;
    drop(watch);
    warnings(&report)
        .iter()
        .for_each(|text| say(&format!("warmq: {text}")));
    if report.rows.is_empty() {
        let text = "--time-limit: it was over before anything was measured";
        return Err(Failure::usage(text, "raise it, or lower --work"));
    }
    Ok(report)
}

/// A scheduler's name as far as its version: what follows (`_x86_64_unknown_linux_gnu`) says
/// nothing to people. JSON keeps it whole.
fn short(name: &str) -> String {
    let version = |part: &&str| part.starts_with(|first: char| first.is_ascii_digit());
    let parts: Vec<&str> = name.split('_').collect();
    let end = parts.iter().position(version);
    parts[..end.map_or(parts.len(), |index| index + 1)].join("_")
}

/// Reasons to doubt the figures.
fn warnings(report: &SimplexReport) -> Vec<String> {
    let facts = &report.facts;
    let mut warnings = Vec::new();
    if let Some(busy) = facts.busy_share.filter(|share| *share > BUSY) {
        warnings.push(format!(
            "before the measurement, other programs kept CPU {} or {} busy for {:.0} % of the time: stop \
             them, or choose other CPUs (--cpu, --sender-cpu)",
            facts.cpu,
            facts.sender_cpu,
            busy * 100.0
        ));
    }
    let alone = facts
        .solo_elapsed_ns
        .map(|it| it.median / facts.work_ns as f64);
    if let Some(times) = alone.filter(|times| *times > SLOW) {
        warnings.push(format!(
            "without datagrams, Simplex took {times:.1} times as long as calibrated: another program used \
             CPU {}, so the share of work says little",
            facts.cpu
        ));
    }
    if facts.share_a_core {
        warnings.push(format!(
            "CPU {} and {} are threads of one core and slow each other down: choose other CPUs if you can \
             (--cpu, --sender-cpu)",
            facts.cpu, facts.sender_cpu
        ));
    }
    if report.cut_short {
        warnings.push(
            "--time-limit was over before everything was measured: raise it, or use fewer --kpps or \
             --repetitions"
                .to_owned(),
        );
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedulers_are_told_by_name_and_version() {
        assert_eq!(short("warmq_0.1.0_x86_64_unknown_linux_gnu"), "warmq_0.1.0");
        assert_eq!(short("simple"), "simple");
        assert_eq!(short("two_words"), "two_words");
    }
}
