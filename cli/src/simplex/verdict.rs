//! Verdicts: where a mode pays and where it does not, and where repetitions disagree.

use warmq_bench::simplex::{Cluster, Policy, Repetition, SimplexReport, SimplexRow, clusters};

use super::table::time;
use super::{BUSY, GAP, short};

/// A smaller gain of work, as a share of what Simplex does without datagrams, is no gain.
const GAIN: f64 = 0.02;
/// A larger share of lost datagrams is a loss.
const LOSS: f64 = 0.001;
/// More switches per second than the ticks of any kernel (HZ is at most 1000) must come from
/// wakeups.
const MOST_TICKS: f64 = 1100.0;
/// A sender below this share of its rate did not keep the rate.
const KEPT: f64 = 0.97;

/// Measured on Linux 6.18 with group scheduling: docs/simplex.md.
const PREEMPTING_BATCH: &str = "batch receivers preempted at their wakeups, as happens while a \
task of another group (a cgroup, or a session if kernel.sched_autogroup_enabled is 1) waits for that \
CPU and starves (docs/simplex.md)";

/// Sentences, the most useful first.
pub fn verdicts(report: &SimplexReport) -> Vec<String> {
    let mut verdicts: Vec<String> = Vec::new();
    for row in &report.rows {
        let base = report
            .rows
            .iter()
            .find(|it| is_base(it) && it.kpps == row.kpps);
        verdicts.extend(base.filter(|_| !is_base(row)).map(|base| pays(row, base)));
    }
    let remarks: [(&str, Remark); 5] = [
        ("repetitions do not agree", disagree),
        (PREEMPTING_BATCH, preempting_batch),
        (
            "other programs used part of that CPU, so the figures are doubtful",
            disturbed,
        ),
        ("the sender could not keep its rate", too_fast),
        ("Simplex was stopped before its work was done", unfinished),
    ];
    for (what, remark) in remarks {
        let rows: Vec<String> = report.rows.iter().filter_map(remark).collect();
        verdicts.extend((!rows.is_empty()).then(|| format!("! {what}: {}", rows.join("; "))));
    }
    verdicts
}

/// Says something of a row, if there is anything to say.
type Remark = fn(&SimplexRow) -> Option<String>;

/// What every other mode is compared with.
fn is_base(row: &SimplexRow) -> bool {
    row.policy == Policy::Other && row.scheduler.is_none()
}

fn name(row: &SimplexRow) -> String {
    let scheduler = row
        .scheduler
        .as_ref()
        .map(|it| format!(" under {}", short(it)));
    format!(
        "{} Kpps, {}{}",
        row.kpps,
        row.policy,
        scheduler.unwrap_or_default()
    )
}

fn median(row: &SimplexRow, of: impl Fn(&Repetition) -> Option<f64>) -> f64 {
    row.spread(of).map_or(0.0, |it| it.median)
}

/// A mode against SCHED_OTHER under the kernel's own scheduler.
fn pays(row: &SimplexRow, base: &SimplexRow) -> String {
    let work = |row| median(row, |it| Some(it.simplex.work_share));
    let lost = |row| median(row, Repetition::lost_share);
    let p99 = |row| median(row, |it| Some(it.receivers.latency?.p99_ns as f64));
    let (gains, loses) = (work(row) - work(base) > GAIN, lost(row) - lost(base) > LOSS);
    let verdict = match (gains, loses) {
        (true, false) => "✓ pays",
        (true, true) => "✗ gains work but loses datagrams",
        (false, _) => "✗ does not pay",
    };
    format!(
        "{verdict}: {}: Simplex does {:.0} % (rather than {:.0} %) of its work without datagrams; \
         {:.1} % (rather than {:.1} %) are lost; p99 {} (rather than {})",
        name(row),
        work(row) * 100.0,
        work(base) * 100.0,
        lost(row) * 100.0,
        lost(base) * 100.0,
        time(p99(row)),
        time(p99(base)),
    )
}

/// Repetitions that form several clusters, of which a median says little.
fn disagree(row: &SimplexRow) -> Option<String> {
    let found = clusters(&row.work_shares(), GAP);
    let told = |it: &Cluster| format!("{} near {:.0} %", it.count, it.median * 100.0);
    (found.len() > 1).then(|| {
        let places: Vec<String> = found.iter().map(told).collect();
        format!("{} ({})", name(row), places.join(", "))
    })
}

/// Batch receivers that preempted at their wakeups nevertheless.
fn preempting_batch(row: &SimplexRow) -> Option<String> {
    if row.policy != Policy::Batch || row.scheduler.is_some() {
        return None;
    }
    let often = |it: &&Repetition| it.switches_per_s() > MOST_TICKS;
    let (count, all) = (
        row.repetitions.iter().filter(often).count(),
        row.repetitions.len(),
    );
    (count > 0).then(|| format!("{} ({count} of {all} repetitions)", name(row)))
}

/// Other programs used part of the CPU.
fn disturbed(row: &SimplexRow) -> Option<String> {
    let others = median(row, |it| Some(it.others_share));
    (others > BUSY).then(|| format!("{} ({:.0} %)", name(row), others * 100.0))
}

fn too_fast(row: &SimplexRow) -> Option<String> {
    let sent = row.spread(|it| it.sender.kpps())?.median;
    let kept = sent >= f64::from(row.kpps) * KEPT;
    (!kept).then(|| format!("{} (sent {sent:.2})", name(row)))
}

fn unfinished(row: &SimplexRow) -> Option<String> {
    let stopped = |it: &&Repetition| it.simplex.finished_share < 1.0;
    let (count, all) = (
        row.repetitions.iter().filter(stopped).count(),
        row.repetitions.len(),
    );
    (count > 0).then(|| format!("{} ({count} of {all} repetitions)", name(row)))
}
