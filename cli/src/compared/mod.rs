//! Comparison of the modes of a real program: cells of a table, and sentences.

use warmq_bench::Spread;
use warmq_bench::compare::{Against, Compared, FEWEST_ROUNDS, Host, Mode, Verdict};

/// Heads of the columns that [`cells`] fills; `work` is the program's unit of work.
pub fn heads(work: &str) -> [String; 7] {
    let plain = [
        "mode",
        "elapsed",
        "quartiles",
        "range",
        work,
        "CPU",
        "×plain",
    ];
    plain.map(str::to_owned)
}

/// What all programs show of a mode.
pub fn cells(compared: &Compared) -> [String; 7] {
    let (elapsed, rate) = (compared.summary.elapsed_s, compared.summary.work_per_s);
    let against = compared.against_plain.as_ref();
    [
        compared.mode.to_string(),
        format!("{:.3}", elapsed.median),
        format!("{:.3}–{:.3}", elapsed.low, elapsed.high),
        format!("{:.3}–{:.3}", elapsed.min, elapsed.max),
        scaled(rate.median),
        format!("{:.3}", compared.summary.cpu_s.median),
        against.map_or(String::new(), |it| format!("{:.2}", it.speed.median)),
    ]
}

/// Heads of the columns that [`switches`] fills: voluntary and involuntary ones.
pub const HEADS_OF_SWITCHES: [&str; 2] = ["waits", "preempts"];

/// Switches in a run.
pub fn switches(compared: &Compared) -> [String; 2] {
    let summary = &compared.summary;
    [&summary.voluntary_switches, &summary.involuntary_switches].map(whole)
}

/// The median as a whole number.
pub fn whole(spread: &Spread) -> String {
    format!("{:.0}", spread.median)
}

/// A number with four digits and a letter for thousands, millions and billions.
pub fn scaled(value: f64) -> String {
    let scales = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    match scales.into_iter().find(|(scale, _)| value >= *scale) {
        Some((scale, letter)) => format!("{:.1} {letter}", value / scale),
        None => format!("{value:.1}"),
    }
}

/// Where it was measured, and how.
pub fn on_what(host: &Host, rounds: u32) -> String {
    let cpus: Vec<String> = host.cpus.iter().map(u16::to_string).collect();
    let scheduler = match &host.scheduler {
        Some(name) => format!("the loaded scheduler {name}"),
        None => "its own scheduler".to_owned(),
    };
    let s = if cpus.len() == 1 { "" } else { "s" };
    let kernel = &host.kernel;
    format!(
        "Kernel {kernel}, {scheduler}, CPU{s} {}; {rounds} repetitions, each with all modes in turn.",
        cpus.join(", ")
    )
}

/// Notes on all rows: no scheduler heard the hints, other programs ran, or the time was up.
pub fn notes<'a>(
    host: &Host,
    cut: bool,
    others_share: Option<f64>,
    modes: impl IntoIterator<Item = &'a Compared>,
) -> Vec<String> {
    let mut notes = Vec::new();
    if !host.hints_heard && modes.into_iter().any(|it| it.mode == Mode::Hinted) {
        notes.push(UNHEARD.to_owned());
    }
    if host.cpus.len() == 1 {
        notes.push("There is only one CPU, so binding threads to it changes nothing.".to_owned());
    }
    if let Some(share) = others_share.filter(|share| *share > MUCH) {
        notes.push(format!(
            "Other programs used {:.0} % of these CPUs' time: measure again when the machine is idle.",
            100.0 * share
        ));
    }
    if cut {
        let cut =
            "The time was up before all repetitions were complete; only complete ones are shown.";
        notes.push(cut.to_owned());
    }
    notes
}

/// A larger share of CPU time in other programs is reported. An idle machine has less: a few
/// interrupts.
const MUCH: f64 = 0.05;

const UNHEARD: &str = "Hints were not heard: no scheduler that listens to them is loaded. So mode \
                       hinted is a second plain run, and its distance from 1 is chance.";

/// The verdict on one mode; none for plain.
pub fn sentence(compared: &Compared) -> Option<String> {
    let against = compared.against_plain.as_ref()?;
    let (low, high) = against.interval;
    let follows = word(against);
    let (mode, median) = (compared.mode, against.speed.median);
    let follows = follows.replace("{FEWEST}", &FEWEST_ROUNDS.to_string());
    Some(format!(
        "{mode}: {median:.2} times plain ({low:.2} to {high:.2}): {follows}"
    ))
}

fn word(against: &Against) -> &'static str {
    match against.verdict {
        Verdict::Pays => "pays",
        Verdict::DoesNotPay => "does not pay here",
        Verdict::WithinTheSpread => "no difference beyond the spread",
        Verdict::TooSmall => "the difference is below 1 %",
        Verdict::NotHeard => "hints not heard, so this is a second plain run",
        Verdict::TooFewRounds => "too few repetitions to tell: at least {FEWEST} are needed",
    }
}
