//! Simplex for a terminal.

use warmq_bench::simplex::{
    Latency, Repetition, SimplexFacts, SimplexReport, SimplexRow, histogram,
};
use warmq_units::Duration;

use super::short;
use super::verdict::verdicts;
use crate::listing;

const HEAD: [&str; 12] = [
    "Kpps",
    "receiver",
    "scheduler",
    "work",
    "each",
    "switches/s",
    "rx CPU",
    "wakeups/s",
    "lost",
    "p50",
    "p99",
    "max",
];

const LEGEND: &str = "Medians of all repetitions. work: % of what Simplex does in the same time \
alone; each: the work of every repetition, in order, or where they are many, how many lie in each \
tenth from 0 to 100 %; switches/s: how often the CPU was taken from Simplex; rx CPU, wakeups/s: of \
the receivers together; lost: % of the datagrams sent; p50, p99, max: from the sender's stamp to \
the receiver.";

/// More repetitions than these are shown as a histogram.
const MOST_LISTED: usize = 5;
const BINS: usize = 10;
const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Where it was measured, the rows, and what follows from them.
pub fn table(report: &SimplexReport) -> String {
    let mut table = listing::table();
    table.set_header(HEAD);
    for row in &report.rows {
        table.add_row(line(row));
    }
    listing::align_numbers(&mut table, None);
    let place = listing::paragraph(&on_what(&report.facts));
    let legend = listing::paragraph(LEGEND);
    let verdicts = verdicts(report)
        .iter()
        .map(|it| listing::paragraph(it))
        .collect::<Vec<_>>();
    format!(
        "Simplex beside receivers of datagrams\n{place}\n\n{}\n\n{legend}\n\n{}",
        table.trim_fmt(),
        verdicts.join("\n")
    )
}

fn line(row: &SimplexRow) -> [String; 12] {
    let median = |of: &dyn Fn(&Repetition) -> Option<f64>| row.spread(of).map(|it| it.median);
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |it| format!("{it:.0}"));
    let percent = |of: &dyn Fn(&Repetition) -> Option<f64>| {
        median(of).map_or("-".to_owned(), |it| format!("{:.1}", it * 100.0))
    };
    let latency = |of: fn(&Latency) -> u64| {
        let of = move |it: &Repetition| it.receivers.latency.as_ref().map(|it| of(it) as f64);
        median(&of).map_or("-".to_owned(), time)
    };
    [
        row.kpps.to_string(),
        row.policy.to_string(),
        row.scheduler
            .as_deref()
            .map_or_else(|| "kernel's".to_owned(), short),
        percent(&|it| Some(it.simplex.work_share)),
        each(&row.work_shares()),
        number(median(&|it| Some(it.switches_per_s()))),
        percent(&|it| Some(it.receivers.cpu_share)),
        number(median(&|it| Some(it.receivers.wakeups_per_s))),
        percent(&Repetition::lost_share),
        latency(|it| it.p50_ns),
        latency(|it| it.p99_ns),
        latency(|it| it.max_ns),
    ]
}

/// All repetitions: a few as they are, many as a histogram.
fn each(shares: &[f64]) -> String {
    if shares.len() <= MOST_LISTED {
        let words: Vec<String> = shares
            .iter()
            .map(|it| format!("{:.0}", it * 100.0))
            .collect();
        return words.join(" ");
    }
    let counts = histogram(shares, BINS, (0.0, 1.0));
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    // Whatever is there shows: a bar is empty for 0 only.
    let bar = |count: &usize| BARS[(count * (BARS.len() - 1)).div_ceil(most)];
    let bars: String = counts.iter().map(bar).collect();
    format!("|{bars}|")
}

/// Nanoseconds with three digits at most.
pub fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "us"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    let digits = usize::from(value < 9.95);
    format!("{value:.digits$} {unit}")
}

fn on_what(facts: &SimplexFacts) -> String {
    let s = if facts.receivers == 1 { "" } else { "s" };
    let alone = facts.solo_elapsed_ns.map_or(String::new(), |it| {
        format!(
            ", measured {} ({} .. {})",
            time(it.median),
            time(it.min),
            time(it.max)
        )
    });
    format!(
        "Kernel {}. CPU {}: Simplex (work for {}{alone}) and {} receiver{s}; CPU {}: the sender, \
         {} bytes per datagram over {}.",
        facts.kernel,
        facts.cpu,
        Duration(facts.work_ns * 1000),
        facts.receivers,
        facts.sender_cpu,
        facts.payload,
        facts.link,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_repetitions_are_listed_and_many_are_drawn() {
        assert_eq!(each(&[0.98, 0.7]), "98 70");
        let mut many = vec![0.97; 27];
        many.extend([0.72; 12]);
        assert_eq!(each(&many), "|       ▄ █|");
        many.push(0.05);
        assert!(each(&many).starts_with("|▁"), "one of forty shows");
    }

    #[test]
    fn times_have_a_unit_that_fits() {
        let told = [999.0, 18_000.0, 3_440_000.0, 12e9].map(time);
        assert_eq!(told, ["999 ns", "18 us", "3.4 ms", "12 s"]);
    }
}
