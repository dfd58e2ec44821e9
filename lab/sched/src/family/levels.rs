//! Lists by level, with a bitmap that finds the highest level where somebody waits.

use warmq_kernel::{Attach, Context, Within};
use warmq_machine::Access;
use warmq_units::{Bytes, TaskId};

use super::list::Lists;
use super::state::Here;

/// Bytes of a list's head: two pointers of a 32-bit machine.
const HEAD: u64 = 8;

/// Waiting tasks, each in the list of one level.
///
/// Invariant: bit l of the bitmap is set if and only if list l has a task.
pub(crate) struct Levels {
    lists: Lists,
    level_of: Vec<usize>,
    bitmap: Vec<u64>,
}

impl Levels {
    /// `levels` empty lists, their heads side by side in memory.
    pub(crate) fn new(attach: &mut Attach<'_>, levels: usize) -> Levels {
        let table = attach.data(Bytes(levels as u64 * HEAD));
        let heads = (0..levels as u64)
            .map(|level| table + level * HEAD)
            .collect();
        let bitmap = vec![0; levels.div_ceil(64)];
        Levels {
            lists: Lists::new(heads),
            level_of: Vec::new(),
            bitmap,
        }
    }

    pub(crate) fn admit(&mut self, task: TaskId) {
        self.lists.admit(task);
        self.level_of
            .resize(self.level_of.len().max(task.index() + 1), 0);
    }

    /// Puts `task` in front of `level`, or behind those that wait there.
    pub(crate) fn add(
        &mut self,
        here: &mut Here<'_, '_>,
        task: TaskId,
        level: usize,
        in_front: bool,
    ) {
        if in_front {
            self.lists.add_first(here, level, task);
        } else {
            self.lists.add_last(here, level, task);
        }
        self.level_of[task.index()] = level;
        self.bitmap[level / 64] |= 1 << (level % 64);
    }

    /// Takes `task` out; nothing when it does not wait.
    pub(crate) fn remove(&mut self, here: &mut Here<'_, '_>, task: TaskId) {
        if !self.lists.contains(task) {
            return;
        }
        self.lists.remove(here, task);
        let level = self.level_of[task.index()];
        if self.lists.first(level).is_none() {
            self.bitmap[level / 64] &= !(1 << (level % 64));
        }
    }

    /// The highest level below `bound` where somebody waits; reads its list's head.
    pub(crate) fn highest_below(&self, context: &mut Context<'_>, bound: usize) -> Option<usize> {
        let level = (0..bound.div_ceil(64)).rev().find_map(|word| {
            let bits = bound - word * 64;
            let mask = if bits >= 64 {
                u64::MAX
            } else {
                (1 << bits) - 1
            };
            let waiting = self.bitmap[word] & mask;
            (waiting != 0).then(|| word * 64 + 63 - waiting.leading_zeros() as usize)
        })?;
        context.touch(self.lists.head(level), Access::Read);
        Some(level)
    }

    /// Walks over `level` until `most` tasks that can run here were seen, and keeps the best of
    /// them and of `best`. Returns how many were visited.
    pub(crate) fn walk(
        &self,
        here: &mut Here<'_, '_>,
        level: usize,
        most: u32,
        best: &mut (i32, Option<TaskId>),
    ) -> u64 {
        let (mut visits, mut left) = (0, most);
        here.context.within(Within::RunQueueWalk);
        let mut next = self.lists.first(level);
        while let Some(task) = next.filter(|_| left > 0) {
            next = self.lists.after(task);
            visits += 1;
            if here.visit(task, None) {
                left -= 1;
                let weight = here.common.goodness(here.context, task);
                if weight > best.0 {
                    *best = (weight, Some(task));
                }
            }
        }
        here.context.within(Within::Elsewhere);
        visits
    }

    /// True when `task` waits here.
    pub(crate) fn contains(&self, task: TaskId) -> bool {
        self.lists.contains(task)
    }

    /// Everybody who waits below `bound`, from the top.
    pub(crate) fn all_below(&self, bound: usize) -> Vec<TaskId> {
        let mut tasks = Vec::new();
        for level in (0..bound).rev() {
            let mut next = self.lists.first(level);
            while let Some(task) = next {
                tasks.push(task);
                next = self.lists.after(task);
            }
        }
        tasks
    }
}
