//! Groups of tasks: cgroups and those of sessions, numbered as they are met.

use std::fs;

/// Where the hierarchy with the CPU controller is, on systems of today and of before.
const ROOTS: [&str; 4] = [
    "/sys/fs/cgroup",
    "/sys/fs/cgroup/cpu,cpuacct",
    "/sys/fs/cgroup/cpu",
    "/sys/fs/cgroup/unified",
];
const USUAL_WEIGHT: u32 = 100;
/// `cpu.shares` of the usual weight.
const USUAL_SHARES: u32 = 1_024;

/// A group.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub path: String,
    pub parent: u32,
    /// As `cpu.weight`.
    pub weight: u32,
    /// The last part of its path.
    pub name: String,
    /// For how long it had been throttled when it was met, in us.
    throttled_us: u64,
}

impl Group {
    /// For how long it has been throttled since it was met, in us.
    pub fn throttled_since(&self) -> u64 {
        throttled_us(&self.path).saturating_sub(self.throttled_us)
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
            name: name.to_owned(),
            throttled_us: throttled_us(path),
        });
        self.0.len() as u32
    }

    /// Every group and its number.
    pub fn all(&self) -> impl Iterator<Item = (u32, &Group)> {
        (1..).zip(&self.0)
    }
}

/// The text of a file of a group, wherever its hierarchy is.
fn file(path: &str, name: &str) -> Option<String> {
    let mut roots = ROOTS.into_iter();
    roots.find_map(|root| fs::read_to_string(format!("{root}{path}/{name}")).ok())
}

fn number(path: &str, name: &str) -> Option<u32> {
    file(path, name)?.trim().parse().ok()
}

fn weight(path: &str) -> u32 {
    let shares = || Some(number(path, "cpu.shares")? * USUAL_WEIGHT / USUAL_SHARES);
    let weight = number(path, "cpu.weight").or_else(shares);
    weight.map_or(USUAL_WEIGHT, |weight| weight.max(1))
}

fn throttled_us(path: &str) -> u64 {
    throttled_in(&file(path, "cpu.stat").unwrap_or_default())
}

/// For how long a group was throttled, in us, as its `cpu.stat` says: `throttled_usec` of cgroup v2,
/// `throttled_time` in ns of v1.
pub fn throttled_in(stat: &str) -> u64 {
    let value = |key: &str| -> Option<u64> {
        let mut lines = stat.lines().filter_map(|line| line.split_once(' '));
        let (_, value) = lines.find(|(known, _)| *known == key)?;
        value.trim().parse().ok()
    };
    let of_v1 = || Some(value("throttled_time")? / 1_000);
    value("throttled_usec").or_else(of_v1).unwrap_or(0)
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
        assert_eq!((b.1.parent, b.1.name.raw(), b.1.weight), (1, "b", 100));
    }

    #[test]
    fn throttling_is_read_in_both_versions() {
        assert_eq!(throttled_in("usage_usec 5\nthrottled_usec 70\n"), 70);
        assert_eq!(throttled_in("nr_periods 1\nthrottled_time 9000\n"), 9);
        assert_eq!(throttled_in(""), 0);
    }
}
