//! How fast a CPU of this machine computes: the loop of `run` steps, calibrated.
//!
//! A round of the loop is a multiplication that needs the result of the one before, so that it
//! takes the same number of cycles whatever else the core could do at the same time. The shift
//! keeps compilers from making one round of several. The loop reads no clock: time in which the
//! task has no CPU does not count as work.

use std::fs;
use std::hint::black_box;

use warmq_scenario::Quantity;

use crate::sys::clock::now_ns;

/// Rounds of the first tries. There are more where that takes less than [`SHORTEST_NS`].
const FEWEST: u64 = 1_000;
/// A try takes at least this long, so that reading the clock does not count, and at most about
/// twice as long: it fits between two interrupts, and into what is left of a time slice.
const SHORTEST_NS: u64 = 50_000;
/// Tries, at least, and for how long, so that not all of them fall into one time slice of others.
const TRIES: usize = 50;
const SPREAD_NS: u64 = 20_000_000;
/// The fastest try counts when so many have taken at most 0.5 % longer,
const CONFIRMED: usize = 10;
/// or when this much time has passed.
const PATIENCE_NS: u64 = 300_000_000;
const PS_PER_S: u128 = 1_000_000_000_000;

/// Computes for `rounds` of the loop.
#[inline(never)]
pub fn spin(rounds: u64) {
    let mut value = black_box(rounds | 1);
    for _ in 0..rounds {
        value = (value ^ (value >> 29)).wrapping_mul(0x5851_f42d_4c95_7f2d);
    }
    black_box(value);
}

/// The speed of this machine's CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    /// Rounds of [`spin`] in a second.
    pub rounds_per_s: u64,
    /// The clock, in Hz, for steps that count cycles.
    pub hertz: u64,
    /// Where the clock comes from.
    pub hertz_from: &'static str,
}

impl Speed {
    /// Measures the speed of this CPU; takes 20 ms, or up to 300 ms where others compete for it.
    /// `rounds_per_s` is not measured if it is given: runs that are compared should do the same
    /// work.
    pub fn measure(rounds_per_s: Option<u64>) -> Speed {
        let rounds_per_s = rounds_per_s.unwrap_or_else(calibrate).max(1);
        let (hertz, hertz_from) = clock();
        Speed {
            rounds_per_s,
            hertz: hertz.max(1),
            hertz_from,
        }
    }

    /// The rounds of the loop for `work`: picoseconds, cycles of the clock, or a count of rounds.
    #[inline]
    pub fn loops(&self, work: u64, quantity: Quantity) -> u64 {
        let per_unit = match quantity {
            Quantity::Count => return work,
            Quantity::Time => PS_PER_S,
            _ => u128::from(self.hertz),
        };
        let rounds = u128::from(work) * u128::from(self.rounds_per_s) / per_unit;
        u64::try_from(rounds).unwrap_or(u64::MAX)
    }
}

fn calibrate() -> u64 {
    let mut tries = Tries::new(now_ns());
    loop {
        let begin = now_ns();
        spin(tries.rounds);
        let end = now_ns();
        if let Some(rounds_per_s) = tries.add(end - begin, end) {
            return rounds_per_s;
        }
    }
}

/// Tries of the loop, of which the fastest counts: whatever competes for the CPU only slows it
/// down. The clock is that of the wall. A thread's CPU time would leave out the time of other
/// tasks, but not what a hypervisor takes; a try that nobody disturbed has neither.
struct Tries {
    begin_ns: u64,
    rounds: u64,
    took_ns: Vec<u64>,
}

impl Tries {
    fn new(begin_ns: u64) -> Tries {
        Tries {
            begin_ns,
            rounds: FEWEST,
            took_ns: Vec::new(),
        }
    }

    /// One more try, which took so long and was over at `now_ns`; the speed in rounds per second,
    /// if it is known well enough.
    fn add(&mut self, took_ns: u64, now_ns: u64) -> Option<u64> {
        self.took_ns.push(took_ns.max(1));
        let fastest = *self.took_ns.iter().min()?;
        let passed_ns = now_ns.saturating_sub(self.begin_ns);
        if fastest < SHORTEST_NS {
            // Another try may have seemed long enough, and was disturbed.
            self.rounds *= 2;
            self.took_ns.clear();
            return None;
        }
        if self.took_ns.len() < TRIES || passed_ns < SPREAD_NS {
            return None;
        }
        let near = self
            .took_ns
            .iter()
            .filter(|time| **time - fastest <= fastest / 200);
        let known = near.count() >= CONFIRMED || passed_ns >= PATIENCE_NS;
        let per_s = u128::from(self.rounds) * 1_000_000_000 / u128::from(fastest);
        known.then(|| u64::try_from(per_s).unwrap_or(u64::MAX))
    }
}

