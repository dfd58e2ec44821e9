//! What sleeping is worth: `recalc_task_prio()` of Linux 2.6.16, with the variants of the thesis.
//!
//! A sleep, or a wait that counts as one, has a length d, of which the greatest `sleep_avg` at most
//! counts. It is credited in one of two ways:
//!
//! ```text
//! (a)  d > L, user task, not out of an uninterruptible sleep:   sleep_avg = 900 ms
//! (b)  else:                                                    sleep_avg += w, at most 1000 ms
//!
//!      w := d * max(10 - bonus, 1)
//! ```
//!
//! A user task out of an uninterruptible sleep gets no further than L by (b). On i386 w and the sum
//! are unsigned 32-bit numbers of nanoseconds, which wrap above 4295 ms.

use super::rules::{Follows, MS, Rules};

/// `ON_RUNQUEUE_WEIGHT`: the part of a wait that counts as sleep, in 128ths of it (30 %).
const ON_RUNQUEUE_WEIGHT: u64 = 30 * 128 / 100;

/// How a task was woken (`task_struct.activated`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Activated {
    /// It has run since, so that its waits earn nothing (0).
    #[default]
    No,
    /// Out of an uninterruptible sleep (-1).
    Uninterruptible,
    /// By a system call or a kernel thread (1).
    ByTask,
    /// In an interrupt or a softirq, whoever ran it (2).
    ByInterrupt,
}

/// What sleeping may earn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DynamicPriority {
    /// As 2.6.16 has it.
    On,
    /// As with the patch of the thesis, which removes the addition of (b) and nothing else.
    Patch,
    /// `sleep_avg` never grows.
    Frozen,
}

/// The variants of [`Rules`] that concern credit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variants {
    pub(super) dynamic_priority: DynamicPriority,
    /// Whose `activated` says which waits count whole.
    pub(super) activated: Follows,
    /// 32-bit numbers, as on i386.
    pub(super) wrap32: bool,
    /// Whether a threshold is compared with d instead of w.
    pub(super) compares_raw: bool,
}

/// What a sleep, or a wait that counts as one, belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Credit {
    /// It has memory of its own: it is no kernel thread.
    pub(super) user: bool,
    pub(super) activated: Activated,
    pub(super) nice: i8,
    pub(super) sleep_avg: u64,
    /// d.
    pub(super) slept: u64,
    /// The threshold of `network_min_sleep`, in ms, if there is one.
    pub(super) min_sleep_ms: Option<u64>,
}

/// What became of a [`Credit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Credited {
    pub(super) sleep_avg: u64,
    /// w, in whole ms, where (b) applied.
    pub(super) weighted_ms: Option<u64>,
    /// What a threshold is compared with, in whole ms, where (b) applied.
    pub(super) compared_ms: Option<u64>,
}

/// Credits a sleep (`recalc_task_prio()` but for the priority).
pub(super) fn credit(rules: &Rules, variants: &Variants, credit: &Credit) -> Credited {
    let Credit { sleep_avg, .. } = *credit;
    let slept = credit.slept.min(rules.max_sleep_avg());
    let unchanged = Credited {
        sleep_avg,
        weighted_ms: None,
        compared_ms: None,
    };
    if slept == 0 || variants.dynamic_priority == DynamicPriority::Frozen {
        return unchanged;
    }
    let limit = rules.long_sleep(credit.nice);
    let uninterruptible = credit.activated == Activated::Uninterruptible;
    if credit.user && !uninterruptible && slept > limit {
        return Credited {
            sleep_avg: rules.after_long_sleep(),
            ..unchanged
        };
    }
    let weighted = variants.wrapped(slept * rules.weight(sleep_avg));
    let compared = if variants.compares_raw {
        slept
    } else {
        weighted
    };
    let compared_ms = compared / MS;
    let counts = credit.min_sleep_ms.is_none_or(|least| compared_ms > least);
    let sum = variants.wrapped(sleep_avg + weighted);
    let sleep_avg = if credit.user && uninterruptible && sleep_avg >= limit {
        sleep_avg
    } else if credit.user && uninterruptible && sum >= limit {
        limit
    } else if counts && variants.dynamic_priority == DynamicPriority::On {
        sum
    } else {
        sleep_avg
    };
    Credited {
        // From nice 12 on, L is more than the greatest `sleep_avg`.
        sleep_avg: sleep_avg.min(rules.max_sleep_avg()),
        weighted_ms: Some(weighted / MS),
        compared_ms: Some(compared_ms),
    }
}

