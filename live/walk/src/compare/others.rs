//! How busy other programs kept the CPUs during a measurement.

use std::fs;
use std::time::Instant;

use warmq_units::CpuId;

use crate::error::BenchError;

use super::usage::Usage;

/// Ticks per second in /proc/stat: `USER_HZ`, which is 100 on every machine that Linux runs on
/// today.
const TICKS_PER_S: f64 = 100.0;

/// Where the fields of a line of /proc/stat lie that are busy time: user, nice, system, irq,
/// softirq, and steal, which a hypervisor took for other guests (proc_stat(5)). Guests of this
/// machine are in user and nice already.
const BUSY: [usize; 6] = [1, 2, 3, 6, 7, 8];

/// A measurement that has begun.
#[derive(Debug)]
pub(crate) struct Others<'a> {
    cpus: &'a [u16],
    began: Instant,
    busy: Option<u64>,
    ours: Usage,
}

impl Others<'_> {
    /// Begins, on `cpus`.
    pub(crate) fn begin(cpus: &[u16]) -> Result<Others<'_>, BenchError> {
        Ok(Others {
            cpus,
            began: Instant::now(),
            busy: busy_now(cpus),
            ours: Usage::with_children()?,
        })
    }

    /// The share of all CPU time since then that was used by other programs, interrupts, and other
    /// guests of the same host. `None` if the kernel does not tell.
    pub(crate) fn share(&self) -> Result<Option<f64>, BenchError> {
        let ours_s = (Usage::with_children()? - self.ours).cpu_ns() as f64 / 1e9;
        let all_s = self.began.elapsed().as_secs_f64() * self.cpus.len() as f64;
        let busy = busy_now(self.cpus).zip(self.busy);
        Ok(busy.map(|(now, before)| {
            let busy_s = now.saturating_sub(before) as f64 / TICKS_PER_S;
            ((busy_s - ours_s) / all_s.max(1.0 / TICKS_PER_S)).clamp(0.0, 1.0)
        }))
    }
}

/// Seconds since boot that `cpu` was busy. `None` if the kernel does not tell.
pub(crate) fn busy_s(cpu: CpuId) -> Option<f64> {
    Some(busy_now(&[cpu.0])? as f64 / TICKS_PER_S)
}

fn busy_now(cpus: &[u16]) -> Option<u64> {
    busy_ticks(&fs::read_to_string("/proc/stat").ok()?, cpus)
}

/// Busy ticks of `cpus` in the text of /proc/stat; `None` where it does not name all of them.
fn busy_ticks(stat: &str, cpus: &[u16]) -> Option<u64> {
    let of = |cpu: &u16| {
        let name = format!("cpu{cpu}");
        let fields = |line: &str| {
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let fields = stat
            .lines()
            .map(fields)
            .find(|it| it.first() == Some(&name))?;
        let ticks = |field: &usize| fields.get(*field)?.parse::<u64>().ok();
        BUSY.iter().map(ticks).sum::<Option<u64>>()
    };
    cpus.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  11 22 33 44 55 66 77 88 99 0\n\
                        cpu0 1 2 3 1000 1000 4 5 6 1000 1000\n\
                        cpu1 10 20 30 1000 1000 40 50 60 1000 1000\n\
                        cpu11 7 7 7 7 7 7 7 7 7 7\n\
                        intr 12\n";

    #[test]
    fn idle_and_waiting_is_not_busy_and_a_guest_is_counted_once() {
        assert_eq!(busy_ticks(STAT, &[0]), Some(21));
        assert_eq!(busy_ticks(STAT, &[1]), Some(210));
        assert_eq!(busy_ticks(STAT, &[0, 1, 11]), Some(21 + 210 + 42));
        assert_eq!(busy_ticks(STAT, &[0, 2]), None);
        assert_eq!(busy_ticks("cpu0 1 2 3", &[0]), None);
    }

    #[test]
    fn others_have_a_share_of_all_there_is() {
        let cpus = [0];
        let others = Others::begin(&cpus).unwrap();
        let share = others.share().unwrap();
        assert!(share.is_none_or(|share| (0.0..=1.0).contains(&share)));
    }
}
