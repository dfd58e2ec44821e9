//! Where a replay is not like its recording.

use serde::Serialize;

use crate::meter::Figures;

/// Whoever ran less than this share of a CPU is not worth a word: hundredths of a percent.
const LEAST_SHARE: u64 = 100;
/// Fewer wakeups a second make no pattern.
const LEAST_WAKEUPS: u64 = 10;
/// What a wakeup costs differs between the lab and a real machine by less, in ns.
const LEAST_WAIT: u64 = 20_000;

/// A figure of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Its CPU time.
    Share,
    /// The median of its waits for a CPU.
    WaitP50,
    /// The 99th percentile of its waits.
    WaitP99,
    /// How often it was woken.
    Wakeups,
}

/// A figure that differs from the recorded one by more than a quarter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Which.
    pub figure: Figure,
    /// By how much, in percent of what was recorded; none where that is zero.
    pub percent: Option<i64>,
}

/// The figures of `replayed` that are more than a quarter off `recorded`.
pub(crate) fn differences(recorded: &Figures, replayed: &Figures) -> Vec<Difference> {
    let woken = |figures: &Figures| figures.wakeups_per_second >= LEAST_WAKEUPS;
    let wait = |figures: &Figures, ns: Option<u64>| ns.filter(|_| woken(figures));
    let waits = |of: fn(&Figures) -> Option<u64>| {
        Some((wait(recorded, of(recorded))?, wait(replayed, of(replayed))?))
    };

    let all = [
        (
            Figure::Share,
            Some((recorded.share, replayed.share)),
            LEAST_SHARE,
        ),
        (Figure::WaitP50, waits(|task| task.wait_p50_ns), LEAST_WAIT),
        (Figure::WaitP99, waits(|task| task.wait_p99_ns), LEAST_WAIT),
        (
            Figure::Wakeups,
            Some((recorded.wakeups_per_second, replayed.wakeups_per_second)),
            LEAST_WAKEUPS,
        ),
    ];
    let differs = all.into_iter().filter_map(|(figure, pair, least)| {
        let (before, after) = pair?;
        let differs = before.max(after) >= least && before.abs_diff(after) * 4 > before;
        differs.then(|| Difference {
            figure,
            percent: percent(before, after),
        })
    });
    differs.collect()
}

fn percent(before: u64, after: u64) -> Option<i64> {
    let difference = (i128::from(after) - i128::from(before)) * 100;
    let percent = difference.checked_div(i128::from(before))?;
    i64::try_from(percent).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(share: u64, p50: u64, p99: u64, wakeups: u64) -> Figures {
        Figures {
            share,
            wait_p50_ns: Some(p50),
            wait_p99_ns: Some(p99),
            wakeups_per_second: wakeups,
        }
    }

    #[test]
    fn more_than_a_quarter_is_a_difference() {
        let recorded = figures(4_000, 100_000, 1_000_000, 5_863);
        let close = figures(5_000, 75_000, 1_250_000, 4_398);
        assert_eq!(differences(&recorded, &close), []);
        let far = figures(5_001, 74_000, 3_000_000, 1_118);
        let found = differences(&recorded, &far);
        let found: Vec<_> = found
            .iter()
            .map(|difference| (difference.figure, difference.percent))
            .collect();
        let wanted = [
            (Figure::Share, Some(25)),
            (Figure::WaitP50, Some(-26)),
            (Figure::WaitP99, Some(200)),
            (Figure::Wakeups, Some(-80)),
        ];
        assert_eq!(found, wanted);
    }

    #[test]
    fn little_things_are_none() {
        let recorded = figures(10, 1_000, 19_000, 9);
        assert_eq!(differences(&recorded, &figures(99, 9_000, 1_000, 0)), []);
    }

    #[test]
    fn what_was_not_recorded_at_all_has_no_percentage() {
        let found = differences(&Figures::default(), &figures(200, 0, 0, 0));
        let wanted = Difference {
            figure: Figure::Share,
            percent: None,
        };
        assert_eq!(found, [wanted]);
    }
}
