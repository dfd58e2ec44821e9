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
}

/// A lock, how CPUs spin for it, and the memory through which they do.
pub(crate) struct Word<'a> {
    pub(crate) lock: &'a mut SpinLock,
    pub(crate) spinning: &'a Spinning,
    pub(crate) memory: &'a mut Memory,
}

impl Word<'_> {
    /// A locked instruction, or a store, on the lock's word.
    pub(super) fn takes(&mut self, cpu: CpuId, at: Instant) -> Duration {
        self.writes(self.lock.address, cpu, at)
    }

    fn writes(&mut self, line: Address, cpu: CpuId, at: Instant) -> Duration {
        self.memory
            .access(cpu, line, Access::Write, at, Within::Elsewhere)
    }

    fn reads(&mut self, line: Address, cpu: CpuId, at: Instant) -> Duration {
        self.memory
            .access(cpu, line, Access::Read, at, Within::Elsewhere)
    }

    /// Lockmeter writes to the lock's word after it has taken the time of the acquisition.
    pub(super) fn stamp(&mut self, cpu: CpuId, at: Instant) -> Duration {
        if !self.spinning.lockmeter {
            return Duration::ZERO;
        }
        let takes = self.takes(cpu, at);
        self.read_again(at + takes);
        takes
    }

    /// Lockmeter reads the lock's word before it takes the time of the release. Nothing where it is
    /// not compiled in.
    pub(crate) fn before_release(&mut self, cpu: CpuId, at: Instant) -> Option<Duration> {
        let measured = self.spinning.lockmeter;
        measured.then(|| self.reads(self.lock.address, cpu, at))
    }

    /// `cpu` finds the lock held and begins to spin. Under Lockmeter it tries once more first.
    pub(super) fn arrives(&mut self, cpu: CpuId, at: Instant) {
        let tries = 1 + u32::from(self.spinning.lockmeter);
        for _ in 0..tries {
            let takes = self.takes(cpu, at);
            self.read_again(at + takes);
        }
        if let (LockKind::Queued, Some((last, _))) = (self.spinning.kind, self.lock.waiters.back())
        {
            self.writes(self.spinning.nodes[last.index()], cpu, at);
        }
    }

    /// The lock's word was written: the CPUs that spin on it fetch it again.
    pub(super) fn read_again(&mut self, at: Instant) {
        let on_the_word = match self.spinning.kind {
            LockKind::TestAndSet => self.lock.waiters.len(),
            LockKind::Queued => self.lock.waiters.len().min(1),
        };
        self.all_read(on_the_word, at);
    }

    /// Which of the waiters gets the lock from `from`: the one that waited longest, or the one
    /// that the bus serves next after `from`.
    pub(super) fn next_owner(&self, from: CpuId) -> Option<usize> {
        let turn = |(index, (cpu, _)): (usize, &(CpuId, Instant))| {
            (cpu.0.wrapping_sub(from.0).wrapping_sub(1), index)
        };
        let waiters = &self.lock.waiters;
        match self.spinning.kind {
            LockKind::TestAndSet => Some(waiters.iter().enumerate().map(turn).min()?.1),
            LockKind::Queued => (!waiters.is_empty()).then_some(0),
        }
    }

    /// Hands the lock, free from `at` on, to `next`, which is no longer among the waiters. Returns
    /// when `next` has acquired it.
    pub(super) fn hands_over(&mut self, next: CpuId, at: Instant) -> Instant {
        let seen = at + self.reads(self.lock.address, next, at);
        match self.spinning.kind {
            LockKind::TestAndSet => self.fight(next, seen),
            LockKind::Queued => self.leave_queue(next, seen),
        }
    }

    /// All spinners of a test-and-set lock see it free, `next` first. Its `decb` queues behind the
    /// reads of the others, which requested the bus before.
    fn fight(&mut self, next: CpuId, seen: Instant) -> Instant {
        let losers = self.lock.waiters.len();
        let all_saw = seen + self.all_read(losers, seen);
        let taken = all_saw + self.takes(next, all_saw);
        let mut late = taken + self.all_read(losers, taken);
        for loser in 0..losers {
            late += self.takes(self.lock.waiters[loser].0, late);
        }
        self.all_read(losers.saturating_sub(1), late);
        taken
    }

    /// `next` takes a queued lock and lets the one behind it spin on the lock's word.
    fn leave_queue(&mut self, next: CpuId, seen: Instant) -> Instant {
        let mut taken = seen + self.takes(next, seen);
        if let Some((behind, _)) = self.lock.waiters.front().copied() {
            let node = self.spinning.nodes[behind.index()];
            taken += self.writes(node, next, taken);
            let fetch = self.reads(node, behind, taken);
            self.read_again(taken + fetch);
        }
        taken
    }

    /// The first `count` spinners of the lock read its word, one after the other: a line that is
    /// still in transfer to one CPU cannot be sent to the next. Returns how long that takes.
    fn all_read(&mut self, count: usize, at: Instant) -> Duration {
        let mut now = at;
        for spinner in 0..count.min(self.lock.waiters.len()) {
            now += self.reads(self.lock.address, self.lock.waiters[spinner].0, now);
        }
        now - at
    }
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

    pub(in crate::core::sync::lock) fn word<'a>(
        lock: &'a mut SpinLock,
        spinning: &'a Spinning,
        memory: &'a mut Memory,
    ) -> Word<'a> {
        Word {
            lock,
            spinning,
            memory,
        }
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
            word(&mut lock, &spinning, &mut memory)
                .request(CpuId(cpu), Instant(u64::from(cpu) * 10_000_000));
        }
        let arrival = transactions(&memory) - counted;
        let at = Instant(1_000_000_000);
        word(&mut lock, &spinning, &mut memory)
            .release(CpuId(0), at)
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
            word(&mut lock, &spinning, &mut memory).request(CpuId(cpu), Instant(0));
        }
        let before = transactions(&memory);
        word(&mut lock, &spinning, &mut memory).request(CpuId(2), Instant(10_000_000));
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
            word(&mut lock, &spinning, &mut memory)
                .request(CpuId(3), now)
                .expect("it is free");
            word(&mut lock, &spinning, &mut memory).release(CpuId(3), now + Duration(500_000));
            if round == 0 {
                counted = transactions(&memory);
            }
        }
        assert_eq!(transactions(&memory), counted);
    }
}