impl Variants {
    fn wrapped(&self, ns: u64) -> u64 {
        match self.wrap32 {
            true => ns & u64::from(u32::MAX),
            false => ns,
        }
    }

    /// The part of a wait on the run queue that counts as sleep at the first pick after a wakeup
    /// (`schedule()`); `None` if no such credit is due.
    pub(super) fn credited_wait(&self, activated: Activated, waited: u64) -> Option<u64> {
        let whole = match activated {
            Activated::No | Activated::Uninterruptible => return None,
            Activated::ByInterrupt => self.activated == Follows::Source,
            Activated::ByTask => self.activated == Follows::Thesis,
        };
        Some(match whole {
            true => waited,
            false => waited * ON_RUNQUEUE_WEIGHT / 128,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use warmq_units::Duration;

    use super::super::release::Release;
    use super::*;

    const SOURCE: Variants = Variants {
        dynamic_priority: DynamicPriority::On,
        activated: Follows::Source,
        wrap32: false,
        compares_raw: false,
    };

    fn rules() -> Rules {
        Rules::new(Release::V2_6_16, Duration::from_ms(4))
    }

    /// An interruptible sleep of a user task of nice 0.
    fn sleep(sleep_avg_ms: u64, slept_ms: u64) -> Credit {
        Credit {
            user: true,
            activated: Activated::No,
            nice: 0,
            sleep_avg: sleep_avg_ms * MS,
            slept: slept_ms * MS,
            min_sleep_ms: None,
        }
    }

    fn after_ms(variants: &Variants, sleep: &Credit) -> u64 {
        credit(&rules(), variants, sleep).sleep_avg / MS
    }

    /// Decision cases 4 to 6 of the specification.
    #[test]
    fn a_sleep_earns_by_how_little_was_slept_before() {
        let wraps = Variants {
            wrap32: true,
            ..SOURCE
        };
        let table = [
            ("4: a long sleep", SOURCE, 1000, 800, 900),
            ("5: up to the top", SOURCE, 0, 452, 1000),
            ("5: wraps", wraps, 0, 452, 225),
            ("6: weight 2", SOURCE, 850, 4, 858),
            ("6: at the top", SOURCE, 1000, 4, 1000),
            ("no sleep", SOURCE, 500, 0, 500),
        ];
        for (case, variants, before, slept, after) in table {
            assert_eq!(after_ms(&variants, &sleep(before, slept)), after, "{case}");
        }
        assert_eq!(rules().priority(0, 900 * MS), 116, "4");
    }

    /// Decision case 7.
    #[test]
    fn an_uninterruptible_sleep_earns_no_more_than_the_limit() {
        for (before, after) in [(790, 796), (800, 800), (700, 712)] {
            let uninterruptible = Credit {
                activated: Activated::Uninterruptible,
                ..sleep(before, 4)
            };
            assert_eq!(after_ms(&SOURCE, &uninterruptible), after, "{before} ms");
        }
        let long = Credit {
            activated: Activated::Uninterruptible,
            ..sleep(0, 900)
        };
        assert_eq!(after_ms(&SOURCE, &long), 796, "(a) is for other sleeps");
        let kernel_thread = Credit {
            user: false,
            ..sleep(0, 900)
        };
        assert_eq!(
            after_ms(&SOURCE, &kernel_thread),
            1000,
            "and for user tasks"
        );
    }

    /// Decision case 8.
    #[test]
    fn a_wait_after_a_wakeup_counts_by_who_woke() {
        let thesis = Variants {
            activated: Follows::Thesis,
            ..SOURCE
        };
        let table = [
            ("softirq", SOURCE, Activated::ByInterrupt, 820_000),
            ("system call", SOURCE, Activated::ByTask, 735_625),
            ("softirq, thesis", thesis, Activated::ByInterrupt, 735_625),
            ("system call, thesis", thesis, Activated::ByTask, 820_000),
        ];
        for (case, variants, activated, after_us) in table {
            let slept = variants.credited_wait(activated, 40 * MS);
            let wait = Credit {
                activated,
                slept: slept.expect("credit is due"),
                ..sleep(700, 0)
            };
            let credited = credit(&rules(), &variants, &wait);
            assert_eq!(credited.sleep_avg / 1_000, after_us, "{case}");
        }
        for activated in [Activated::No, Activated::Uninterruptible] {
            assert_eq!(SOURCE.credited_wait(activated, 40 * MS), None);
        }
    }

    /// Decision case 11.
    #[test]
    fn a_threshold_is_compared_with_the_weighted_sleep() {
        let raw = Variants {
            compares_raw: true,
            ..SOURCE
        };
        let table = [
            ("w 12", SOURCE, 750, 762),
            ("w 12, raw", raw, 750, 750),
            ("w 8", SOURCE, 850, 850),
        ];
        for (case, variants, before, after) in table {
            let filtered = Credit {
                min_sleep_ms: Some(10),
                ..sleep(before, 4)
            };
            assert_eq!(after_ms(&variants, &filtered), after, "{case}");
        }
        let long = Credit {
            min_sleep_ms: Some(1000),
            ..sleep(0, 900)
        };
        assert_eq!(after_ms(&SOURCE, &long), 900, "(a) is not filtered");
    }

    #[test]
    fn without_dynamic_priority() {
        let with = |dynamic_priority| Variants {
            dynamic_priority,
            ..SOURCE
        };
        let (patch, frozen) = (with(DynamicPriority::Patch), with(DynamicPriority::Frozen));
        let to_the_limit = Credit {
            activated: Activated::Uninterruptible,
            ..sleep(790, 4)
        };
        let table = [
            ("the addition is gone", patch, sleep(300, 100), 300),
            ("a long sleep is not", patch, sleep(300, 900), 900),
            ("nor the setting to L", patch, to_the_limit, 796),
            ("nothing grows", frozen, sleep(300, 900), 300),
            ("nothing grows", frozen, to_the_limit, 790),
        ];
        for (case, variants, sleep, after) in table {
            assert_eq!(after_ms(&variants, &sleep), after, "{case}");
        }
    }

    proptest! {
        #[test]
        fn sleep_avg_stays_in_range(
            nice in -20i8..20, tick_us in 500u64..25_000, wrap32: bool, user: bool,
            how in 0usize..3, spans in prop::collection::vec((0u64..5_000_000_000, any::<bool>()), 0..60)
        ) {
            let rules = Rules::new(Release::V2_6_16, Duration::from_us(tick_us));
            let variants = Variants { wrap32, ..SOURCE };
            let activated =
                [Activated::No, Activated::Uninterruptible, Activated::ByInterrupt][how];
            let mut sleep_avg = 0;
            for (span, sleeps) in spans {
                sleep_avg = match sleeps {
                    true => {
                        let sleep = Credit {
                            user, activated, nice, sleep_avg, slept: span, min_sleep_ms: None,
                        };
                        credit(&rules, &variants, &sleep).sleep_avg
                    }
                    false => rules.debited(sleep_avg, span),
                };
                prop_assert!(sleep_avg <= rules.max_sleep_avg());
                prop_assert!(rules.bonus(sleep_avg) <= 10);
                let priority = rules.priority(nice, sleep_avg);
                prop_assert!((100..140).contains(&priority));
            }
        }
    }
}
