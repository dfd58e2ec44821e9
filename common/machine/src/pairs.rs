//! Pairs of CPUs by what is between them, and what a line takes from one to the other.

use warmq_units::{CpuId, Duration};

use crate::description::{Coherence, CpuPlace, MachineDescription};

warmq_units::named! {
    /// What two CPUs share, the nearest first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum PairKind {
        /// A core: they are SMT siblings.
        Core = "SMT siblings",
        /// A last-level cache.
        Cache = "cores below one last-level cache",
        /// A socket.
        Socket = "last-level caches of one socket",
        /// The machine.
        Machine = "sockets",
    }
}

impl PairKind {
    /// The time of [`Coherence::Directory`] that a line takes between two such CPUs, as
    /// [`Coherence::times`] names it. Siblings share all caches, so that no line goes from one to
    /// the other.
    pub fn time(self) -> Option<&'static str> {
        match self {
            PairKind::Core => None,
            PairKind::Cache => Some("same_domain"),
            PairKind::Socket => Some("other_domain"),
            PairKind::Machine => Some("other_socket"),
        }
    }
}

impl CpuPlace {
    fn shares(&self, other: &CpuPlace) -> PairKind {
        match (
            self.core == other.core,
            self.llc == other.llc,
            self.socket == other.socket,
        ) {
            (true, ..) => PairKind::Core,
            (_, true, _) => PairKind::Cache,
            (.., true) => PairKind::Socket,
            _ => PairKind::Machine,
        }
    }
}

impl MachineDescription {
    /// At most `most` pairs of `kind` among `cpus`: of all of them in the order of their numbers
    /// those at even distances.
    pub fn pairs(&self, kind: PairKind, cpus: &[CpuId], most: usize) -> Vec<(CpuId, CpuId)> {
        let place = |cpu: &CpuId| self.cpus[cpu.index()];
        let all: Vec<(CpuId, CpuId)> = (cpus.iter().enumerate())
            .flat_map(|(at, one)| cpus[at + 1..].iter().map(move |other| (*one, *other)))
            .filter(|(one, other)| place(one).shares(&place(other)) == kind)
            .collect();
        let step = all.len().div_ceil(most.max(1)).max(1);
        all.into_iter().step_by(step).collect()
    }

    /// Sets what a line takes between two CPUs of `kind`, by `source`. Returns what it took before;
    /// `None`, and nothing is set, where the machine has no such time.
    pub fn set_transfer(
        &mut self,
        kind: PairKind,
        takes: Duration,
        source: String,
    ) -> Option<Duration> {
        let name = kind.time()?;
        let Coherence::Directory {
            same_domain,
            other_domain,
            other_socket,
            ..
        } = &mut self.coherence
        else {
            return None;
        };
        let time = match kind {
            PairKind::Core => return None,
            PairKind::Cache => same_domain,
            PairKind::Socket => other_domain,
            PairKind::Machine => other_socket,
        };
        let before = std::mem::replace(time, takes);
        // From now on each time has a source of its own.
        if let Some(of_all) = self.sources.remove("coherence") {
            for (other, _) in self.coherence.times() {
                self.sources
                    .insert(format!("coherence.{other}"), of_all.clone());
            }
        }
        self.sources.insert(format!("coherence.{name}"), source);
        Some(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{builtin, read_toml};

    /// Two sockets of two last-level caches with two cores of two threads each.
    fn sixteen() -> MachineDescription {
        let mut machine = read_toml("m", builtin("small-4llc").unwrap()).unwrap();
        let place = |cpu: u16| CpuPlace {
            socket: cpu / 8,
            llc: cpu / 4,
            core: cpu / 2,
        };
        machine.cpus = (0..16).map(place).collect();
        machine
    }

    fn all_cpus() -> Vec<CpuId> {
        (0..16).map(CpuId).collect()
    }

    #[test]
    fn every_pair_is_of_one_kind_and_some_at_even_distances_stand_for_many() {
        let (machine, cpus) = (sixteen(), all_cpus());
        let count = |most| PairKind::ALL.map(|kind| machine.pairs(kind, &cpus, most).len());
        assert_eq!(count(usize::MAX), [8, 16, 32, 64]);
        assert_eq!(count(4), [4, 4, 4, 4]);
        assert_eq!(count(0), [1, 1, 1, 1]);
        let chosen = machine.pairs(PairKind::Core, &cpus, 4);
        let numbers: Vec<_> = chosen.iter().map(|(one, other)| (one.0, other.0)).collect();
        assert_eq!(numbers, [(0, 1), (4, 5), (8, 9), (12, 13)]);
        // CPUs that may not be used are in none.
        let two = machine.pairs(PairKind::Machine, &cpus[..8], 4);
        assert!(two.is_empty());
    }

    #[test]
    fn each_time_has_its_source_and_a_file_keeps_both() {
        let mut machine = read_toml("m", builtin("epyc-vm").unwrap()).unwrap();
        let set = Duration::from_ns(31);
        let before = machine.set_transfer(PairKind::Cache, set, "measured".to_owned());
        assert_eq!(before, Some(Duration::from_ns(25)));
        let siblings = machine.set_transfer(PairKind::Core, set, "measured".to_owned());
        assert_eq!(siblings, None);
        let text = machine.to_toml();
        let again = read_toml("m", &text).unwrap();
        assert_eq!(again.coherence, machine.coherence);
        assert!(
            text.contains("other_socket: as epyc-12llc; same_domain: measured"),
            "{text}"
        );
    }

    #[test]
    fn a_bus_keeps_its_times() {
        let mut machine = read_toml("m", builtin("p4").unwrap()).unwrap();
        let before = machine.clone();
        let set = machine.set_transfer(PairKind::Machine, Duration(1), String::new());
        assert_eq!(set, None);
        assert_eq!(machine, before);
    }
}
