//! What a line takes from one CPU to another, for each kind of pair that this machine has.

use std::path::Path;

use serde_json::{Value, json};
use warmq_experiment::RealKernel;
use warmq_machine::{MachineDescription, PairKind};
use warmq_units::{CpuId, Duration};
use warmq_walk::{allowed_cpus, transfer_ns};

use crate::failure::Failure;
use crate::progress::Watch;

/// So many pairs of a kind are measured at most.
const PAIRS: usize = 4;

/// What was measured between CPUs of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfer {
    kind: PairKind,
    /// What a line took between each of some pairs, the shortest first; empty if there is no pair.
    pairs: Vec<Duration>,
    /// What the machine had before, if it has such a time.
    before: Option<Duration>,
}

/// Measures between some pairs of each kind, and sets what they take.
///
/// # Errors
/// A CPU on which this program may not run.
pub fn measure(
    machine: &mut MachineDescription,
    kernel: &RealKernel,
    when: &str,
) -> Result<Vec<Transfer>, Failure> {
    let online = warmq_host::online(Path::new("/"))?;
    let allowed = allowed_cpus()?;
    // The description numbers those that are online.
    let numbered = (0..).map(CpuId).zip(&online);
    let usable = numbered.filter(|(_, cpu)| allowed.contains(cpu));
    let usable: Vec<CpuId> = usable.map(|(number, _)| number).collect();
    let watch = Watch::over("kinds of pairs of CPUs", PairKind::ALL.len());
    let mut seen = Vec::new();
    for (done, kind) in PairKind::ALL.into_iter().enumerate() {
        watch.see(done, PairKind::ALL.len(), kind.name());
        let pairs = machine.pairs(kind, &usable, PAIRS).into_iter();
        let takes =
            pairs.map(|(one, other)| transfer_ns(online[one.index()], online[other.index()]));
        seen.push((kind, takes.collect::<Result<Vec<f64>, _>>()?));
    }
    let by = format!("measured on {when}, Linux {}", kernel.release);
    Ok(set(machine, seen, &by))
}

/// Sets what was `seen`, in ns: of the pairs of a kind the middle one counts.
fn set(
    machine: &mut MachineDescription,
    seen: Vec<(PairKind, Vec<f64>)>,
    by: &str,
) -> Vec<Transfer> {
    let each = seen.into_iter().map(|(kind, ns)| {
        let takes = ns.iter().map(|ns| Duration((ns * 1e3) as u64));
        let mut transfer = Transfer {
            kind,
            pairs: takes.collect(),
            before: None,
        };
        transfer.pairs.sort_unstable();
        if let (Some(takes), Some((least, most))) = (transfer.takes(), transfer.range()) {
            let source = format!(
                "{by}: loads of lines that another CPU wrote last, {} of {}, {least} to {most}",
                pairs(transfer.pairs.len()),
                kind.name()
            );
            transfer.before = machine.set_transfer(kind, takes, source);
        }
        transfer
    });
    each.collect()
}

fn pairs(count: usize) -> String {
    match count {
        1 => "a pair".to_owned(),
        count => format!("{count} pairs"),
    }
}

impl Transfer {
    fn takes(&self) -> Option<Duration> {
        self.pairs.get(self.pairs.len() / 2).copied()
    }

    fn range(&self) -> Option<(Duration, Duration)> {
        self.pairs.first().copied().zip(self.pairs.last().copied())
    }

    /// The cells of its row: what, before, now, measured, most; none if there is no such pair.
    pub fn cells(&self) -> Option<[String; 5]> {
        let (takes, (_, most)) = (self.takes()?, self.range()?);
        let (before, now) = match self.before {
            Some(before) => (before.to_string(), takes.to_string()),
            None => Default::default(),
        };
        let what = format!("line, {}", self.kind.name());
        Some([what, before, now, takes.to_string(), most.to_string()])
    }

