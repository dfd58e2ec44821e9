//! Small instances, drawn by a seed.

use std::ops::RangeInclusive;

use warmq_units::{Seed, Stream, TaskId};

use crate::model::{Costs, Fragment, FragmentId, Instance, Penalty, Run, Task};

/// How large an instance may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// CPUs.
    pub cpus: RangeInclusive<u64>,
    /// Fragments.
    pub fragments: RangeInclusive<u64>,
    /// Tasks that become ready together.
    pub tasks: RangeInclusive<u64>,
    /// Whether tasks change their fragment: then there is only a bound, and no optimum.
    pub changes: bool,
}

impl Default for Shape {
    /// Small enough for an exact answer in a few milliseconds, and for a person to look at.
    fn default() -> Shape {
        Shape {
            cpus: 2..=3,
            fragments: 1..=4,
            tasks: 2..=10,
            changes: false,
        }
    }
}

impl Shape {
    /// The same with so many of what is given.
    pub fn sized(self, cpus: Option<u64>, tasks: Option<u64>, fragments: Option<u64>) -> Shape {
        let of = |given: Option<u64>, usual| given.map_or(usual, |count| count..=count);
        Shape {
            cpus: of(cpus, self.cpus),
            tasks: of(tasks, self.tasks),
            fragments: of(fragments, self.fragments),
            ..self
        }
    }
}

/// Lines of a drawn cache.
const LINES: u64 = 4;
/// The most that a line costs to fill or to write back.
const MOST_COST: u64 = 4;
/// The longest run.
const LONGEST: u64 = 9;

/// The instance of `shape` that `seed` makes. Fragments have 1 to 4 lines of a cache of 4, a line
/// costs 0 to 4 units each way, a run takes 1 to 9; a quarter of the runs only read, one in eight
/// is unmanaged, and every other instance has a task that runs first.
pub fn draw(shape: &Shape, seed: u64) -> Instance {
    let mut stream = Seed(seed).stream("affinity instance");
    let mut between = |range: &RangeInclusive<u64>| stream.between(*range.start(), *range.end());
    let cpus = between(&shape.cpus) as usize;
    let (fragments, tasks) = (between(&shape.fragments), between(&shape.tasks));
    let costs = Costs {
        lines: LINES,
        fill: between(&(0..=MOST_COST)),
        write_back: between(&(0..=MOST_COST)),
    };
    let named = |index: u64| Fragment {
        name: format!("DF{}", index + 1),
        lines: between(&(1..=LINES)),
    };
    let fragments: Vec<Fragment> = (0..fragments).map(named).collect();
    let first = stream.chance(1, 2);
    let count = tasks + u64::from(first);
    let task = |index: u64| {
        let many = shape.changes && !(first && index == 0) && stream.chance(1, 3);
        let runs = if many { stream.between(2, 3) } else { 1 };
        Task {
            name: format!("v{}", index + u64::from(!first)),
            runs: (0..runs)
                .map(|_| run(&mut stream, fragments.len()))
                .collect(),
        }
    };
    Instance {
        title: format!("Seed {seed}"),
        cpus,
        costs,
        penalty: Penalty::Lines,
        tasks: (0..count).map(task).collect(),
        fragments,
        first: first.then_some(TaskId(0)),
    }
}

fn run(stream: &mut Stream, fragments: usize) -> Run {
    let fragment = FragmentId(stream.below(fragments as u64) as u32);
    let managed = !stream.chance(1, 8);
    Run {
        fragment: managed.then_some(fragment),
        length: stream.between(1, LONGEST),
        writes: managed && stream.chance(3, 4),
    }
}
