//! A thread, as /proc describes it.

use std::fs;

use warmq_trace::{Policy, Record};
use warmq_units::TaskId;

use super::affinity;

/// `PF_KTHREAD` of `include/linux/sched.h`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// What is known of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Alive {
    pub nice: i8,
    pub policy: Option<Policy>,
    pub priority: u8,
    pub kernel: bool,
    pub group: u32,
    /// Bit n of word m is CPU 64 m + n; empty: all CPUs.
    pub cpus: Vec<u64>,
}

/// A thread and the name of its group, which may be that of its session if `sessions` have any;
/// none if it is gone.
pub(super) fn read(tgid: u32, tid: u32, sessions: bool) -> Option<(Alive, String)> {
    let folder = format!("/proc/{tgid}/task/{tid}");
    let text = |file: &str| fs::read_to_string(format!("{folder}/{file}"));
    let mut alive = of_stat(&text("stat").ok()?)?;
    let status = text("status").unwrap_or_default();
    let all = status.lines();
    let allowed = all
        .filter_map(|line| line.strip_prefix("Cpus_allowed:"))
        .next();
    alive.cpus = allowed.map(|text| words(text.trim())).unwrap_or_default();
    let cgroup = of_cgroup(&text("cgroup").unwrap_or_default());
    // Sessions' groups are those of processes. The file is there whether they are heeded or not.
    let autogroup = || fs::read_to_string(format!("/proc/{tgid}/autogroup"));
    let group = match cgroup.as_str() {
        // Only tasks of the root cgroup are in a session's group, and no thread of the kernel.
        "" | "/" if sessions && !alive.kernel => of_autogroup(&autogroup().unwrap_or_default()),
        path => path.to_owned(),
    };
    Some((alive, group))
}

/// `PID (COMM) STATE ...`: flags, nice value, real-time priority and policy are the fields 9, 19,
/// 40 and 41 of proc_pid_stat(5).
fn of_stat(stat: &str) -> Option<Alive> {
    // A name may have spaces and parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // The first one here is field 3.
    let field = |number: usize| fields.get(number - 3).copied();
    let policy: u64 = field(41)?.parse().ok()?;
    let mut all = Policy::ALL.iter();
    Some(Alive {
        nice: field(19)?.parse().ok()?,
        policy: all.find(|known| **known as u64 == policy).copied(),
        priority: field(40)?.parse().unwrap_or(0),
        kernel: field(9)?.parse::<u64>().ok()? & KERNEL_THREAD != 0,
        ..Alive::default()
    })
}

/// The path in the hierarchy that has the CPU controller.
fn of_cgroup(text: &str) -> String {
    let lines = text.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        Some((controllers, path))
    });
    let mut unified = String::new();
    for (controllers, path) in lines {
        match controllers {
            "" => path.clone_into(&mut unified),
            names if names.split(',').any(|name| name == "cpu") => return path.to_owned(),
            _ => {}
        }
    }
    unified
}

/// `/autogroup-744 nice 0`.
fn of_autogroup(text: &str) -> String {
    let name = text.split_whitespace().next();
    name.unwrap_or_default().to_owned()
}

/// `ff,ffffffff`: words of 32 bits, the highest first.
fn words(text: &str) -> Vec<u64> {
    let parts = text.split(',').rev();
    let parts: Vec<u64> = parts
        .map(|part| u64::from_str_radix(part, 16).unwrap_or(0))
        .collect();
    let word = |pair: &[u64]| pair[0] | pair.get(1).copied().unwrap_or(0) << 32;
    parts.chunks(2).map(word).collect()
}

impl Alive {
    /// What it is like, of `task`.
    pub fn records(&self, task: TaskId) -> impl Iterator<Item = Record> {
        let nice = self.nice;
        let policy = self.policy.map(|policy| Record::Policy {
            task,
            policy,
            priority: self.priority,
        });
        let group = self.group;
        let of_kernel = self.kernel.then_some(Record::KernelThread { task });
        [Record::Nice { task, nice }, Record::Group { task, group }]
            .into_iter()
            .chain(policy)
            .chain(of_kernel)
            .chain(affinity(task, &self.cpus))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_read_however_it_is_called() {
        let stat = |values: &[(usize, &str)]| {
            let mut fields = vec!["0"; 50];
            values
                .iter()
                .for_each(|(field, value)| fields[field - 3] = value);
            format!("42 (a ) (b) {}", fields.join(" "))
        };
        let values = [(3, "S"), (19, "-5"), (40, "50"), (41, "1")];
        let alive = of_stat(&stat(&values)).unwrap();
        assert_eq!((alive.nice, alive.policy), (-5, Some(Policy::Fifo)));
        assert_eq!(alive.priority, 50);
        assert!(of_stat(&stat(&[(9, "2129984")])).unwrap().kernel);
        assert!(!alive.kernel);
        assert_eq!(of_stat("42 (a) S 1"), None);
        assert_eq!(of_stat(""), None);
    }

    #[test]
    fn the_group_is_that_of_the_cpu_controller() {
        let mixed = "5:memory:/m\n1:cpu,cpuacct:/c/d\n0::/u\n";
        assert_eq!(of_cgroup(mixed), "/c/d");
        assert_eq!(of_cgroup("0::/user.slice/a:b\n"), "/user.slice/a:b");
        assert_eq!(of_cgroup(""), "");
        assert_eq!(of_autogroup("/autogroup-744 nice 0\n"), "/autogroup-744");
    }

    #[test]
    fn an_affinity_is_words_of_64_cpus() {
        assert_eq!(words("3"), [3]);
        assert_eq!(words("1,00000000,80000001"), [0x8000_0001, 1]);
    }
}
