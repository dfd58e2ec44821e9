//! What takes CPUs away, from the gaps that a thread saw which only reads the clock.

use warmq_machine::Steal;
use warmq_units::Duration;

/// Shorter gaps may be interrupts.
const SHORTEST: Duration = Duration::from_us(20);
/// From here on a CPU was given to somebody else, not only interrupted.
const LONG: Duration = Duration::from_us(500);
/// So few gaps say nothing.
const FEWEST: usize = 5;

/// What takes a CPU away now and then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Taken {
    /// As a machine has it.
    pub steal: Steal,
    /// How many gaps say so.
    pub gaps: usize,
    /// The shortest gap that counts.
    pub least: Duration,
    /// Their mean.
    pub mean: Duration,
}

/// What took CPUs away for `gaps` within `watched`, the ticks among them left out: shorter and
/// longer times, each exponential.
///
/// Of spans with the mean `s` the part `exp(-l / s)` is longer than `l`, and those are by `s`
/// longer in the mean, whatever `l` is. So what was seen above the least gap says both:
///
/// ```text
///     span = mean - least        every = watched / (seen * exp(least / span))
/// ```
pub fn steals(watched: Duration, gaps: &[Duration]) -> Vec<Taken> {
    let classes = [(SHORTEST, LONG), (LONG, Duration(u64::MAX))];
    let fitted = classes.map(|(least, most)| {
        let within = gaps.iter().copied();
        let within = within.filter(|gap| (least..most).contains(gap));
        fit(watched, least, &within.collect::<Vec<_>>())
    });
    fitted.into_iter().flatten().collect()
}

fn fit(watched: Duration, least: Duration, gaps: &[Duration]) -> Option<Taken> {
    if gaps.len() < FEWEST {
        return None;
    }
    let seen = gaps.len() as f64;
    let mean = gaps.iter().map(|gap| gap.0 as f64).sum::<f64>() / seen;
    let least_ps = least.0 as f64;
    // Below the least gap nothing is known: what was not seen may be as much as what was, no more.
    let span = (mean - least_ps).max(least_ps);
    let every = watched.0 as f64 / (seen * (least_ps / span).exp());
    Some(Taken {
        steal: Steal {
            every: Duration(every as u64),
            span: Duration(span as u64),
        },
        gaps: gaps.len(),
        least,
        mean: Duration(mean as u64),
    })
}

#[cfg(test)]
mod tests {
    use warmq_units::Seed;

    use super::*;

    /// Gaps within `watched` that are drawn as the lab draws them.
    fn drawn(steal: Steal, watched: Duration) -> Vec<Duration> {
        let mut stream = Seed(7).stream("steal");
        let mut gaps = Vec::new();
        let mut at = 0;
        while at < watched.0 {
            at += stream.exponential(steal.every.0);
            gaps.push(Duration(stream.exponential(steal.span.0)));
        }
        gaps
    }

    fn near(found: Duration, expected: Duration) {
        let ratio = found.0 as f64 / expected.0 as f64;
        assert!((0.8..1.25).contains(&ratio), "{found} for {expected}");
    }

    #[test]
    fn what_the_lab_draws_is_found_again() {
        let (us, ms) = (Duration::from_us, Duration::from_ms);
        let watched = Duration::from_s(20);
        let often = Steal {
            every: ms(1),
            span: us(31),
        };
        let rarely = Steal {
            every: ms(130),
            span: us(1_300),
        };
        let mut gaps = drawn(often, watched);
        gaps.extend(
            drawn(rarely, watched)
                .into_iter()
                .filter(|gap| *gap >= LONG),
        );
        let found = steals(watched, &gaps);
        assert_eq!(found.len(), 2);
        near(found[0].steal.every, often.every);
        near(found[0].steal.span, often.span);
        near(found[1].steal.every, rarely.every);
        near(found[1].steal.span, rarely.span);
    }

    #[test]
    fn a_machine_that_nobody_takes_away_has_none() {
        let watched = Duration::from_s(1);
        assert_eq!(steals(watched, &[]), []);
        // Interrupts, and a few that may be anything.
        let mut gaps = vec![Duration::from_us(5); 1_000];
        gaps.extend([Duration::from_ms(2); FEWEST - 1]);
        assert_eq!(steals(watched, &gaps), []);
        // All just as long as what counts: a bound, not a division by nothing.
        let found = steals(watched, &[SHORTEST; 10]);
        let Steal { every, span } = found[0].steal;
        assert_eq!(span, SHORTEST);
        assert!(every > watched / 30 && every < watched / 20, "{every}");
    }
}