    /// The same for programs.
    pub fn row(&self) -> Option<Value> {
        let ns = |span: Duration| span.0 as f64 / 1e3;
        let (takes, (least, most)) = (self.takes()?, self.range()?);
        Some(json!({
            "transfer": self.kind.name(), "sets": self.before.and(self.kind.time()),
            "ns": ns(takes), "least_ns": ns(least), "most_ns": ns(most),
            "pairs": self.pairs.len(), "before_ns": self.before.map(ns),
        }))
    }
}

/// Which kinds this machine lacks, in a sentence.
pub fn missing(transfers: &[Transfer]) -> Option<String> {
    let missing = transfers
        .iter()
        .filter(|transfer| transfer.pairs.is_empty());
    let missing = itertools::join(missing.map(|transfer| transfer.kind.name()), ", ");
    let what = "Not measured, as there is no such pair of CPUs: what a line takes between";
    (!missing.is_empty()).then(|| format!("{what} {missing}."))
}

#[cfg(test)]
mod tests {
    use warmq_machine::{Coherence, CpuPlace, builtin, read_toml};

    use super::*;

    /// Two sockets of one last-level cache with four cores of two threads each.
    fn sixteen() -> MachineDescription {
        let mut machine = read_toml("m", builtin("epyc-vm").unwrap()).unwrap();
        let place = |cpu: u16| CpuPlace {
            socket: cpu / 8,
            llc: cpu / 8,
            core: cpu / 2,
        };
        machine.cpus = (0..16).map(place).collect();
        machine
    }

    /// As a machine would answer: nearer CPUs sooner, and one pair of each kind was disturbed.
    fn seen(machine: &MachineDescription) -> Vec<(PairKind, Vec<f64>)> {
        let cpus: Vec<CpuId> = (0..16).map(CpuId).collect();
        let base = |kind| match kind {
            PairKind::Core => 2.0,
            PairKind::Cache => 21.5,
            PairKind::Socket => 90.0,
            PairKind::Machine => 210.0,
        };
        let each = PairKind::ALL.into_iter().map(|kind| {
            let pairs = machine.pairs(kind, &cpus, PAIRS);
            let ns = (0..pairs.len()).map(|pair| match pair {
                1 => 9.0 * base(kind),
                pair => base(kind) + pair as f64,
            });
            (kind, ns.collect())
        });
        each.collect()
    }

    #[test]
    fn the_middle_pair_of_each_kind_counts_and_what_is_missing_is_said() {
        let mut machine = sixteen();
        let seen = seen(&machine);
        let transfers = set(&mut machine, seen, "measured on a day");
        let Coherence::Directory {
            same_domain,
            other_domain,
            other_socket,
            ..
        } = machine.coherence
        else {
            panic!("{:?}", machine.coherence);
        };
        // Of 21.5, 23.5, 24.5 and 193.5 ns the third.
        assert_eq!(same_domain, Duration(24_500));
        assert_eq!(other_socket, Duration(213_000));
        // No two last-level caches are in one socket.
        assert_eq!(other_domain, Duration::from_ns(110));
        assert_eq!(machine.sources["coherence.other_domain"], "as epyc-12llc");
        let source = &machine.sources["coherence.same_domain"];
        assert!(source.contains("4 pairs of cores"), "{source}");
        let said = missing(&transfers).unwrap();
        assert!(
            said.ends_with("between last-level caches of one socket."),
            "{said}"
        );
        let rows: Vec<_> = transfers.iter().filter_map(Transfer::row).collect();
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[0]["sets"], Value::Null);
        assert_eq!(rows[1]["sets"], "same_domain");
        assert_eq!(transfers.iter().filter_map(Transfer::cells).count(), 3);
    }

    #[test]
    fn of_one_cpu_nothing_is_measured() {
        let mut machine = sixteen();
        let before = machine.clone();
        let none = PairKind::ALL.map(|kind| (kind, Vec::new()));
        let transfers = set(&mut machine, none.into(), "measured on a day");
        assert_eq!(machine, before);
        assert_eq!(transfers.iter().filter_map(Transfer::row).count(), 0);
        let said = missing(&transfers).unwrap();
        assert!(said.contains("SMT siblings, cores"), "{said}");
    }
}
