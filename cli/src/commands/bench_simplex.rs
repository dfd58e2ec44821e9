//! `warmq bench simplex`: what can be typed.

use std::time::Duration;

use clap::Args;
use warmq_bench::simplex::{LinkKind, Policy, SimplexSettings};
use warmq_units::CpuId;

use crate::failure::Failure;
use crate::output;
use crate::simplex;

const EXAMPLES: &str = "\
Examples:
  warmq bench simplex
  warmq bench simplex --kpps 40 --repetitions 30 --policies batch
  warmq bench simplex --kpps 5,40 --scheduler 'scx_warmq --preempt-interval 1ms'
  warmq bench simplex --json | jq '{kpps, policy, work: .work_share.median}'

A datagram counts when it was sent while Simplex worked. Work is compared with Simplex alone while
the sender spins and sends nothing. Simplex and the receivers are threads of one program, so that a
switch between them changes no address space.";

/// Simplex and receivers of datagrams on one CPU, a sender on another.
///
/// Simplex does a fixed amount of work in registers; each receiver reads UDP datagrams one by one;
/// the sender spaces them evenly. Each rate is measured with the receivers in each policy in turn,
/// and with and without a loaded scheduler if one is named.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct SimplexArguments {
    /// Receivers beside Simplex; the datagrams go to them in turn [default: 1].
    #[arg(long, value_name = "N")]
    receivers: Option<u32>,
    /// Rates in thousand datagrams a second, 1 to 1000, all receivers together [default:
    /// 5,20,40,80].
    #[arg(long, value_name = "RATE", value_delimiter = ',')]
    kpps: Option<Vec<u32>>,
    /// How long Simplex takes alone, in seconds [default: 0.7].
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    work: Option<Duration>,
    /// Bytes in a datagram [default: 64].
    #[arg(long, value_name = "BYTES")]
    payload: Option<u32>,
    /// The receivers' policies, compared in turn: other, batch [default: other,batch].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    policies: Option<Vec<Policy>>,
    /// What lies between: loopback, or veth in network namespaces of its own, as root [default:
    /// loopback].
    #[arg(long, value_name = "loopback|veth")]
    link: Option<LinkKind>,
    /// Measurements of each kind; medians and all of them are shown [default: 3].
    #[arg(long, value_name = "R")]
    repetitions: Option<u32>,
    /// A command that loads a sched_ext scheduler until it gets SIGINT; measured with and without.
    #[arg(long, value_name = "COMMAND")]
    scheduler: Option<String>,
    /// No measurement begins after so many seconds, and a running one is cut short [default: 300].
    #[arg(long, value_name = "S", value_parser = seconds)]
    time_limit: Option<Duration>,
    /// The CPU of Simplex and the receivers [default: the last one allowed].
    #[arg(long, value_name = "CPU")]
    cpu: Option<u16>,
    /// The CPU of the sender [default: another one, best on another core].
    #[arg(long, value_name = "CPU")]
    sender_cpu: Option<u16>,
    /// Print one JSON row per line, and nothing else, on standard output.
    #[arg(long)]
    json: bool,
}

/// Seconds as a plain number, or any time with its unit.
fn seconds(text: &str) -> Result<Duration, String> {
    let plain = text.parse().ok();
    let plain = plain.and_then(|number| Duration::try_from_secs_f64(number).ok());
    let with_unit = || {
        let span = text.parse::<warmq_units::Duration>().ok();
        span.map(|span| Duration::from_nanos(span.as_ns()))
    };
    plain.or_else(with_unit).ok_or_else(|| {
        "write seconds, as in 0.7, or a whole number and a unit, as in 700ms".to_owned()
    })
}

/// Measures and shows.
pub fn run(arguments: &SimplexArguments) -> Result<(), Failure> {
    let report = simplex::measure(&arguments.settings())?;
    if arguments.json {
        return output::print(&simplex::json_lines(&report));
    }
    output::print(&simplex::table(&report))
}

impl SimplexArguments {
    fn settings(&self) -> SimplexSettings {
        let usual = SimplexSettings::default();
        SimplexSettings {
            receivers: self.receivers.unwrap_or(usual.receivers),
            kpps: self.kpps.clone().unwrap_or(usual.kpps),
            work: self.work.unwrap_or(usual.work),
            payload: self.payload.unwrap_or(usual.payload),
            policies: self.policies.clone().unwrap_or(usual.policies),
            link: self.link.unwrap_or(usual.link),
            repetitions: self.repetitions.unwrap_or(usual.repetitions),
            scheduler: self.scheduler.clone().or(usual.scheduler),
            time_limit: self.time_limit.unwrap_or(usual.time_limit),
            cpu: self.cpu.map(CpuId).or(usual.cpu),
            sender_cpu: self.sender_cpu.map(CpuId).or(usual.sender_cpu),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_unless_they_have_a_unit() {
        assert_eq!(seconds("0.7"), Ok(Duration::from_millis(700)));
        assert_eq!(seconds("2"), Ok(Duration::from_secs(2)));
        assert_eq!(seconds("700ms"), Ok(Duration::from_millis(700)));
        for wrong in ["", "-1", "many", "1e99", "nan"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
