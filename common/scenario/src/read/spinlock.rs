//! The tables of spin locks.

use warmq_trace::SpinlockNames;

use super::table::Table;
use crate::object::{Spinlock, Then};
use crate::program::SpinCounters;

/// PAUSE of an AMD EPYC (Zen 5), in picoseconds: a million of them took 37 to 38 ms.
const PAUSE_PS: i64 = 38_000;
/// `DEFAULT_SPINS_PER_DELAY` of PostgreSQL, and the most that glibc's adaptive mutexes do
/// (`glibc.pthread.mutex_spin_count`).
const SPINS: i64 = 100;
/// `MIN_DELAY_USEC` and `MAX_DELAY_USEC` of PostgreSQL, in picoseconds.
const DELAY_PS: i64 = 1_000_000_000;
const LONGEST_DELAY_PS: i64 = 1_000_000_000_000;

impl Table<'_, '_, '_> {
    /// The spin locks of the table called `name`.
    pub(super) fn spinlock(&self, name: &str) -> Option<Spinlock> {
        let then = match self.get("then").unwrap_or("spin") {
            "yield" => self.spins().map(Then::Yield),
            "sleep" => self.sleeping(),
            "futex" => self.spins().map(Then::Futex),
            _ => {
                self.means_nothing("spins", "it looks until the lock is free");
                Some(Then::Spin)
            }
        };
        if !matches!(then, Some(Then::Sleep { .. }) | None) {
            for key in ["delay", "delay_most"] {
                self.means_nothing(key, "it never sleeps for a time");
            }
        }
        let names = SpinlockNames::of(name);
        let counter = |name: &str| self.scope.names.counter(name);
        Some(Spinlock {
            per_cpu: self.flag("per_cpu"),
            pause: self.or("pause", PAUSE_PS)?,
            then: then?,
            counters: SpinCounters {
                taken: counter(&names.taken),
                contended: counter(&names.contended),
                spun: counter(&names.spun),
            },
        })
    }

    fn spins(&self) -> Option<crate::expr::Expr> {
        self.or("spins", SPINS)
    }

    fn sleeping(&self) -> Option<Then> {
        let (spins, delay) = (self.spins(), self.or("delay", DELAY_PS));
        Some(Then::Sleep {
            most: self.or("delay_most", LONGEST_DELAY_PS)?,
            spins: spins?,
            delay: delay?,
        })
    }

    /// Reports `key` if it is there, since what `then` says has no use for it.
    fn means_nothing(&self, key: &str, why: &str) {
        if let Some(item) = self.item(key) {
            let help = match key {
                "spins" => {
                    "write then = \"yield\", \"sleep\" or \"futex\" beside it, or leave it out"
                }
                _ => "write then = \"sleep\" beside it, or leave it out",
            };
            item.report(format!("`{key}` has no meaning here: {why}"), help);
        }
    }
}
