//! Who shares data with whom: the threads of a process, or the tasks that named a fragment
//! (`struct sched_cache_stat` of an mm).

use warmq_kernel::{Context, Fragment, Mm, View};
use warmq_units::{Address, Bytes, CpuId, TaskId};

use super::super::state::State;
use super::CacheAware;
use super::knobs::Sharing;
use super::occupancy::Window;

/// What the tasks share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shared {
    Memory(Mm),
    Fragment(Fragment),
}

/// The tasks that share something.
///
/// Invariant: `members` is the number of tasks whose [`Member::of`] is this, and which have not
/// exited.
#[derive(Default)]
pub(super) struct Sharers {
    pub(super) members: u64,
    /// What they ran on each CPU.
    pub(super) ran: Vec<Window>,
    /// The CPU of the preferred cache on which they ran most (`sc_stat.cpu`).
    pub(super) preferred: Option<CpuId>,
    /// On how many CPUs they run at a time (`nr_running_avg`).
    pub(super) running: u64,
    /// The epoch of the last scan (`sc_stat.epoch`), and the tick of the next (`next_scan`).
    pub(super) epoch: u64,
    pub(super) next_scan: u64,
    /// A line for each CPU.
    pub(super) lines: Address,
}

/// What a task has besides.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Member {
    pub(super) of: Option<usize>,
    /// The cache that it prefers (`preferred_llc`).
    pub(super) prefers: Option<usize>,
}

impl CacheAware {
    /// What `view` shares with others.
    fn shared_by(&self, view: View<'_>) -> Option<Shared> {
        match self.sharing {
            Sharing::Process if view.is_kernel_thread() => None,
            Sharing::Process => view.mm().map(Shared::Memory),
            Sharing::Declared => view.fragment().map(Shared::Fragment),
        }
    }

    fn found(&mut self, context: &mut Context<'_>, what: Shared) -> usize {
        let cpus = self.cpus.len();
        let line = self.line;
        let epoch = self.cpus.iter().map(|cpu| cpu.ran.epoch).max();
        let at = self.sharers.len();
        self.sharing_what.insert(what, at);
        self.sharers.push(Sharers {
            ran: vec![Window::default(); cpus],
            epoch: epoch.unwrap_or(0),
            lines: context.data(Bytes(line * cpus as u64)),
            ..Sharers::default()
        });
        at
    }

    fn leave(&mut self, task: TaskId) {
        let member = &mut self.members[task.index()];
        if let Some(before) = std::mem::take(&mut member.of) {
            self.sharers[before].members -= 1;
        }
    }
}

impl State {
    /// `task` was created, or has named other data: it counts where it belongs.
    pub(in super::super) fn join_sharers(&mut self, context: &mut Context<'_>, task: TaskId) {
        let Some(aware) = &mut self.cache_aware else {
            return;
        };
        if aware.members.len() <= task.index() {
            aware.members.resize(task.index() + 1, Member::default());
        }
        let what = aware.shared_by(context.task(task));
        aware.leave(task);
        if let Some(what) = what {
            let known = aware.sharing_what.get(&what).copied();
            let at = known.unwrap_or_else(|| aware.found(context, what));
            aware.sharers[at].members += 1;
            aware.members[task.index()].of = Some(at);
        }
    }

    /// `task` has exited.
    pub(in super::super) fn leave_sharers(&mut self, task: TaskId) {
        if let Some(aware) = &mut self.cache_aware {
            aware.leave(task);
        }
    }
}
