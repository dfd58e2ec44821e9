//! The cache and bus traffic of spin locks: arrivals, hand-overs, and Lockmeter's own accesses.
//!
//! Every access goes through the caches like any other, so it takes lines from other caches,
//! occupies the bus, and is short if no other CPU wants the lock. Only accesses that a CPU waits
//! for take time; those of the losers of a hand-over only delay other accesses.
//!
//! Hand-over of a test-and-set lock with `k` spinners, on a MESI bus: the store that releases (the
//! spinners' `decb` took the line away); `k` reads that find the lock free; the winner's `decb`;
//! the losers' next read, which was under way already, and their failing `decb`; and another read
//! by each loser but the last. That is 3, 6, 10 and 26 transactions for k = 1, 2, 3 and 7.

use std::collections::VecDeque;

use warmq_machine::Access;
use warmq_units::{Address, CpuId, Duration, Instant};

use crate::core::memory::{Memory, Within};
use crate::core::sync::SpinLock;
use crate::words::LockKind;

/// How the spin locks of this kernel work, and whether Lockmeter measures them.
pub(crate) struct Spinning {
    kind: LockKind,
    /// Whether Lockmeter is compiled into the kernel.
    pub(crate) lockmeter: bool,
    /// The line on which each CPU waits for a queued lock.
    nodes: Vec<Address>,
}

impl Spinning {
    /// `nodes` are needed for queued locks only: a separate line for each CPU.
    pub(crate) fn new(kind: LockKind, nodes: Vec<Address>) -> Spinning {
        let lockmeter = false;
        Spinning {
            kind,
            lockmeter,
            nodes,
        }
    }

    /// A locked instruction, or a store, on the lock's word.
    pub(super) fn takes(
        &self,
        memory: &mut Memory,
        word: Address,
        cpu: CpuId,
        at: Instant,
    ) -> Duration {
        memory.access(cpu, word, Access::Write, at, Within::Elsewhere)
    }

    /// Lockmeter writes to the lock's word after it has taken the time of the acquisition.
    pub(super) fn stamp(
        &self,
        memory: &mut Memory,
        lock: &SpinLock,
        cpu: CpuId,
        at: Instant,
    ) -> Duration {
        if !self.lockmeter {
            return Duration::ZERO;
        }
        let takes = self.takes(memory, lock.address, cpu, at);
        self.read_again(memory, lock, at + takes);
        takes
    }

    /// Lockmeter reads the lock's word before it takes the time of the release.
    pub(crate) fn before_release(
        &self,
        memory: &mut Memory,
        lock: &SpinLock,
        cpu: CpuId,
        at: Instant,
    ) -> Duration {
        match self.lockmeter {
            true => memory.access(cpu, lock.address, Access::Read, at, Within::Elsewhere),
            false => Duration::ZERO,
        }
    }

    /// `cpu` finds the lock held and begins to spin. Under Lockmeter it tries once more first.
    pub(super) fn arrives(&self, memory: &mut Memory, lock: &SpinLock, cpu: CpuId, at: Instant) {
        let tries = 1 + u32::from(self.lockmeter);
        for _ in 0..tries {
            let takes = self.takes(memory, lock.address, cpu, at);
            self.read_again(memory, lock, at + takes);
        }
        if let (LockKind::Queued, Some((last, _))) = (self.kind, lock.waiters.back()) {
            self.takes(memory, self.nodes[last.index()], cpu, at);
        }
    }

    /// The lock's word was written: the CPUs that spin on it fetch it again.
    pub(super) fn read_again(&self, memory: &mut Memory, lock: &SpinLock, at: Instant) {
        let on_the_word = match self.kind {
            LockKind::TestAndSet => lock.waiters.len(),
            LockKind::Queued => lock.waiters.len().min(1),
        };
        all_read(memory, lock, on_the_word, at);
    }

    /// Which of the waiters gets the lock from `from`: the one that waited longest, or the one
    /// that the bus serves next after `from`.
    pub(super) fn next_owner(
        &self,
        waiters: &VecDeque<(CpuId, Instant)>,
        from: CpuId,
    ) -> Option<usize> {
        let turn = |(index, (cpu, _)): (usize, &(CpuId, Instant))| {
            (cpu.0.wrapping_sub(from.0).wrapping_sub(1), index)
        };
        match self.kind {
            LockKind::TestAndSet => Some(waiters.iter().enumerate().map(turn).min()?.1),
            LockKind::Queued => (!waiters.is_empty()).then_some(0),
        }
    }

    /// Hands the lock, free from `at` on, to `next`, which is no longer among the waiters. Returns
    /// when `next` has acquired it.
    pub(super) fn hands_over(
        &self,
        memory: &mut Memory,
        lock: &SpinLock,
        next: CpuId,
        at: Instant,
    ) -> Instant {
        let word = lock.address;
        let seen = at + memory.access(next, word, Access::Read, at, Within::Elsewhere);
        match self.kind {
            LockKind::TestAndSet => self.fight(memory, lock, next, seen),
            LockKind::Queued => self.leave_queue(memory, lock, next, seen),
        }
    }

    /// All spinners of a test-and-set lock see it free, `next` first. Its `decb` queues behind the
    /// reads of the others, which requested the bus before.
    fn fight(&self, memory: &mut Memory, lock: &SpinLock, next: CpuId, seen: Instant) -> Instant {
        let losers = lock.waiters.len();
        let all_saw = seen + all_read(memory, lock, losers, seen);
        let taken = all_saw + self.takes(memory, lock.address, next, all_saw);
        let mut late = taken + all_read(memory, lock, losers, taken);
        for (loser, _) in &lock.waiters {
            late += self.takes(memory, lock.address, *loser, late);
        }
        all_read(memory, lock, losers.saturating_sub(1), late);
        taken
    }

