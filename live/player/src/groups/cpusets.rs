//! The CPUs that groups may use.
//!
//! cgroup v2 takes what a group asks for, and gives it what of that the group around it has. v1
//! refuses what is not within that, so there each group is given the intersection.

use std::io;
use std::sync::{MutexGuard, PoisonError};

use warmq_units::CpuSet;

use super::Groups;
use super::tree::Tree;

/// Those of `wanted` that are in `outer`, or `outer` if there are none, as v2 has it
/// (`cpuset.cpus.effective`).
fn within(wanted: &CpuSet, outer: Option<CpuSet>) -> CpuSet {
    let both = outer.as_ref().map(|outer| wanted.intersection(outer));
    match (both, outer) {
        (Some(both), Some(outer)) if both.is_empty() => outer,
        (Some(both), _) => both,
        (None, _) => wanted.clone(),
    }
}

fn both(one: &CpuSet, other: &CpuSet) -> CpuSet {
    one.iter().chain(other.iter()).collect()
}

impl Groups {
    /// The CPUs of group `number` within those of the groups that it is in; none if no one of them
    /// asks for some.
    pub(super) fn effective_cpus(&self, number: u32, asked: &[Option<CpuSet>]) -> Option<CpuSet> {
        let group = self.cgroup(number)?;
        let outer = self.effective_cpus(group.parent(), asked);
        match &asked[number as usize - 1] {
            Some(own) => Some(within(own, outer)),
            None => outer,
        }
    }

    /// The CPUs that each group asks for: whoever panicked with them has left them whole.
    fn asked(&self) -> MutexGuard<'_, Vec<Option<CpuSet>>> {
        self.cpus.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives each group the CPUs that it asks for at the start.
    ///
    /// # Errors
    /// What the system refuses.
    pub(super) fn write_cpusets(&self) -> io::Result<()> {
        let asked = self.asked().clone();
        self.numbers()
            .try_for_each(|number| self.write_cpuset(number, &asked, None))
    }

    /// Sets the CPUs that group `number` asks for.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn set_cpus(&self, number: u32, cpus: CpuSet) -> io::Result<()> {
        let mut asked = self.asked();
        let before = asked.clone();
        asked[number as usize - 1] = Some(cpus);
        // v1 wants a group within that around it at all times: first all grow, then the innermost
        // shrink first.
        self.numbers()
            .try_for_each(|number| self.write_cpuset(number, &asked, Some(&before)))?;
        let mut innermost_first: Vec<u32> = self.numbers().collect();
        innermost_first.sort_by_key(|number| std::cmp::Reverse(self.path(*number).len()));
        innermost_first
            .into_iter()
            .try_for_each(|number| self.write_cpuset(number, &asked, None))
    }

    /// Writes what group `number` asks for to its cpuset; with what was asked `before`, that as
    /// well.
    fn write_cpuset(
        &self,
        number: u32,
        asked: &[Option<CpuSet>],
        before: Option<&[Option<CpuSet>]>,
    ) -> io::Result<()> {
        let Some(tree) = self.cpuset_tree() else {
            return Ok(());
        };
        let wanted = match tree.is_unified() {
            true => asked[number as usize - 1].clone(),
            false => self.effective_cpus(number, asked),
        };
        let Some(wanted) = wanted else {
            return Ok(());
        };
        let old = before.and_then(|before| self.effective_cpus(number, before));
        let cpus = old.map_or(wanted.clone(), |old| both(&old, &wanted));
        tree.set_cpus(&self.path(number), &cpus)
    }

    /// The hierarchy that has cpusets, if the scenario has any.
    fn cpuset_tree(&self) -> Option<&Tree> {
        self.cpuset
            .as_ref()
            .or(self.cpu.as_ref().filter(|_| self.has_cpusets))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(cpus: &[u16]) -> CpuSet {
        cpus.iter().copied().map(warmq_units::CpuId).collect()
    }

    #[test]
    fn a_group_has_no_more_than_that_around_it() {
        assert_eq!(within(&set(&[0, 1]), None), set(&[0, 1]));
        assert_eq!(within(&set(&[0, 1]), Some(set(&[1, 2]))), set(&[1]));
        assert_eq!(within(&set(&[0]), Some(set(&[1, 2]))), set(&[1, 2]));
    }
}
