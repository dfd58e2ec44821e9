//! Groups of tasks: cgroups and those of sessions, numbered as they are met.

use std::fs;

use warmq_units::Duration;

/// Where the hierarchy with the CPU controller is, on systems of today and of before; and that of
/// process 1, of which a container has mounted its own part only.
const ROOTS: [&str; 5] = [
    "/sys/fs/cgroup",
    "/sys/fs/cgroup/cpu,cpuacct",
    "/sys/fs/cgroup/cpu",
    "/sys/fs/cgroup/unified",
    "/proc/1/root/sys/fs/cgroup",
];
const USUAL_WEIGHT: u32 = 100;
const USUAL_PERIOD: Duration = Duration::from_ms(100);
/// `cpu.shares` of the usual weight.
const USUAL_SHARES: u32 = 1_024;

/// A group.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub path: String,
    pub parent: u32,
    /// As `cpu.weight`.
    pub weight: u32,
    /// Its quota and its period (`cpu.max`).
    pub limit: (Duration, Duration),
    /// The last part of its path.
    pub name: String,
    /// What had been counted of its quota when it was met; none: it has no such counts.
    counted: Option<QuotaStat>,
}

impl Group {
    /// Whether the kernel counts its periods: it has a quota.
    pub fn is_counted(&self) -> bool {
        self.counted.is_some() && self.limit.0 < Duration(u64::MAX)
    }

    /// What has been counted of its quota since it was met.
    pub fn counted_since(&self) -> Option<QuotaStat> {
        let (now, before) = (counted(&self.path)?, self.counted?);
        Some(QuotaStat {
            periods: now.periods.saturating_sub(before.periods),
            throttled: now.throttled.saturating_sub(before.throttled),
            throttled_us: now.throttled_us.saturating_sub(before.throttled_us),
        })
    }
}

/// All groups but the root, which is 0.
#[derive(Debug, Default)]
pub(super) struct Groups(Vec<Group>);

impl Groups {
    /// The number of the group of `path`, which is met with all that it is part of.
    pub fn number(&mut self, path: &str) -> u32 {
        let path = path.trim_end_matches('/');
        if path.is_empty() {
            return 0;
        }
        if let Some(place) = self.0.iter().position(|group| group.path == path) {
            return place as u32 + 1;
        }
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parent = self.number(above);
        self.0.push(Group {
            path: path.to_owned(),
            parent,
            weight: weight(path),
            limit: limit(|name| file(path, name)),
            name: name.to_owned(),
            counted: counted(path),
        });
        self.0.len() as u32
    }

    /// Every group and its number.
    pub fn all(&self) -> impl Iterator<Item = (u32, &Group)> {
        (1..).zip(&self.0)
    }
}

/// Whether sessions have groups of their own (`sysctl_sched_autogroup_enabled`): tasks of the root
/// group alone are in them.
pub(super) fn sessions_have_groups() -> bool {
    let enabled = fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled");
    enabled.is_ok_and(|text| text.trim() != "0")
}

/// The text of a file of a group, wherever its hierarchy is.
fn file(path: &str, name: &str) -> Option<String> {
    let mut roots = ROOTS.into_iter();
    roots.find_map(|root| fs::read_to_string(format!("{root}{path}/{name}")).ok())
}

fn number(path: &str, name: &str) -> Option<u32> {
    file(path, name)?.trim().parse().ok()
}

/// As `cpu.weight` reads: 0 where `cpu.idle` is set.
fn weight(path: &str) -> u32 {
    if number(path, "cpu.idle") == Some(1) {
        return 0;
    }
    let of_shares = |shares: u32| {
        let weight = u64::from(shares) * u64::from(USUAL_WEIGHT) + u64::from(USUAL_SHARES) / 2;
        (weight / u64::from(USUAL_SHARES)) as u32
    };
    let shares = || number(path, "cpu.shares").map(of_shares);
    let weight = number(path, "cpu.weight").or_else(shares);
    weight.map_or(USUAL_WEIGHT, |weight| weight.max(1))
}

