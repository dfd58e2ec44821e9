//! What tasks of the classes above the fair one are compared by.

/// Less runs first: deadline tasks before real-time ones, the earliest deadline before later ones,
/// and these before all others (`p->prio`, `dl_entity_preempt()`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// A task of SCHED_DEADLINE, by its absolute deadline in ns.
    Deadline(i64),
    /// A task of SCHED_FIFO or SCHED_RR, by its priority; 0 is the best.
    RealTime(i32),
    /// A task of no class above the fair one, or none.
    #[default]
    Other,
}

impl Rank {
    /// The rank of a real-time task with this priority from 1 to 99, of which 99 is the best.
    pub fn of_priority(priority: u8) -> Rank {
        /// `MAX_RT_PRIO`
        const PRIORITIES: i32 = 100;
        Rank::RealTime(PRIORITIES - 1 - i32::from(priority))
    }

    /// Whether it is the rank of a task of a class above the fair one.
    pub fn is_urgent(self) -> bool {
        self != Rank::Other
    }

    /// Whether both are of one class.
    pub(crate) fn is_of_class_of(self, other: Rank) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }

    /// What a CPU with this best rank counts for where a task of `rank` looks for one: each class
    /// knows who is of its own or above it, and all others are alike (`cpudl_find()`,
    /// `cpupri_find()`).
    pub(crate) fn seen_from(self, rank: Rank) -> Rank {
        match (rank, self) {
            (Rank::Deadline(_), Rank::RealTime(_)) => Rank::Other,
            (_, seen) => seen,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_come_before_priorities_and_these_before_all_others() {
        let sorted = [
            Rank::Deadline(1),
            Rank::Deadline(2),
            Rank::of_priority(99),
            Rank::of_priority(1),
            Rank::Other,
        ];
        assert!(sorted.is_sorted_by(|one, next| one < next), "{sorted:?}");
    }
}
