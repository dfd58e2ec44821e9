//! Who is starved by a group, or by those who sleep in it.

use super::*;

/// Of the group that starves B, and runs where B waits.
const HOG: TaskId = TaskId(3);
/// Of that group, too: it runs elsewhere.
const ASIDE: TaskId = TaskId(4);

const OWN: u32 = 10;
const OTHER: u32 = 20;

/// How two seconds go by in which B waits for a CPU and hardly has one.
#[derive(Clone, Copy)]
struct Story {
    kernel: &'static str,
    /// The group of B.
    group: u32,
    /// Whether a task of the other group has CPU 1.
    aside: bool,
    /// Whether B waits on CPU 1 for a fifth of the time: 20 of each 100 ms.
    moves: bool,
    /// When A and the hog wake each other on CPU 0, each 500 times a second, in ms.
    naps: (u64, u64),
}

fn migrates(from: u16, to: u16) -> Record {
    Record::Migrate {
        task: B,
        from: CpuId(from),
        to: CpuId(to),
    }
}

/// B, of a group of its own, waits on CPU 0, where those of the other group wake each other.
const STORY: Story = Story {
    kernel: "6.18.3",
    group: OWN,
    aside: true,
    moves: false,
    naps: (10, 1_990),
};

impl Story {
    fn records(&self) -> Vec<(u64, Record)> {
        let of = |task, group| (0, Record::Group { task, group });
        let group = |group| Record::Cgroup {
            group,
            parent: 0,
            weight: 100,
            name: Comm::new(&format!("g{group}")),
        };
        let mut records = vec![(0, group(OWN)), (0, group(OTHER))];
        records.extend([A, HOG, ASIDE].map(|task| of(task, OTHER)));
        records.extend([of(B, self.group), (0, switch(0, None, Some(HOG)))]);
        let beside = if self.aside { ASIDE } else { TaskId(5) };
        records.extend([(0, switch(1, None, Some(beside))), (1, woken(B, 0))]);
        for at in (self.naps.0..self.naps.1).step_by(2) {
            records.extend([
                (at, woken(A, 0)),
                (at, sleeps(0, HOG, A)),
                (at + 1, woken(HOG, 0)),
                (at + 1, sleeps(0, A, HOG)),
            ]);
        }
        if self.moves {
            for at in (80..2_000).step_by(100) {
                records.extend([(at, migrates(0, 1)), (at + 20, migrates(1, 0))]);
            }
        }
        records.push((2_000, Record::Recalculate { cpu: CpuId(0) }));
        records.sort_by_key(|(at, _)| *at);
        records
    }

    /// The verdicts about B.
    fn verdicts(&self) -> Vec<Kind> {
        let header = Header {
            kernel: self.kernel.to_owned(),
            ..two_cpus()
        };
        let found = diagnosed(&header, &self.records(), &[]);
        let of_b = |verdict: &&Verdict| verdict.tasks.iter().any(|task| task.task == B.0);
        let of_b = found.verdicts.iter().filter(of_b);
        of_b.map(|verdict| verdict.kind).collect()
    }
}

#[test]
fn a_group_is_divided_where_it_runs_on_another_cpu_than_the_one_where_most_is_waited() {
    let starved = [Kind::GroupStarved];
    assert_eq!(STORY.verdicts(), starved);
    // B waits for some of the time beside the task that divides the group's weight.
    let moved = Story {
        moves: true,
        ..STORY
    };
    assert_eq!(moved.verdicts(), starved);
    let undivided = Story {
        aside: false,
        ..moved
    };
    assert_eq!(undivided.verdicts(), [Kind::Unexplained]);
}

#[test]
fn sleepers_of_another_group_preempt_unless_the_kernel_may_starve_groups() {
    let undivided = Story {
        aside: false,
        ..STORY
    };
    let preempts = |kernel, group| {
        let story = Story {
            kernel,
            group,
            ..undivided
        };
        story.verdicts()
    };
    assert_eq!(preempts("6.18.3", OWN), [Kind::Unexplained]);
    assert_eq!(preempts("6.18.3", OTHER), [Kind::SleeperPreempts]);
    assert_eq!(preempts("6.12.3", OWN), [Kind::SleeperPreempts]);
}

#[test]
fn what_a_part_of_the_time_explains_is_not_unexplained() {
    let never = Story {
        naps: (0, 0),
        ..STORY
    };
    assert_eq!(never.verdicts(), [Kind::Unexplained]);
    // 1,000 wakeups a second for 700 ms are 350 a second of all.
    let for_a_part = Story {
        naps: (400, 1_100),
        ..STORY
    };
    assert_eq!(for_a_part.verdicts(), [Kind::GroupStarved]);
}