/// The limit in the files of a group: `cpu.max` of cgroup v2, `cpu.cfs_quota_us` (-1: none) and
/// `cpu.cfs_period_us` of v1.
fn limit(file: impl Fn(&str) -> Option<String>) -> (Duration, Duration) {
    let of_v1 = || {
        let [quota, period] = ["cpu.cfs_quota_us", "cpu.cfs_period_us"].map(&file);
        Some(format!("{} {}", quota?.trim(), period?.trim()))
    };
    limit_in(&file("cpu.max").or_else(of_v1).unwrap_or_default())
}

/// What a `cpu.max` says; no limit where there is none.
fn limit_in(text: &str) -> (Duration, Duration) {
    let mut words = text.split_whitespace();
    let mut us = || words.next()?.parse().ok().map(Duration::from_us);
    let quota = us().unwrap_or(Duration(u64::MAX));
    (quota, us().unwrap_or(USUAL_PERIOD))
}

fn counted(path: &str) -> Option<QuotaStat> {
    quota_in(&file(path, "cpu.stat")?)
}

/// What `cpu.stat` says of a group's quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaStat {
    /// Periods that have ended (`nr_periods`).
    pub periods: u64,
    /// Those in which it was throttled (`nr_throttled`).
    pub throttled: u64,
    /// For how long, summed over CPUs, in us.
    pub throttled_us: u64,
}

/// What a `cpu.stat` says of the group's quota; none where the controller is not there.
pub fn quota_in(stat: &str) -> Option<QuotaStat> {
    Some(QuotaStat {
        periods: value(stat, "nr_periods")?,
        throttled: value(stat, "nr_throttled")?,
        throttled_us: throttled_in(stat),
    })
}

/// The value of a line of `cpu.stat`.
fn value(stat: &str, key: &str) -> Option<u64> {
    let mut lines = stat.lines().filter_map(|line| line.split_once(' '));
    let (_, value) = lines.find(|(known, _)| *known == key)?;
    value.trim().parse().ok()
}

/// For how long a group was throttled, in us, as its `cpu.stat` says: `throttled_usec` of cgroup
/// v2, `throttled_time` in ns of v1.
pub fn throttled_in(stat: &str) -> u64 {
    let of_v1 = || Some(value(stat, "throttled_time")? / 1_000);
    value(stat, "throttled_usec").or_else(of_v1).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_met_with_those_above_it() {
        let mut groups = Groups::default();
        assert_eq!(groups.number("/"), 0);
        assert_eq!(groups.number("/none-such/b"), 2);
        assert_eq!(groups.number("/none-such"), 1);
        let b = groups.all().last().unwrap();
        assert_eq!((b.1.parent, b.1.name.as_str(), b.1.weight), (1, "b", 100));
    }

    #[test]
    fn a_limit_is_read() {
        let ms = Duration::from_ms;
        assert_eq!(limit_in("6000 50000\n"), (ms(6), ms(50)));
        assert_eq!(limit_in("max 100000\n"), (Duration(u64::MAX), ms(100)));
        assert_eq!(limit_in(""), (Duration(u64::MAX), ms(100)));
        let of_v1 = |quota: &'static str| {
            limit(|name| match name {
                "cpu.cfs_quota_us" => Some(quota.to_owned()),
                "cpu.cfs_period_us" => Some("50000\n".to_owned()),
                _ => None,
            })
        };
        assert_eq!(of_v1("20000\n"), (ms(20), ms(50)));
        assert_eq!(of_v1("-1\n"), (Duration(u64::MAX), ms(50)));
    }

    #[test]
    fn throttling_is_read_in_both_versions() {
        assert_eq!(throttled_in("usage_usec 5\nthrottled_usec 70\n"), 70);
        assert_eq!(throttled_in("nr_periods 1\nthrottled_time 9000\n"), 9);
        assert_eq!(throttled_in(""), 0);
        let of = |periods, throttled, throttled_us| QuotaStat {
            periods,
            throttled,
            throttled_us,
        };
        let v2 = "usage_usec 5\nnr_periods 32\nnr_throttled 30\nthrottled_usec 70\nnr_bursts 0\n";
        assert_eq!(quota_in(v2), Some(of(32, 30, 70)));
        let v1 = "nr_periods 4\nnr_throttled 1\nthrottled_time 9000\n";
        assert_eq!(quota_in(v1), Some(of(4, 1, 9)));
        assert_eq!(quota_in("usage_usec 5\n"), None);
    }
}
