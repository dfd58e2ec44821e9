//! What a comparison found, as plain data.

use serde::Serialize;

use super::measure::Seen;
use super::policy::Policy;
use super::receiver::no_latencies;
use super::settings::LinkKind;
use crate::compare::Spread;

/// All rows and where they were measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SimplexReport {
    /// Where and with what.
    pub facts: SimplexFacts,
    /// A row for each rate, policy and scheduler that was measured at least once.
    pub rows: Vec<SimplexRow>,
    /// Whether the time limit left measurements out.
    pub cut_short: bool,
}

/// What is the same in all rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SimplexFacts {
    /// The kernel's release.
    pub kernel: String,
    /// The CPU of Simplex and the receivers.
    pub cpu: u16,
    /// The CPU of the sender.
    pub sender_cpu: u16,
    /// Whether both are threads of one core.
    pub share_a_core: bool,
    /// Whether the kernel makes a group of every session; `None` if it cannot.
    pub autogroup: Option<bool>,
    /// The share of time that somebody else used the busier of them before; `None` if unknown.
    pub busy_share: Option<f64>,
    /// Receivers beside Simplex.
    pub receivers: u32,
    /// Bytes in a datagram.
    pub payload: u32,
    /// What lies between sender and receivers.
    pub link: LinkKind,
    /// How long Simplex was meant to take alone, in ns.
    pub work_ns: u64,
    /// How long it took alone, under the kernel's own scheduler; `None` if it was not measured.
    pub solo_elapsed_ns: Option<Spread>,
}

/// One rate, policy and scheduler.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SimplexRow {
    /// The rate asked for, in thousand datagrams a second.
    pub kpps: u32,
    /// The receivers' policy.
    pub policy: Policy,
    /// The loaded scheduler by the kernel's name for it; `None` for the kernel's own.
    pub scheduler: Option<String>,
    /// In the order in which they were measured.
    pub repetitions: Vec<Repetition>,
}

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Repetition {
    /// What Simplex came to.
    pub simplex: Simplex,
    /// What the receivers came to, all together.
    pub receivers: Receivers,
    /// What the sender came to.
    pub sender: super::sender::Sent,
    /// The share of the CPU that neither Simplex nor the receivers had: somebody else's.
    pub others_share: f64,
}

/// Simplex beside the receivers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Simplex {
    /// How long it took, in ns; until the time was up if `finished_share` is below 1.
    pub elapsed_ns: u64,
    /// How much of its work it did.
    pub finished_share: f64,
    /// Work a time against that of the same repetition alone: its time alone over `elapsed_ns`.
    pub work_share: f64,
    /// CPU time over `elapsed_ns`.
    pub cpu_share: f64,
    /// CPU time and switches.
    #[serde(flatten)]
    pub usage: super::Usage,
}

/// The receivers beside Simplex.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Receivers {
    /// Datagrams that were sent while Simplex worked and arrived.
    pub received: u64,
    /// Datagrams that were sent while Simplex worked and did not arrive.
    pub lost: u64,
    /// Numbers passed over: `lost`, except for those at the very ends.
    pub gaps: u64,
    /// Datagrams for which a socket had no room, as the kernel counts them.
    pub dropped: u64,
    /// Datagrams that arrived after one sent later.
    pub overtaken: u64,
    /// From the stamp to the program; `None` when nothing arrived.
    pub latency: Option<Latency>,
    /// CPU time over time.
    pub cpu_share: f64,
    /// Times a second that a receiver woke from sleep.
    pub wakeups_per_s: f64,
    /// Times a second that the CPU was taken from a receiver.
    pub preemptions_per_s: f64,
}

/// Percentiles of latency in ns, kept to 1 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// The median.
    pub p50_ns: u64,
    /// One of a hundred takes longer.
    pub p99_ns: u64,
    /// One of a thousand takes longer.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl SimplexRow {
    /// Where `quantity` lies in all repetitions that have it.
    pub fn spread(&self, quantity: impl Fn(&Repetition) -> Option<f64>) -> Option<Spread> {
        let values: Vec<f64> = self.repetitions.iter().filter_map(quantity).collect();
        Spread::of(&values)
    }

    /// Work against solo in each repetition.
    pub fn work_shares(&self) -> Vec<f64> {
        let share = |it: &Repetition| it.simplex.work_share;
        self.repetitions.iter().map(share).collect()
    }
}

impl Repetition {
    /// What was seen, beside a repetition alone that would have taken `solo_ns`.
    pub fn of(seen: &Seen, solo_ns: f64) -> Repetition {
        let (simplex, receivers) = (Simplex::of(seen, solo_ns), Receivers::of(seen));
        let others_share = (1.0 - simplex.cpu_share - receivers.cpu_share).max(0.0);
        Repetition {
            simplex,
            receivers,
            sender: seen.sent,
            others_share,
        }
    }

    /// The share of datagrams that did not arrive; `None` if none was sent.
    pub fn lost_share(&self) -> Option<f64> {
        let sent = self.sender.count;
        (sent > 0).then(|| self.receivers.lost as f64 / sent as f64)
    }

    /// Context switches of Simplex a second.
    pub fn switches_per_s(&self) -> f64 {
        let switches = self.simplex.usage.involuntary_switches;
        per_second(switches, self.simplex.elapsed_ns)
    }
}

impl Simplex {
    fn of(seen: &Seen, solo_ns: f64) -> Simplex {
        let done = &seen.done;
        let elapsed = done.elapsed_ns.max(1) as f64;
        Simplex {
            elapsed_ns: done.elapsed_ns,
            finished_share: done.share,
            work_share: done.share * solo_ns / elapsed,
            cpu_share: done.usage.cpu_us() as f64 * 1e3 / elapsed,
            usage: done.usage,
        }
    }
}

impl Receivers {
    fn of(seen: &Seen) -> Receivers {
        let sum = |of: fn(&super::receiver::Received) -> u64| seen.received.iter().map(of).sum();
        let over_ns = seen.received.iter().map(|it| it.over_ns).max().unwrap_or(0);
        let received = sum(|it| it.sequence.arrived);
        let cpu_ns: u64 = sum(|it| it.usage.cpu_us() * 1000);
        Receivers {
            received,
            lost: seen.sent.count.saturating_sub(received),
            gaps: sum(|it| it.sequence.gaps),
            dropped: sum(|it| u64::from(it.dropped)),
            overtaken: sum(|it| it.sequence.overtaken),
            latency: Latency::of(seen),
            cpu_share: cpu_ns as f64 / over_ns.max(1) as f64,
            wakeups_per_s: per_second(sum(|it| it.usage.voluntary_switches), over_ns),
            preemptions_per_s: per_second(sum(|it| it.usage.involuntary_switches), over_ns),
        }
    }
}

impl Latency {
    fn of(seen: &Seen) -> Option<Latency> {
        let mut all = no_latencies();
        for received in &seen.received {
            // Histograms of the same bounds always fit.
            all.add(&received.latency).ok()?;
        }
        (!all.is_empty()).then(|| Latency {
            p50_ns: all.value_at_quantile(0.5),
            p99_ns: all.value_at_quantile(0.99),
            p999_ns: all.value_at_quantile(0.999),
            max_ns: all.max(),
        })
    }
}

fn per_second(count: u64, over_ns: u64) -> f64 {
    count as f64 * 1e9 / over_ns.max(1) as f64
}