    /// `next` takes a queued lock and lets the one behind it spin on the lock's word.
    fn leave_queue(
        &self,
        memory: &mut Memory,
        lock: &SpinLock,
        next: CpuId,
        seen: Instant,
    ) -> Instant {
        let mut taken = seen + self.takes(memory, lock.address, next, seen);
        if let Some((behind, _)) = lock.waiters.front() {
            let node = self.nodes[behind.index()];
            taken += self.takes(memory, node, next, taken);
            let fetch = memory.access(*behind, node, Access::Read, taken, Within::Elsewhere);
            self.read_again(memory, lock, taken + fetch);
        }
        taken
    }
}

/// The first `count` spinners of `lock` read its word, one after the other: a line that is still in
/// transfer to one CPU cannot be sent to the next. Returns how long that takes.
fn all_read(memory: &mut Memory, lock: &SpinLock, count: usize, at: Instant) -> Duration {
    let mut now = at;
    for (cpu, _) in lock.waiters.iter().take(count) {
        now += memory.access(*cpu, lock.address, Access::Read, now, Within::Elsewhere);
    }
    now - at
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use warmq_machine::{Fragmentation, Hierarchy, Options, PhysicalMemory, builtin, read_toml};
    use warmq_units::Seed;

    /// The memory of the 8-way machine of the coloring paper.
    pub(in crate::core::sync::lock) fn memory(caches: bool) -> Memory {
        let text = builtin("p3xeon-8way").expect("a shipped machine");
        let machine = read_toml("p3xeon-8way.toml", text).expect("a sound machine");
        let hierarchy = caches.then(|| Hierarchy::new(&machine, Options::default()));
        let pages = Seed(1).stream("pages");
        let physical = PhysicalMemory::new(&machine.memory, Fragmentation::Fresh, pages);
        let (page, line) = (machine.memory.page, machine.caches[0].line);
        let mut memory = Memory::new(hierarchy, physical, page, line, 1);
        memory.switch_caches_on();
        memory
    }

    fn transactions(memory: &Memory) -> u64 {
        let hierarchy = memory.hierarchy().expect("the caches are on");
        hierarchy.counts().bus.transactions()
    }

    /// The bus transactions of one hand-over among `spinners`, and of one more arrival before it.
    fn hand_over(kind: LockKind, spinners: u16) -> (u64, u64) {
        let nodes = (0..8).map(|cpu| Address(0x1_0000 + cpu * 0x40)).collect();
        let (spinning, mut memory) = (Spinning::new(kind, nodes), memory(true));
        let mut lock = SpinLock::new("queue", Address(0x40));
        let mut counted = 0;
        for cpu in 0..=spinners {
            counted = transactions(&memory);
            lock.request(
                &spinning,
                &mut memory,
                CpuId(cpu),
                Instant(u64::from(cpu) * 10_000_000),
            );
        }
        let arrival = transactions(&memory) - counted;
        let at = Instant(1_000_000_000);
        lock.release(&spinning, &mut memory, CpuId(0), at)
            .expect("the holder");
        (arrival, transactions(&memory) - counted - arrival)
    }

    /// Decision case 17 of the coloring paper's specification, and the cost of another arrival: one
    /// read for ownership, and a read by each CPU that spins already.
    #[test]
    fn a_test_and_set_lock_costs_more_the_more_spin() {
        for (spinners, least, most) in [(1, 3, 3), (2, 6, 6), (3, 9, 10), (7, 21, 36)] {
            let (arrival, cost) = hand_over(LockKind::TestAndSet, spinners);
            assert_eq!(arrival, u64::from(spinners), "{spinners} spinners");
            assert!(
                (least..=most).contains(&cost),
                "{spinners} spinners: {cost}"
            );
        }
    }

    /// The cost does not depend on the length of the queue.
    #[test]
    fn a_queued_lock_costs_the_same_whoever_waits() {
        let (_, alone) = hand_over(LockKind::Queued, 1);
        let (_, of_two) = hand_over(LockKind::Queued, 2);
        assert!(
            alone < of_two,
            "{alone} {of_two}: the next in the queue must be notified"
        );
        for spinners in [3, 7] {
            assert_eq!(hand_over(LockKind::Queued, spinners).1, of_two);
        }
    }

    #[test]
    fn lockmeter_makes_an_arrival_write_twice() {
        let nodes = Vec::new();
        let mut spinning = Spinning::new(LockKind::TestAndSet, nodes);
        spinning.lockmeter = true;
        let mut memory = memory(true);
        let mut lock = SpinLock::new("queue", Address(0x40));
        for cpu in 0..2 {
            lock.request(&spinning, &mut memory, CpuId(cpu), Instant(0));
        }
        let before = transactions(&memory);
        lock.request(&spinning, &mut memory, CpuId(2), Instant(10_000_000));
        // Two reads for ownership, and after each the CPU that spins already reads again.
        assert_eq!(transactions(&memory) - before, 4);
    }

    /// An uncontended lock stays in its owner's cache.
    #[test]
    fn a_free_lock_costs_nothing_on_the_bus() {
        let (spinning, mut memory) = (
            Spinning::new(LockKind::TestAndSet, Vec::new()),
            memory(true),
        );
        let mut lock = SpinLock::new("queue", Address(0x40));
        let mut counted = 0;
        for round in 0..3 {
            let now = Instant(round * 1_000_000);
            lock.request(&spinning, &mut memory, CpuId(3), now)
                .expect("it is free");
            lock.release(&spinning, &mut memory, CpuId(3), now + Duration(500_000));
            if round == 0 {
                counted = transactions(&memory);
            }
        }
        assert_eq!(transactions(&memory), counted);
    }
}
