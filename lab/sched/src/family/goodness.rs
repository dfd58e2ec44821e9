//! `goodness()` of Linux 2.4.4 (kernel/sched.c), as arithmetic.

use warmq_kernel::{Mm, Policy, View};
use warmq_units::CpuId;

/// What having run on this CPU last is worth (PROC_CHANGE_PENALTY on SMP x86).
pub(crate) const AFFINITY: i32 = 15;
/// What sharing the address space of the task that leaves is worth.
pub(crate) const SAME_MM: i32 = 1;
/// Less than any goodness: what the idle task has.
pub(crate) const IDLE: i32 = -1_000;
/// Real-time tasks start here.
const REAL_TIME: i32 = 1_000;

/// What the weight of a task on a CPU depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(crate) policy: Policy,
    pub(crate) nice: i8,
    /// Ticks left of its time slice.
    pub(crate) counter: i32,
    /// It called `sched_yield` since it was picked last.
    pub(crate) yielded: bool,
    pub(crate) last_here: bool,
    pub(crate) same_mm: bool,
}

impl Candidate {
    pub(crate) fn new(
        view: View<'_>,
        counter: i32,
        yielded: bool,
        cpu: CpuId,
        mm: Option<Mm>,
    ) -> Candidate {
        Candidate {
            policy: view.policy(),
            nice: view.nice(),
            counter,
            yielded,
            last_here: view.last_cpu() == cpu,
            // A kernel thread has no address space to switch to.
            same_mm: view.mm().is_none() || view.mm() == mm,
        }
    }

    /// The same for a CPU where the task did not run last.
    pub(crate) fn without_affinity(self) -> Candidate {
        Candidate {
            last_here: false,
            ..self
        }
    }

    /// The same for a CPU where it did not run last, after a task of another address space.
    pub(crate) fn without_bonuses(self) -> Candidate {
        Candidate {
            same_mm: false,
            ..self.without_affinity()
        }
    }

    /// How much this CPU should want to run the task. Zero means that its slice is used up, less
    /// than zero that it gave way.
    ///
    /// ```text
    ///     SCHED_OTHER:  counter + 20 - nice + 15 (ran here last) + 1 (same mm);  0 if counter = 0
    ///     real time:    1000 + priority
    /// ```
    pub(crate) fn goodness(self) -> i32 {
        match (self.yielded, self.policy.real_time()) {
            (true, _) => -1,
            (false, Some(priority)) => REAL_TIME + i32::from(priority),
            (false, None) if self.counter == 0 => 0,
            (false, None) => {
                let affinity = if self.last_here { AFFINITY } else { 0 };
                let same_mm = if self.same_mm { SAME_MM } else { 0 };
                static_goodness(self.counter, self.nice) + affinity + same_mm
            }
        }
    }
}

/// True for the policies whose goodness is a priority and nothing else.
pub(crate) fn is_real_time(policy: Policy) -> bool {
    policy.real_time().is_some()
}

/// The part of the weight that is the same on every CPU: counter + 20 - nice.
pub(crate) fn static_goodness(counter: i32, nice: i8) -> i32 {
    counter + 20 - i32::from(nice)
}

/// A new time slice in ticks of a hundredth of a second: 6 for nice 0, 11 for -20, 1 for 19
/// (NICE_TO_TICKS at HZ = 100).
pub(crate) fn ticks(nice: i8) -> i32 {
    ((20 - i32::from(nice)) >> 2) + 1
}

/// What a task has after a recalculation: half of what it had, and a new slice.
pub(crate) fn renewed(counter: i32, nice: i8) -> i32 {
    counter / 2 + ticks(nice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_follow_nice() {
        let table = [(-20, 11), (-10, 8), (0, 6), (10, 3), (19, 1)];
        for (nice, expected) in table {
            assert_eq!(ticks(nice), expected, "nice {nice}");
        }
    }

    /// Decision case 2 of the coloring paper's specification.
    #[test]
    fn the_two_bonuses() {
        let task = |last_here, same_mm| Candidate {
            policy: Policy::Other,
            nice: 0,
            counter: 6,
            yielded: false,
            last_here,
            same_mm,
        };
        let table = [
            ((true, true), 42),
            ((true, false), 41),
            ((false, true), 27),
            ((false, false), 26),
        ];
        for ((last_here, same_mm), expected) in table {
            assert_eq!(task(last_here, same_mm).goodness(), expected);
        }
        let real_time = Candidate {
            policy: Policy::Fifo(50),
            ..task(false, false)
        };
        assert_eq!(real_time.goodness(), 1_050);
    }

    /// Decision cases 1 and 5: a sleeper saves up to 11, and two CPUs at once add twice.
    #[test]
    fn half_is_kept_and_a_slice_added() {
        for (counter, expected) in [(0, 6), (6, 9), (9, 10), (10, 11), (11, 11)] {
            assert_eq!(renewed(counter, 0), expected);
        }
        assert_eq!(renewed(renewed(0, 0), 0), 9);
    }

    #[test]
    fn goodness_by_table() {
        let plain = Candidate {
            policy: Policy::Other,
            nice: 0,
            counter: 6,
            yielded: false,
            last_here: false,
            same_mm: false,
        };
        let table = [
            (plain, 26),
            (
                Candidate {
                    last_here: true,
                    ..plain
                },
                41,
            ),
            (
                Candidate {
                    same_mm: true,
                    ..plain
                },
                27,
            ),
            (
                Candidate {
                    last_here: true,
                    same_mm: true,
                    ..plain
                },
                42,
            ),
            (
                Candidate {
                    counter: 0,
                    last_here: true,
                    same_mm: true,
                    ..plain
                },
                0,
            ),
            (
                Candidate {
                    nice: 19,
                    counter: 1,
                    ..plain
                },
                2,
            ),
            (
                Candidate {
                    nice: -20,
                    counter: 11,
                    ..plain
                },
                51,
            ),
            (
                Candidate {
                    yielded: true,
                    ..plain
                },
                -1,
            ),
            (
                Candidate {
                    policy: Policy::Fifo(3),
                    counter: 0,
                    ..plain
                },
                1_003,
            ),
            (
                Candidate {
                    policy: Policy::RoundRobin(99),
                    yielded: true,
                    ..plain
                },
                -1,
            ),
        ];
        for (candidate, expected) in table {
            assert_eq!(candidate.goodness(), expected, "{candidate:?}");
        }
    }
}
