//! How fast a CPU of this machine computes: the loop of `run` steps, calibrated.
//!
//! A round of the loop is a multiplication that needs the result of the one before, so that it
//! takes the same number of cycles whatever else the core could do at the same time. The loop reads
//! no clock: time in which the task has no CPU does not count as work.

use std::fs;
use std::hint::black_box;

use warmq_scenario::Quantity;

use crate::sys::clock::now_ns;

/// Rounds of a single measurement: about half a millisecond.
const SAMPLE: u64 = 400_000;
/// Measurements. The fastest counts: interrupts and other tasks only slow the loop down.
const SAMPLES: u32 = 40;
const PS_PER_S: u128 = 1_000_000_000_000;

/// Computes for `rounds` of the loop.
#[inline(never)]
pub fn spin(rounds: u64) {
    let mut value = black_box(rounds);
    for _ in 0..rounds {
        value = value
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
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
    /// Measures the speed of this CPU; takes some 20 ms. `rounds_per_s` is not measured if it is
    /// given: runs that are compared should do the same work.
    pub fn measure(rounds_per_s: Option<u64>) -> Speed {
        let rounds_per_s = rounds_per_s.unwrap_or_else(calibrate).max(1);
        let (hertz, hertz_from) = clock();
        Speed {
            rounds_per_s,
            hertz: hertz.max(1),
            hertz_from,
        }
    }

    /// The rounds of the loop for `work`: picoseconds, or cycles of the clock.
    #[inline]
    pub fn loops(&self, work: u64, quantity: Quantity) -> u64 {
        let per_unit = match quantity {
            Quantity::Time => PS_PER_S,
            _ => u128::from(self.hertz),
        };
        let rounds = u128::from(work) * u128::from(self.rounds_per_s) / per_unit;
        u64::try_from(rounds).unwrap_or(u64::MAX)
    }
}

fn calibrate() -> u64 {
    let sample = |_| {
        let begin = now_ns();
        spin(SAMPLE);
        now_ns() - begin
    };
    let fastest = (0..SAMPLES).map(sample).min().unwrap_or(1).max(1);
    SAMPLE * 1_000_000_000 / fastest
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
