//! Which CPUs are a place.

use warmq_affinity::rules::Place;
use warmq_kernel::Attach;
use warmq_units::CpuId;

/// What a place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Cpu,
    LastLevelCache,
}

/// The places of a machine.
pub(super) struct Places {
    of: Vec<Place>,
    cpus: Vec<Vec<CpuId>>,
}

impl Places {
    pub(super) fn new(attach: &Attach<'_>, kind: Kind) -> Places {
        let cpus = (0..attach.cpus()).map(CpuId);
        let number = |cpu: CpuId| match kind {
            Kind::Cpu => cpu.0,
            Kind::LastLevelCache => attach.place(cpu).llc,
        };
        Places::numbered(cpus.map(number).collect())
    }

    /// Places by the number of each CPU's; numbers may have gaps.
    fn numbered(numbers: Vec<u16>) -> Places {
        let mut known = numbers.clone();
        known.sort_unstable();
        known.dedup();
        let place = |number: &u16| Place(known.partition_point(|known| known < number) as u16);
        let of: Vec<Place> = numbers.iter().map(place).collect();
        let mut cpus = vec![Vec::new(); known.len()];
        for (cpu, place) in (0..).map(CpuId).zip(&of) {
            cpus[place.index()].push(cpu);
        }
        Places { of, cpus }
    }

    /// The place of `cpu`.
    pub(super) fn of(&self, cpu: CpuId) -> Place {
        self.of[cpu.index()]
    }

    /// The place of each CPU, in their order.
    pub(super) fn of_cpus(&self) -> impl Iterator<Item = Place> + '_ {
        self.of.iter().copied()
    }

    /// The CPUs of `place`.
    pub(super) fn cpus(&self, place: Place) -> &[CpuId] {
        &self.cpus[place.index()]
    }

    pub(super) fn count(&self) -> usize {
        self.cpus.len()
    }

    /// All places.
    pub(super) fn all(&self) -> impl Iterator<Item = Place> + use<> {
        (0..self.cpus.len() as u16).map(Place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_of_one_cache_are_one_place_whatever_its_number() {
        let places = Places::numbered(vec![4, 4, 9, 4]);
        assert_eq!(places.count(), 2);
        assert_eq!(places.of(CpuId(3)), Place(0));
        assert_eq!(places.cpus(Place(0)), [CpuId(0), CpuId(1), CpuId(3)]);
        assert_eq!(places.cpus(Place(1)), [CpuId(2)]);
    }
}
