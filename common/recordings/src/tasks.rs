//! Which thread is which task.

use std::collections::BTreeMap;

use warmq_trace::Comm;
use warmq_units::TaskId;

use crate::event::Name;

/// The tasks of a trace, by their thread ids.
///
/// Whoever plays a scenario makes its own threads known; all others get the next free ids as the
/// recording meets them. Thread id 0 is the idle task, which is no task here.
///
/// ```
/// use warmq_recordings::Tasks;
/// use warmq_units::TaskId;
/// let mut tasks = Tasks::new();
/// tasks.know(4711, TaskId(0));
/// assert_eq!(tasks.id(4711), Some(TaskId(0)));
/// assert_eq!(tasks.id(1), None);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    /// The last task that had a thread id.
    by_tid: BTreeMap<u32, Slot>,
    all: Vec<Entry>,
    next: u32,
    /// Tasks that get their thread ids later: from when, in nanoseconds of the recording's clock,
    /// and which. Until then an id may be another thread's.
    later: BTreeMap<(u64, u32), TaskId>,
}

/// An index into the tasks.
pub(crate) type Slot = usize;

#[derive(Clone, Debug, Default)]
pub(crate) struct Entry {
    pub id: TaskId,
    pub tid: u32,
    pub comm: Comm,
    /// The record of its ids was written.
    pub introduced: bool,
    /// The record of its first name was written.
    pub named: bool,
    /// It was met in a recording.
    pub met: bool,
    /// It exited: its thread id may be given to another.
    pub gone: bool,
}

impl Tasks {
    /// None.
    pub fn new() -> Tasks {
        Tasks::default()
    }

    /// None, and whoever the caller does not make known gets an id from `first` on: a task that the
    /// caller counts may never have got a thread id.
    ///
    /// ```
    /// use warmq_recordings::Tasks;
    /// use warmq_units::TaskId;
    /// let mut tasks = Tasks::with_strangers_from(TaskId(8));
    /// tasks.know(4711, TaskId(0));
    /// assert_eq!(tasks.id(4711), Some(TaskId(0)));
    /// ```
    pub fn with_strangers_from(first: TaskId) -> Tasks {
        Tasks {
            next: first.0,
            ..Tasks::default()
        }
    }

    /// Thread `tid` is `task`, and the caller writes the records that introduce it
    /// ([`Fork`](warmq_trace::Record::Fork), [`Ids`](warmq_trace::Record::Ids)).
    pub fn know(&mut self, tid: u32, task: TaskId) {
        self.put(tid, task, true);
    }

    /// Thread `tid` is `task` from `ns` of the recording's clock on, and the caller writes the
    /// records that introduce it. Who has this thread id before is another: the kernel gives ids
    /// of threads that exited to new ones.
    ///
    /// ```
    /// use warmq_recordings::Tasks;
    /// use warmq_units::TaskId;
    /// let mut tasks = Tasks::new();
    /// tasks.know_from(1_000, 4711, TaskId(0));
    /// assert_eq!(tasks.id(4711), None);
    /// ```
    pub fn know_from(&mut self, ns: u64, tid: u32, task: TaskId) {
        self.next = self.next.max(task.0.saturating_add(1));
        self.later.insert((ns, tid), task);
    }

    /// The time is `ns`: who gets a thread id by now has it.
    #[inline]
    pub(crate) fn reach(&mut self, ns: u64) {
        while let Some(next) = self.later.first_entry().filter(|next| next.key().0 <= ns) {
            let ((_, tid), task) = next.remove_entry();
            self.put(tid, task, true);
        }
    }

    /// The task that `tid` is, or was last.
    pub fn id(&self, tid: u32) -> Option<TaskId> {
        let slot = self.by_tid.get(&tid)?;
        Some(self.all[*slot].id)
    }

    /// Every task, its thread id, and its last known name, in the order in which they became known.
    pub fn iter(&self) -> impl Iterator<Item = (TaskId, u32, Comm)> {
        self.all.iter().map(|task| (task.id, task.tid, task.comm))
    }

    fn put(&mut self, tid: u32, id: TaskId, introduced: bool) -> Slot {
        self.next = self.next.max(id.0.saturating_add(1));
        let slot = self.all.len();
        self.all.push(Entry {
            id,
            tid,
            introduced,
            named: introduced,
            ..Entry::default()
        });
        self.by_tid.insert(tid, slot);
        slot
    }

    /// The task that `tid` is now, if it is known.
    #[inline]
    pub(crate) fn alive(&self, tid: u32) -> Option<Slot> {
        let slot = self.by_tid.get(&tid).copied();
        slot.filter(|slot| !self.all[*slot].gone)
    }

    /// The task that `tid` is now; a stranger gets the next free id.
    #[inline]
    pub(crate) fn meet(&mut self, tid: u32, comm: Name) -> Slot {
        let slot = match self.alive(tid) {
            Some(slot) => slot,
            None => self.put(tid, TaskId(self.next), false),
        };
        let entry = &mut self.all[slot];
        entry.met = true;
        if entry.comm == Comm::default() {
            entry.comm = to_comm(comm);
        }
        slot
    }

    /// The task that `tid` is from its fork on.
    pub(crate) fn born(&mut self, tid: u32, comm: Name) -> Slot {
        // Who was met before had this id before, and its exit was lost.
        let before = self.by_tid.get(&tid).copied();
        if let Some(slot) = before.filter(|slot| self.all[*slot].met) {
            self.all[slot].gone = true;
        }
        self.meet(tid, comm)
    }

    /// `slot` has the thread id `tid` from now on.
    pub(crate) fn takes(&mut self, slot: Slot, tid: u32) {
        self.all[slot].tid = tid;
        self.by_tid.insert(tid, slot);
    }

    pub(crate) fn entry(&mut self, slot: Slot) -> &mut Entry {
        &mut self.all[slot]
    }
}

/// A name as the kernel has it: bytes that need not be text.
pub(crate) fn to_comm(name: Name) -> Comm {
    Comm::new(&String::from_utf8_lossy(name.bytes()))
}
