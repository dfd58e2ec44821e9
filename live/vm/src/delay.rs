//! For how long a guest's CPUs waited for this machine's.

use std::fs;
use std::path::Path;
use std::time::Duration;

/// The sum over all threads of the process below `proc` (`/proc/PID`) that are CPUs of a guest;
/// `None` where that is not known (the kernel has no CONFIG_SCHED_INFO, or the process is gone).
///
/// QEMU calls these threads `CPU 0/TCG` where it is asked for names of threads. The second number
/// of `schedstat` is the time in ns for which a thread was runnable without a CPU (the kernel's
/// Documentation/scheduler/sched-stats.rst).
pub(crate) fn of_cpus(proc: &Path) -> Option<Duration> {
    let mut sum = None;
    for thread in fs::read_dir(proc.join("task")).ok()?.filter_map(Result::ok) {
        let name = fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
        if !name.starts_with("CPU ") {
            continue;
        }
        let stat = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        let waited = stat.split_whitespace().nth(1)?.parse().ok()?;
        *sum.get_or_insert(Duration::ZERO) += Duration::from_nanos(waited);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(threads: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (number, (name, stat)) in threads.iter().enumerate() {
            let thread = folder.path().join(format!("task/{number}"));
            fs::create_dir_all(&thread).unwrap();
            fs::write(thread.join("comm"), format!("{name}\n")).unwrap();
            fs::write(thread.join("schedstat"), stat).unwrap();
        }
        folder
    }

    #[test]
    fn only_the_guests_cpus_count() {
        let cpus = [
            ("qemu-system-x86", "9 900 1\n"),
            ("CPU 0/TCG", "100 20 3\n"),
            ("CPU 1/TCG", "100 5 3\n"),
        ];
        let sum = |threads: &[(&str, &str)]| of_cpus(process(threads).path());
        assert_eq!(sum(&cpus), Some(Duration::from_nanos(25)));
        assert_eq!(sum(&cpus[..1]), None, "nobody is a CPU");
        assert_eq!(sum(&[("CPU 0/TCG", "")]), None, "the kernel does not say");
        assert_eq!(of_cpus(Path::new("/nowhere")), None);
    }
}
