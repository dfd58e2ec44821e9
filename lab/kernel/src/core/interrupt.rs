//! Pending interrupts and softirqs of a CPU.

use crate::words::Nic;

/// The vectors of an interrupt controller. One interrupt of each vector can be pending on a CPU;
/// another one that arrives meanwhile merges with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vector {
    /// The CPU is taken away. The kernel sees no such interrupt.
    Steal,
    /// Another CPU asks this one to reschedule.
    Reschedule,
    /// The periodic tick.
    Tick,
    /// Armed timers have expired.
    Timer,
    /// Operators have asked for changes. No real machine has this one, and it costs nothing.
    Change,
    /// A network card has packets in its ring.
    Network(Nic),
}

/// Vectors before those of network cards.
const FIXED: u32 = 5;

/// Cards with a vector of their own; card n shares the vector of card n modulo this.
pub(crate) const CARD_VECTORS: u32 = u64::BITS - FIXED;

impl Vector {
    fn bit(self) -> u32 {
        match self {
            Vector::Steal => 0,
            Vector::Reschedule => 1,
            Vector::Tick => 2,
            Vector::Timer => 3,
            Vector::Change => 4,
            Vector::Network(nic) => FIXED + nic.0 % CARD_VECTORS,
        }
    }

    fn of_bit(bit: u32) -> Vector {
        match bit {
            0 => Vector::Steal,
            1 => Vector::Reschedule,
            2 => Vector::Tick,
            3 => Vector::Timer,
            4 => Vector::Change,
            card => Vector::Network(Nic(card - FIXED)),
        }
    }
}

/// The pending interrupts of a CPU: one bit per vector. The lowest bit is served first, as an APIC
/// serves the highest priority first. Linux on x86 gives reschedule interrupts and the local timer
/// the highest vectors, and devices lower ones (`arch/x86/include/asm/irq_vectors.h`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PendingInterrupts(u64);

impl PendingInterrupts {
    /// Marks `vector` as pending; false if it was pending already, so that the two merge.
    pub(crate) fn raise(&mut self, vector: Vector) -> bool {
        let bit = 1 << vector.bit();
        let new = self.0 & bit == 0;
        self.0 |= bit;
        new
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Takes the pending vector of the highest priority.
    #[inline]
    pub(crate) fn take_first(&mut self) -> Option<Vector> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(Vector::of_bit(bit))
    }
}

/// The softirqs of the engine, in the order in which they run (`kernel/softirq.c`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Softirq {
    /// Polls network cards (`net_rx_action()`).
    NetRx,
    /// Lets the scheduler balance (`SCHED_SOFTIRQ`).
    Sched,
}

/// The softirqs that are raised on a CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PendingSoftirqs {
    net_rx: bool,
    sched: bool,
}

impl PendingSoftirqs {
    pub(crate) fn raise(&mut self, softirq: Softirq) {
        match softirq {
            Softirq::NetRx => self.net_rx = true,
            Softirq::Sched => self.sched = true,
        }
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        !self.net_rx && !self.sched
    }

    /// Takes all raised softirqs, in the order in which they run.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Softirq> + use<> {
        let taken = std::mem::take(self);
        let net_rx = taken.net_rx.then_some(Softirq::NetRx);
        let sched = taken.sched.then_some(Softirq::Sched);
        net_rx.into_iter().chain(sched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_interrupt_of_a_vector_waits_and_the_timer_goes_before_devices() {
        let mut pending = PendingInterrupts::default();
        assert!(pending.raise(Vector::Network(Nic(1))));
        assert!(pending.raise(Vector::Tick));
        assert!(!pending.raise(Vector::Network(Nic(1))), "merged");
        assert_eq!(pending.take_first(), Some(Vector::Tick));
        assert_eq!(pending.take_first(), Some(Vector::Network(Nic(1))));
        assert_eq!(pending.take_first(), None);
        assert!(pending.is_empty());
    }

    #[test]
    fn cards_beyond_the_vectors_share_one() {
        let mut pending = PendingInterrupts::default();
        assert!(pending.raise(Vector::Network(Nic(2))));
        assert!(!pending.raise(Vector::Network(Nic(2 + CARD_VECTORS))));
    }
}
