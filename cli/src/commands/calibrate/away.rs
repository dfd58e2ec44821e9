//! The tick, and what a hypervisor takes away, from the gaps of a thread that only reads the clock.

use std::time::Duration as Span;

use serde_json::{Value, json};
use warmq_experiment::RealKernel;
use warmq_experiment::calibrate::{self, Taken};
use warmq_machine::{Cost, MachineDescription};
use warmq_units::{CpuId, Cycles, Duration};
use warmq_walk::{Gap, Gaps, allowed_cpus, gaps};

use crate::failure::Failure;
use crate::progress::Watch;

/// The cost of a tick's own work.
pub const TIMER_TICK: &str = "timer_tick";
/// What else an interrupt of user mode takes.
const INTERRUPT: [&str; 3] = ["interrupt_entry", "interrupt_exit", "interrupt_return"];

/// Ticks of a second or so say what one takes.
const WATCHED: Span = Span::from_secs(1);
/// CPUs of a large machine that stand for all.
const CPUS: usize = 4;
/// So few ticks say nothing.
const FEWEST: usize = 20;

/// What was seen in the least disturbed of several tries.
pub struct Away {
    watched: Duration,
    /// What ticks take a thread, the median; none if there were few, or HZ is not known.
    tick: Option<Duration>,
    /// Times for which a CPU was away, but for ticks.
    others: Vec<Duration>,
}

/// Watches some CPUs, `tries` times.
///
/// # Errors
/// A CPU on which this thread may not run.
pub fn watch(kernel: &RealKernel, tries: u64) -> Result<Away, Failure> {
    let cpus = some(&allowed_cpus()?);
    let total = cpus.len() * tries as usize;
    let watch = Watch::over("CPUs watched by a thread that reads the clock", total);
    let mut least: Option<Away> = None;
    for number in 0..tries as usize {
        let mut seen = Vec::new();
        for (place, cpu) in cpus.iter().enumerate() {
            watch.see(number * cpus.len() + place, total, "");
            seen.push(gaps(*cpu, WATCHED)?);
        }
        let away = Away::of(&seen, period_ns(kernel));
        least = least
            .filter(|least| least.share() <= away.share())
            .or(Some(away));
    }
    Ok(least.unwrap_or_else(|| Away::of(&[], None)))
}

/// Some CPUs of many, at even distances.
fn some(cpus: &[CpuId]) -> Vec<CpuId> {
    let step = cpus.len().div_ceil(CPUS).max(1);
    cpus.iter().copied().step_by(step).collect()
}

/// The time between two ticks.
fn period_ns(kernel: &RealKernel) -> Option<u64> {
    let hz: u64 = kernel.facts.get("CONFIG_HZ")?.parse().ok()?;
    1_000_000_000_u64.checked_div(hz)
}

impl Away {
    fn of(seen: &[Gaps], period_ns: Option<u64>) -> Away {
        let watched = seen.iter().map(|gaps| gaps.watched_ns).sum();
        let (mut ticks, mut others) = (Vec::new(), Vec::new());
        for gaps in seen {
            let (tick, other) = match period_ns {
                Some(period) => gaps.divided(period),
                None => (Vec::new(), gaps.gaps.clone()),
            };
            ticks.extend(tick.iter().map(length));
            others.extend(other.iter().map(length));
        }
        ticks.sort_unstable();
        let enough = ticks.len() >= FEWEST;
        Away {
            watched: Duration::from_ns(watched),
            tick: enough.then(|| ticks[ticks.len() / 2]),
            others,
        }
    }

    /// How much of a CPU was away, but for ticks.
    fn share(&self) -> f64 {
        let away: u64 = self.others.iter().map(|gap| gap.0).sum();
        away as f64 / self.watched.0.max(1) as f64
    }

    /// Sets what takes CPUs away, and a tick's cost: what it takes besides what any interrupt of
    /// user mode does, as `machine` has that.
    pub fn set(&self, machine: &mut MachineDescription, kernel: &RealKernel, when: &str) -> Set {
        let by = format!("measured on {when}, Linux {}", kernel.release);
        let taken = calibrate::steals(self.watched, &self.others);
        machine.steals = taken.iter().map(|taken| taken.steal).collect();
        for (number, taken) in taken.iter().enumerate() {
            let source = format!("{by}: {}", said(taken, self.watched));
            machine.sources.insert(format!("steal.{number}"), source);
        }
        let tick = self.tick.map(|tick| {
            let clock = machine.clock;
            let costs = machine.costs.entry(calibrate::table(kernel)).or_default();
            let of = |name: &str| costs.get(name).map_or(0, |cost| cost.cycles.0);
            let interrupt = INTERRUPT.iter().map(|name| of(name)).sum();
            let before = Cycles(of(TIMER_TICK));
            let cycles = Cycles(clock.cycles_in(tick).0.saturating_sub(interrupt));
            let source = format!(
                "{by}: a tick takes a thread that reads the clock {tick} at the median, less what any \
                 interrupt takes"
            );
            costs.insert(TIMER_TICK.to_owned(), Cost { cycles, source });
            Tick {
                before,
                now: cycles,
                measured: tick,
            }
        });
        Set {
            tick,
            taken,
            share: self.share(),
        }
    }
}

fn length(gap: &Gap) -> Duration {
    Duration::from_ns(gap.ns)
}

