//! An instance of the model: who wants to run, on what data, and what switching costs.

use warmq_units::TaskId;

/// A fragment of an instance, counted from 0 in the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FragmentId(pub u32);

impl FragmentId {
    /// The id as an index into [`Instance::fragments`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Which of the paper's two penalties is charged for a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Penalty {
    /// f: the lines that are missing and the dirty ones that must leave.
    #[default]
    Lines,
    /// g: the whole cache whenever the fragment changes.
    WholeCache,
}

/// What a cache holds and costs. Costs are in units of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Lines of each CPU's cache: k. At least 1.
    pub lines: u64,
    /// Filling a line: t_r.
    pub fill: u64,
    /// Writing a line back: t_w.
    pub write_back: u64,
}

impl Costs {
    /// The penalty f of a switch for which `missing` lines are filled and `dirty` ones are written
    /// back.
    ///
    /// ```
    /// use warmq_affinity::Costs;
    /// let costs = Costs { lines: 8, fill: 10, write_back: 1 };
    /// assert_eq!((costs.f(0, 0), costs.f(3, 2)), (0, 32));
    /// ```
    pub fn f(&self, missing: u64, dirty: u64) -> u64 {
        missing * self.fill + dirty * self.write_back
    }

    /// The penalty g of a switch between two fragments: T_r + T_w, of the whole cache.
    pub fn g(&self) -> u64 {
        self.f(self.lines, self.lines)
    }
}

/// Data that tasks use together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Its name.
    pub name: String,
    /// Its size, in lines of the cache: from 1 to [`Costs::lines`].
    pub lines: u64,
}

/// A task: one run, or several one after another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// What it does; not empty. Where a run's fragment is another than that of the run before, the
    /// task *changes* its fragment.
    pub runs: Vec<Run>,
}

/// What a task does without a break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The fragment it uses, all of it; none: data that the model knows nothing of (*unmanaged*),
    /// which leaves the cache as it is.
    pub fragment: Option<FragmentId>,
    /// Time on the CPU without any penalty: ex(v). At least 1.
    pub length: u64,
    /// Whether it leaves its fragment dirty.
    pub writes: bool,
}

/// An instance of the model.
///
/// Only this crate makes one ([`crate::Plan::read`], [`crate::draw`]), so that what is said of the
/// fields holds: ids are within bounds, sums of all times fit 64 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Instance {
    /// What it is.
    pub title: String,
    /// CPUs; from 1.
    pub cpus: usize,
    /// The caches, which are all alike and cold when time starts.
    pub costs: Costs,
    /// Which penalty is charged.
    pub penalty: Penalty,
    /// The fragments.
    pub fragments: Vec<Fragment>,
    /// The tasks; not empty.
    pub tasks: Vec<Task>,
    /// A task that runs on CPU 0 alone, and only once: all others become ready, and the other CPUs
    /// start, when it ends. None: all are ready at time 0.
    pub first: Option<TaskId>,
}

impl Instance {
    /// The lines that a run on `fragment` needs: under g the whole cache.
    pub fn lines_of(&self, fragment: FragmentId) -> u64 {
        match self.penalty {
            Penalty::Lines => self.fragments[fragment.index()].lines,
            Penalty::WholeCache => self.costs.lines,
        }
    }

    /// The tasks that become ready together, with their ids: all but the first.
    pub fn ready(&self) -> impl Iterator<Item = (TaskId, &Task)> {
        let all = self.tasks.iter().enumerate();
        let all = all.map(|(index, task)| (TaskId(index as u32), task));
        all.filter(|(id, _)| Some(*id) != self.first)
    }

    /// The task called `id`.
    pub fn task(&self, id: TaskId) -> &Task {
        &self.tasks[id.index()]
    }

    /// Whether some task has more than one run, so that a run may have to wait for another.
    pub fn has_changes(&self) -> bool {
        self.tasks.iter().any(|task| task.runs.len() > 1)
    }
}