/// The nominal clock: what cpufreq calls the base or else the highest frequency, or else what
/// /proc/cpuinfo says of the first CPU.
fn clock() -> (u64, &'static str) {
    let khz = |file: &str| {
        let path = format!("/sys/devices/system/cpu/cpu0/cpufreq/{file}");
        let text = fs::read_to_string(path).ok()?;
        text.trim().parse::<u64>().ok().filter(|khz| *khz > 0)
    };
    if let Some(base) = khz("base_frequency") {
        return (base * 1_000, "cpufreq/base_frequency");
    }
    if let Some(most) = khz("cpuinfo_max_freq") {
        return (most * 1_000, "cpufreq/cpuinfo_max_freq");
    }
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    match megahertz(&info) {
        Some(hertz) => (hertz, "/proc/cpuinfo"),
        None => (1_000_000_000, "nowhere: 1 GHz is assumed"),
    }
}

/// `cpu MHz` of the first CPU, in Hz.
fn megahertz(info: &str) -> Option<u64> {
    let line = info.lines().find(|line| line.starts_with("cpu MHz"))?;
    let (whole, rest) = line.split_once(':')?.1.trim().split_once('.')?;
    let thousandths: u64 = format!("{rest:0<3}").get(..3)?.parse().ok()?;
    let khz = whole.parse::<u64>().ok()?.checked_mul(1_000)? + thousandths;
    Some(khz * 1_000).filter(|hertz| *hertz > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEED: Speed = Speed {
        rounds_per_s: 500_000_000,
        hertz: 2_000_000_000,
        hertz_from: "a test",
    };

    #[test]
    fn work_becomes_rounds() {
        assert_eq!(SPEED.loops(PS_PER_S as u64, Quantity::Time), 500_000_000);
        assert_eq!(SPEED.loops(1_000_000, Quantity::Time), 500);
        assert_eq!(SPEED.loops(8_000, Quantity::Cycles), 2_000);
        assert_eq!(SPEED.loops(0, Quantity::Time), 0);
        assert_eq!(SPEED.loops(u64::MAX, Quantity::Time), u64::MAX / 2_000);
    }

    /// What is measured of a CPU of `per_us` rounds a microsecond, where try number `n` is slowed
    /// down `slower(n)` times; and how long that took, in nanoseconds.
    fn measured(per_us: u64, slower: impl Fn(u64) -> u64) -> (u64, u64) {
        let (mut tries, mut now_ns) = (Tries::new(0), 0);
        for number in 0.. {
            let took_ns = tries.rounds * 1_000 / per_us * slower(number);
            now_ns += took_ns;
            if let Some(speed) = tries.add(took_ns, now_ns) {
                return (speed, now_ns);
            }
        }
        unreachable!("it ends when its patience does")
    }

    #[test]
    fn a_quiet_cpu_is_measured_in_a_moment() {
        for per_us in [1, 50, 500, 6_400] {
            let (speed, took_ns) = measured(per_us, |_| 1);
            assert_eq!(speed, per_us * 1_000_000);
            let least = SPREAD_NS.max(TRIES as u64 * SHORTEST_NS);
            assert!(took_ns >= SPREAD_NS && took_ns < 2 * least + 100 * FEWEST * 1_000 / per_us);
        }
    }

    #[test]
    fn a_busy_cpu_is_measured_at_its_fastest() {
        // Nine of ten tries are disturbed, among them all of the first ones.
        let (speed, _) = measured(500, |number| {
            if number < 90 || number % 10 > 0 {
                40
            } else {
                1
            }
        });
        assert_eq!(speed, 500_000_000);
        // No two tries are alike: it does not go on for ever.
        let (_, took_ns) = measured(500, |number| 1_000 - number % 999);
        assert!(took_ns < 3 * PATIENCE_NS, "{took_ns}");
    }

    #[test]
    fn the_clock_is_read_to_a_thousandth() {
        let info = "processor\t: 0\ncpu MHz\t\t: 2445.404\n";
        assert_eq!(megahertz(info), Some(2_445_404_000));
        assert_eq!(megahertz("cpu MHz : 3000.5"), Some(3_000_500_000));
        for wrong in ["", "cpu MHz", "cpu MHz : x.y", "cpu MHz : 0.000"] {
            assert_eq!(megahertz(wrong), None, "{wrong}");
        }
    }
}
