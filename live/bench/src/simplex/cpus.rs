//! Which CPUs take part, and what else they do.

use std::fs;
use std::thread;
use std::time::Duration;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use warmq_units::CpuId;

use super::failed;
use crate::error::BenchError;

/// How long the CPUs are watched before anything runs.
const WATCHED: Duration = Duration::from_millis(300);

/// The two CPUs of a measurement.
///
/// Invariant: they differ, and this program may run on both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpus {
    /// Of Simplex and the receivers.
    pub receiver: CpuId,
    /// Of the sender.
    pub sender: CpuId,
}

impl Cpus {
    /// Takes what was asked for, else the last CPU allowed and one that shares no core with it.
    ///
    /// # Errors
    /// [`BenchError::Setting`] for a CPU that is not allowed; [`BenchError::System`] where there is
    /// only one.
    pub fn choose(receiver: Option<CpuId>, sender: Option<CpuId>) -> Result<Cpus, BenchError> {
        let allowed = allowed()?;
        check("cpu", receiver, &allowed)?;
        check("sender_cpu", sender, &allowed)?;
        let others =
            |not: Option<CpuId>| allowed.iter().copied().filter(move |it| Some(*it) != not);
        let receiver = receiver.or_else(|| others(sender).next_back());
        let distant = |it: &CpuId| !receiver.is_some_and(|cpu| siblings(cpu).contains(it));
        let sender = sender.or_else(|| {
            others(receiver)
                .find(distant)
                .or_else(|| others(receiver).next())
        });
        match (receiver, sender) {
            (Some(receiver), Some(sender)) if receiver == sender => {
                let mend = "write another one: the sender needs a CPU of its own";
                Err(BenchError::setting(
                    "sender_cpu",
                    sender.0,
                    "also the receivers' CPU",
                    mend,
                ))
            }
            (Some(receiver), Some(sender)) => Ok(Cpus { receiver, sender }),
            _ => Err(BenchError::System {
                action: "give the sender a CPU of its own".to_owned(),
                source: std::io::Error::other("this program may use one CPU only"),
                mend: "run it where it may use two (taskset -c, the container's CPU set, -smp 2)",
            }),
        }
    }

    /// Whether both are threads of one core, so that each slows the other down.
    pub fn share_a_core(self) -> bool {
        siblings(self.receiver).contains(&self.sender)
    }
}

fn check(field: &'static str, cpu: Option<CpuId>, allowed: &[CpuId]) -> Result<(), BenchError> {
    let Some(cpu) = cpu.filter(|cpu| !allowed.contains(cpu)) else {
        return Ok(());
    };
    let words: Vec<String> = allowed.iter().map(|cpu| cpu.0.to_string()).collect();
    let mend = format!("write one of {}", words.join(", "));
    Err(BenchError::setting(
        field,
        cpu.0,
        "this program may not run there",
        mend,
    ))
}

fn allowed() -> Result<Vec<CpuId>, BenchError> {
    let set = sched_getaffinity(Pid::from_raw(0))
        .map_err(|errno| failed("ask for the allowed CPUs", errno, "try as another user"))?;
    let is_set = |cpu: &usize| set.is_set(*cpu).unwrap_or(false);
    let ids = (0..CpuSet::count()).filter(is_set);
    Ok(ids.map(|cpu| CpuId(cpu as u16)).collect())
}

/// Pins the calling thread for good.
///
/// # Errors
/// What the kernel answers.
pub fn pin(cpu: CpuId) -> Result<(), BenchError> {
    let mut set = CpuSet::new();
    set.set(cpu.index())
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set))
        .map_err(|errno| {
            failed(
                format!("pin a thread to CPU {}", cpu.0),
                errno,
                "name a CPU that is online",
            )
        })
}

/// The threads of `cpu`'s core, itself among them; nothing where the kernel does not say.
fn siblings(cpu: CpuId) -> Vec<CpuId> {
    let path = format!(
        "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list",
        cpu.0
    );
    list(&fs::read_to_string(path).unwrap_or_default())
}

/// CPUs as the kernel writes them: `0-2,5`.
fn list(text: &str) -> Vec<CpuId> {
    let part = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u16>().ok()?..=last.parse::<u16>().ok()?)
    };
    let parts = text.trim().split(',').filter_map(part);
    parts.flatten().map(CpuId).collect()
}

/// The share of the time that somebody else uses `cpus`, watched for a moment; `None` where
/// /proc/stat cannot be read.
pub fn busy(cpus: Cpus) -> Option<f64> {
    let before = fs::read_to_string("/proc/stat").ok()?;
    thread::sleep(WATCHED);
    let after = fs::read_to_string("/proc/stat").ok()?;
    let share = |cpu: CpuId| busy_between(&before, &after, cpu);
    Some(share(cpus.receiver)?.max(share(cpus.sender)?))
}

/// The share of time between two readings of /proc/stat that `cpu` did not idle.
fn busy_between(before: &str, after: &str, cpu: CpuId) -> Option<f64> {
    let (before, after) = (times(before, cpu)?, times(after, cpu)?);
    let sum = |times: &[u64]| times.iter().sum::<u64>();
    let all = sum(&after)
        .checked_sub(sum(&before))
        .filter(|all| *all > 0)?;
    let idle = (after[3] + after[4]).saturating_sub(before[3] + before[4]);
    Some((all - idle.min(all)) as f64 / all as f64)
}

/// user, nice, system, idle, iowait, irq, softirq and steal of `cpu`; proc_stat(5).
fn times(text: &str, cpu: CpuId) -> Option<[u64; 8]> {
    let name = format!("cpu{} ", cpu.0);
    let line = text.lines().find_map(|line| line.strip_prefix(&name))?;
    let words: Vec<u64> = line
        .split_whitespace()
        .map_while(|word| word.parse().ok())
        .collect();
    words.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_the_kernel_writes_them() {
        let read = |text| list(text).iter().map(|cpu| cpu.0).collect::<Vec<_>>();
        assert_eq!(read("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(read("7"), [7]);
        assert_eq!(read(""), [] as [u16; 0]);
    }

    #[test]
    fn waiting_for_a_disk_is_idleness_and_stolen_time_is_not() {
        let before = "cpu  9 9 9 9\ncpu1 100 0 0 800 100 0 0 0 0 0\n";
        let after = "cpu  9 9 9 9\ncpu1 110 0 5 860 120 0 0 5 0 0\n";
        assert_eq!(busy_between(before, after, CpuId(1)), Some(0.2));
        assert_eq!(busy_between(before, before, CpuId(1)), None);
        assert_eq!(busy_between(before, after, CpuId(2)), None);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_named_with_those_that_are() {
        let error = Cpus::choose(Some(CpuId(9999)), None)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("cpu = 9999") && error.contains("write one of"),
            "{error}"
        );
    }
}
