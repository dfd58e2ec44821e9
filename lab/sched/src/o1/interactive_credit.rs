//! `interactive_credit` of Linux 2.6.4: what sleeping and running are worth to whom.
//!
//! It starts at 0 and lies between -101 and 101. Each sleep longer than L, and each sleep that
//! takes `sleep_avg` to its greatest value, adds one; each run that uses `sleep_avg` up takes one
//! away. Above 100 it never falls, below -100 it rises again by sleeping only.
//!
//! ```text
//!            credit > 100 (high)                      else                  credit < -100 (low)
//! running    costs run / max(bonus, 1)                run                   run
//! a sleep    earns d * max(10 - bonus, 1)             the same              a slice at most
//! uninterruptible sleep   the same                    no further than L     no further than L
//! ```

use super::credit::{Activated, Credit};
use super::rules::Rules;

/// `CREDIT_LIMIT`.
const LIMIT: i32 = 100;

/// What sleeps and runs change: `sleep_avg` in ns, and `interactive_credit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) sleep_avg: u64,
    pub(super) credit: i32,
}

/// `HIGH_CREDIT`.
fn is_high(credit: i32) -> bool {
    credit > LIMIT
}

/// `LOW_CREDIT`.
fn is_low(credit: i32) -> bool {
    credit < -LIMIT
}

/// What is left after a run of `ran` ns (`schedule()`).
pub(super) fn debited(rules: &Rules, account: Account, ran: u64) -> Account {
    let Account { sleep_avg, credit } = account;
    let ran = ran.min(rules.max_sleep_avg());
    let charged = match is_high(credit) {
        true => ran / rules.bonus(sleep_avg).max(1),
        false => ran,
    };
    let sleep_avg = sleep_avg.saturating_sub(charged);
    let falls = sleep_avg == 0 && !is_high(credit) && !is_low(credit);
    Account {
        sleep_avg,
        credit: credit - i32::from(falls),
    }
}

/// What there is after a sleep, or a wait that counts as one (`recalc_task_prio()`, but for the
/// priority). `sleep.sleep_avg` is that of the account.
pub(super) fn credited(rules: &Rules, credit: i32, sleep: &Credit) -> Account {
    let sleep_avg = sleep.sleep_avg;
    let slept = sleep.slept.min(rules.max_sleep_avg());
    let unchanged = Account { sleep_avg, credit };
    if slept == 0 {
        return unchanged;
    }
    let uninterruptible = sleep.activated == Activated::Uninterruptible;
    let limit = rules.long_sleep(sleep.nice);
    if sleep.user && !uninterruptible && slept > limit {
        return Account {
            sleep_avg: rules.after_long_sleep(),
            credit: rises(credit),
        };
    }
    let weighted = slept * rules.weight(sleep_avg);
    let earned = match is_low(credit) {
        true => weighted.min(rules.slice(sleep.nice) * rules.jiffy),
        false => weighted,
    };
    // L of a task with a high nice value lies above the greatest sleep_avg.
    let no_further = uninterruptible && sleep.user && !is_high(credit);
    let sum = match sleep_avg + earned {
        sum if no_further && sum >= limit => sleep_avg.max(limit),
        sum => sum,
    };
    match sum > rules.max_sleep_avg() {
        true => Account {
            sleep_avg: rules.max_sleep_avg(),
            credit: rises(credit),
        },
        false => Account {
            sleep_avg: sum,
            credit,
        },
    }
}

fn rises(credit: i32) -> i32 {
    credit + i32::from(!is_high(credit))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use warmq_units::Duration;

    use super::super::release::Release;
    use super::super::rules::MS;
    use super::*;

    fn rules() -> Rules {
        Rules::new(Release::V2_6_4, Duration::from_ms(1))
    }

    fn sleep(activated: Activated, sleep_avg_ms: u64, slept_ms: u64) -> Credit {
        Credit {
            user: true,
            activated,
            nice: 0,
            sleep_avg: sleep_avg_ms * MS,
            slept: slept_ms * MS,
            min_sleep_ms: None,
        }
    }

    /// Decision cases 2, 4 and 5 of the specification: before, slept, credit, then what is there
    /// after. In the last of case 2 it was full already, and credit is high.
    #[test]
    fn what_a_sleep_earns() {
        use Activated::{No, Uninterruptible};
        let table = [
            ("2: longer than L", No, 300, 816, 0, 918, 1),
            ("2: of L, to the top", No, 0, 815, 0, 1020, 1),
            ("2: high already", No, 1020, 5, 101, 1020, 101),
            ("4: no credit", No, 510, 50, 0, 760, 0),
            ("4: low credit", No, 510, 50, -101, 612, -101),
            ("5: no credit", Uninterruptible, 800, 50, 0, 815, 0),
            ("5: high credit", Uninterruptible, 800, 50, 101, 950, 101),
            ("5: above L", Uninterruptible, 900, 50, 0, 900, 0),
            ("no sleep", No, 510, 0, 0, 510, 0),
        ];
        for (case, activated, before, slept, credit, after, credit_after) in table {
            let account = credited(&rules(), credit, &sleep(activated, before, slept));
            let expected = Account {
                sleep_avg: after * MS,
                credit: credit_after,
            };
            assert_eq!(account, expected, "{case}");
        }
    }

    /// Decision case 3, and what a run that uses up everything takes.
    #[test]
    fn what_a_run_costs() {
        let table = [
            ("3: no high credit", 1020, 100, 100, 920, 100),
            ("3: high credit", 1020, 101, 100, 1010, 101),
            ("used up", 50, 0, 60, 0, -1),
            ("used up, low already", 0, -101, 60, 0, -101),
            ("used up, high credit", 50, 101, 60, 0, 101),
        ];
        for (case, before, credit, ran, after, credit_after) in table {
            let account = Account {
                sleep_avg: before * MS,
                credit,
            };
            let left = debited(&rules(), account, ran * MS);
            let expected = Account {
                sleep_avg: after * MS,
                credit: credit_after,
            };
            assert_eq!(left, expected, "{case}");
        }
    }

    proptest! {
        #[test]
        fn the_account_stays_in_range(
            nice in -20i8..20, user: bool, how in 0usize..3,
            spans in prop::collection::vec((0u64..2_000_000_000, any::<bool>()), 0..400)
        ) {
            let activated =
                [Activated::No, Activated::Uninterruptible, Activated::ByTask][how];
            let mut account = Account { sleep_avg: 0, credit: 0 };
            for (span, sleeps) in spans {
                let Account { sleep_avg, credit } = account;
                account = match sleeps {
                    true => {
                        let sleep = Credit {
                            user, activated, nice, sleep_avg, slept: span, min_sleep_ms: None,
                        };
                        credited(&rules(), credit, &sleep)
                    }
                    false => debited(&rules(), account, span),
                };
                prop_assert!(account.sleep_avg <= rules().max_sleep_avg());
                prop_assert!((-101..=101).contains(&account.credit));
            }
        }
    }
}
