//! What /proc says beside the events: processes of threads, stolen time, free memory.

use std::collections::BTreeMap;
use std::fs;

/// The init PID namespace, as /proc/self/ns/pid links to it.
const INIT_NAMESPACE: &str = "pid:[4026531836]";

/// The process of each thread that is alive.
pub(crate) fn processes() -> BTreeMap<u32, u32> {
    let mut all = BTreeMap::new();
    for tgid in numbers("/proc") {
        all.extend(numbers(&format!("/proc/{tgid}/task")).map(|tid| (tid, tgid)));
    }
    all
}

fn numbers(folder: &str) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// False if the kernel's thread ids are not those that this process sees.
pub(crate) fn sees_all_ids() -> bool {
    let link = fs::read_link("/proc/self/ns/pid");
    link.is_ok_and(|link| link.to_str() == Some(INIT_NAMESPACE))
}

/// For how long the hypervisor has taken each CPU away since boot, in ns.
pub(crate) fn steal() -> BTreeMap<u16, u64> {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    steal_in(&text, rustix::param::clock_ticks_per_second())
}

/// `cpu0 USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL ...`, in ticks.
fn steal_in(stat: &str, hz: u64) -> BTreeMap<u16, u64> {
    let tick = 1_000_000_000 / hz.max(1);
    let of = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split_whitespace();
        let cpu = words.next()?.parse().ok()?;
        let ticks: u64 = words.nth(7)?.parse().ok()?;
        Some((cpu, ticks.saturating_mul(tick)))
    };
    // The first line is of all CPUs together.
    let lines = stat.lines().filter(|line| !line.starts_with("cpu "));
    lines.filter_map(of).collect()
}

/// For how long CPUs did anything since boot, all together, in ns.
pub fn busy_ns() -> u64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    busy_in(&text, rustix::param::clock_ticks_per_second())
}

/// All but idling, waiting for disks and stolen time of the line of all CPUs.
fn busy_in(stat: &str, hz: u64) -> u64 {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "));
    let ticks = line.unwrap_or_default().split_whitespace();
    let ticks: Vec<u64> = ticks.map_while(|word| word.parse().ok()).collect();
    let busy = [0, 1, 2, 5, 6].iter().filter_map(|place| ticks.get(*place));
    busy.sum::<u64>().saturating_mul(1_000_000_000 / hz.max(1))
}

/// The memory that can be had without swapping, in bytes.
pub(crate) fn available_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_the_eighth_number_of_each_cpu() {
        let stat = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu12 0 0 0 0 0 0 0 0\ncpu1 3\nintr 5\n";
        let expected = BTreeMap::from([(0, 80_000_000), (12, 0)]);
        assert_eq!(steal_in(stat, 100), expected);
    }

    #[test]
    fn a_cpu_is_busy_with_tasks_and_interrupts() {
        let stat = "cpu  1 2 4 800 1600 8 16 3200 1 1\ncpu0 9 9\n";
        assert_eq!(busy_in(stat, 100), 31 * 10_000_000);
        assert_eq!(busy_in("", 100), 0);
    }

    #[test]
    fn this_thread_is_one_of_this_process() {
        let pid = std::process::id();
        assert_eq!(processes().get(&pid), Some(&pid));
    }
}