fn said(taken: &Taken, watched: Duration) -> String {
    format!(
        "in {watched} in which no other task ran, a CPU was away {} times for {} and more, {} in the \
         mean",
        taken.gaps, taken.least, taken.mean
    )
}

/// A tick, measured.
pub struct Tick {
    /// The cost before.
    pub before: Cycles,
    /// The cost.
    pub now: Cycles,
    /// What it takes a thread, with the interrupt that it is.
    pub measured: Duration,
}

/// What was set.
pub struct Set {
    /// The tick; none if it could not be measured.
    pub tick: Option<Tick>,
    taken: Vec<Taken>,
    share: f64,
}

impl Set {
    /// What takes CPUs away, in a sentence.
    pub fn sentence(&self) -> String {
        let spans = self.taken.iter();
        let spans = spans.map(|taken| format!("{} every {}", taken.steal.span, taken.steal.every));
        let share = 100.0 * self.share;
        match itertools::join(spans, ", and ").as_str() {
            "" => format!("Nothing takes CPUs away for long ({share:.2} % in all)."),
            spans => format!(
                "Taken away, by a hypervisor or firmware: {share:.2} % of a CPU, as {spans} in the \
                 mean."
            ),
        }
    }

    /// The same, a row each.
    pub fn rows(&self, machine: &MachineDescription) -> Vec<Value> {
        let ns = |cycles: Cycles| machine.clock.time_of(cycles).0 as f64 / 1e3;
        let us = |span: Duration| span.0 as f64 / 1e6;
        let tick = self.tick.iter().map(|tick| {
            json!({
                "cost": TIMER_TICK, "cycles": tick.now.0, "ns": ns(tick.now),
                "before_cycles": tick.before.0, "measured_us": us(tick.measured),
            })
        });
        let steals = self.taken.iter().map(|taken| {
            json!({
                "steal_every_us": us(taken.steal.every), "steal_span_us": us(taken.steal.span),
                "seen": taken.gaps,
            })
        });
        tick.chain(steals).collect()
    }
}

#[cfg(test)]
mod tests {
    use warmq_machine::{builtin, read_toml};

    use super::*;

    const MS: u64 = 1_000_000;

    /// A second of a CPU at HZ 250, whose ticks take 10 us, and which is away for 120 us now and
    /// then.
    fn seen() -> Gaps {
        let ticks = (1..250).map(|tick| (tick * 4 * MS, 10_000));
        let away = (0..20).map(|number| (number * 48 * MS + MS, 120_000));
        let mut gaps: Vec<(u64, u64)> = ticks.chain(away).collect();
        gaps.sort_unstable();
        Gaps {
            watched_ns: 1_000 * MS,
            gaps: gaps.iter().map(|&(at_ns, ns)| Gap { at_ns, ns }).collect(),
        }
    }

    fn kernel() -> RealKernel {
        RealKernel {
            release: "6.18.44".to_owned(),
            facts: [("CONFIG_HZ", "250".to_owned())].into(),
            ..RealKernel::default()
        }
    }

    #[test]
    fn the_tick_and_what_takes_cpus_away_are_set_with_their_sources() {
        let mut machine = read_toml("epyc-vm", builtin("epyc-vm").unwrap()).unwrap();
        let away = Away::of(&[seen()], period_ns(&kernel()));
        let set = away.set(&mut machine, &kernel(), "a day");
        let costs = &machine.costs["linux-6.18"];
        let all: u64 = INTERRUPT.iter().map(|name| costs[*name].cycles.0).sum();
        let tick = machine
            .clock
            .time_of(Cycles(costs[TIMER_TICK].cycles.0 + all));
        assert!(tick >= Duration::from_us(10), "{tick}");
        let spans: Vec<Duration> = machine.steals.iter().map(|steal| steal.span).collect();
        assert_eq!(spans, [Duration::from_us(100)]);
        assert!(
            machine.sources["steal.0"].contains("20 times"),
            "{:?}",
            machine.sources
        );
        assert!(set.sentence().contains("0.24 %"), "{}", set.sentence());
        assert_eq!(set.rows(&machine).len(), 2);
        // It is a machine as any other.
        let text = machine.to_toml();
        assert_eq!(read_toml("again", &text).unwrap().steals, machine.steals);
    }

    #[test]
    fn without_a_known_hz_no_tick_is_measured() {
        let away = Away::of(&[seen()], period_ns(&RealKernel::default()));
        let mut machine = read_toml("epyc-vm", builtin("epyc-vm").unwrap()).unwrap();
        let before = machine.costs.clone();
        let set = away.set(&mut machine, &RealKernel::default(), "a day");
        assert!(set.tick.is_none());
        assert_eq!(machine.costs, before);
        let nothing = Away::of(&[], Some(4 * MS));
        let nothing = nothing.set(&mut machine, &kernel(), "a day");
        assert!(
            nothing.sentence().starts_with("Nothing"),
            "{}",
            nothing.sentence()
        );
    }

    #[test]
    fn few_cpus_stand_for_many() {
        let cpus = |count: u16| some(&(0..count).map(CpuId).collect::<Vec<_>>()).len();
        assert_eq!([0, 1, 2, 5, 64, 191].map(cpus), [0, 1, 2, 3, 4, 4]);
    }
}
