//! What the layer asks of the scheduler under it, and what that asks of the layer.

use warmq_affinity::rules::Place;
use warmq_kernel::{Context, Fragment, Scheduler};
use warmq_units::{CpuId, TaskId};

use super::places::Places;

/// A scheduler on which the layer can be put.
///
/// All but `steering` concern run queues, one of each CPU; who calls `move_to` holds the locks of
/// both.
pub(crate) trait Base: Scheduler {
    /// How many statistics of its own it keeps; those of the layer come after them.
    const STATISTICS: u8;
    /// Whether it has priorities in an array, across which a group can run in succession.
    const ARRAYS: bool;

    /// What it asks before it moves a task and when it picks one.
    fn steering(&mut self) -> &mut Steering;

    /// The CPU in whose queue `task` is, or was last.
    fn queue_of(&self, task: TaskId) -> CpuId;

    /// How many runnable tasks `cpu` has, the running one among them.
    fn runnable(&self, cpu: CpuId) -> u32;

    /// The tasks in the queue of `cpu` that do not run, in the order in which balancing takes them;
    /// perhaps also one that is being switched to or from.
    fn waiting(&self, cpu: CpuId) -> Vec<TaskId>;

    /// Moves `task`, which waits, to the queue of `to`, and preempts who runs there if it should.
    fn move_to(&mut self, context: &mut Context<'_>, task: TaskId, to: CpuId);

    /// `task`, which runs on `here` and is runnable, is not to be picked there by the `pick_next`
    /// that follows; when the CPU has switched away from it, it joins the queue of `to`.
    fn send_away(&mut self, task: TaskId, here: CpuId, to: CpuId);
}

/// What the layer wants of its base. By default it wants nothing: so it is where there is no layer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Steering {
    // Set when the layer is made, and never after.
    /// The place of each CPU.
    places: Vec<Place>,
    /// A group may also go before better priorities.
    across: bool,

    // Changed by the layer.
    /// The fragment of each task that is in a group.
    fragments: Vec<Option<Fragment>>,
    /// Of each CPU, the fragment whose group is in succession.
    favoured: Vec<Option<Fragment>>,
}

impl Steering {
    pub(super) fn new(places: &Places, across: bool) -> Steering {
        let places: Vec<Place> = places.of_cpus().collect();
        Steering {
            favoured: vec![None; places.len()],
            places,
            across,
            fragments: Vec::new(),
        }
    }

    /// Whether balancing of the base may move `task`: one of a group stays at its place.
    pub(crate) fn lets_move(&self, task: TaskId, from: CpuId, to: CpuId) -> bool {
        let place = |cpu: CpuId| self.places.get(cpu.index());
        self.fragment(task).is_none() || place(from) == place(to)
    }

    /// Whether a group is in succession on `cpu`, so that it matters who is of it.
    pub(crate) fn favours(&self, cpu: CpuId) -> bool {
        self.favoured.get(cpu.index()).is_some_and(Option::is_some)
    }

    /// Whether `task` is of the group that is in succession on `cpu`.
    pub(crate) fn prefers(&self, cpu: CpuId, task: TaskId) -> bool {
        let favoured = self.favoured.get(cpu.index()).copied().flatten();
        favoured.is_some() && favoured == self.fragment(task)
    }

    /// Whether a group goes before better priorities, too.
    pub(crate) fn goes_across(&self) -> bool {
        self.across
    }

    pub(super) fn manage(&mut self, task: TaskId, fragment: Option<Fragment>) {
        if self.fragments.len() <= task.index() {
            self.fragments.resize(task.index() + 1, None);
        }
        self.fragments[task.index()] = fragment;
    }

    pub(super) fn favour(&mut self, cpu: CpuId, fragment: Option<Fragment>) {
        self.favoured[cpu.index()] = fragment;
    }

    fn fragment(&self, task: TaskId) -> Option<Fragment> {
        self.fragments.get(task.index()).copied().flatten()
    }
}
