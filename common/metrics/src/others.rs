//! Who had the CPUs beside the tasks of a scenario: on a busy machine, figures say as much of the
//! others.

use warmq_trace::{Board, Ended, Observer, Record, Stretch, Table, Work, players};
use warmq_units::{Duration, Instant, TaskId};

/// The figure: what others had of all CPUs, in percent.
pub const TAKEN: &str = "cpu_taken_share";
/// From so many percent on a run is not fit to judge a scheduler by.
pub const MOST_TAKEN: f64 = 10.0;

/// Sums for how long tasks ran that are none of the scenario's, none of the player's, and no
/// threads of the kernel, which works for whoever asks.
#[derive(Clone, Debug, Default)]
pub struct Others {
    from: Instant,
    board: Board,
    ours: Table<TaskId, bool>,
    had: Duration,
}

impl Others {
    /// Counts from `from` on.
    pub fn starting_at(from: Instant) -> Others {
        Others {
            from,
            ..Others::default()
        }
    }

    /// What they had until `end`.
    pub fn had(&self, end: Instant) -> Duration {
        let open = self.board.open(end).map(|open| self.theirs(&open));
        self.had + open.sum()
    }

    /// How much of `ended` they had.
    fn theirs(&self, ended: &Ended) -> Duration {
        match ended.stretch {
            Stretch::Cpu {
                did: Work::Runs(task),
                ..
            } if self.ours.get(task) != Some(&true) => ended.since(self.from),
            _ => Duration::ZERO,
        }
    }
}

impl Observer for Others {
    fn see(&mut self, at: Instant, record: &Record) {
        match *record {
            Record::Role { task, .. } | Record::KernelThread { task } => {
                *self.ours.touch(task) = true;
            }
            Record::Fork {
                child: task, comm, ..
            }
            | Record::Renamed { task, comm }
                if players::is_one(comm) =>
            {
                *self.ours.touch(task) = true;
            }
            _ => {}
        }
        self.board.see(at, record);
        let had = self.board.ended().iter().map(|ended| self.theirs(ended));
        self.had += had.sum();
    }
}

#[cfg(test)]
mod tests {
    use warmq_trace::Comm;
    use warmq_units::CpuId;

    use super::*;

    #[test]
    fn only_others_count_and_only_from_the_beginning_on() {
        let at = |ms| Instant::START + Duration::from_ms(ms);
        let switch = |cpu, next| Record::Switch {
            cpu: CpuId(cpu),
            prev: None,
            prev_runnable: false,
            next: Some(TaskId(next)),
        };
        let ours = Record::Role {
            task: TaskId(1),
            table: 0,
            number: 0,
        };
        let named = Record::Renamed {
            task: TaskId(4),
            comm: Comm::new(players::SOURCE),
        };
        // Another command of ours is another program.
        let other_run = Record::Renamed {
            task: TaskId(5),
            comm: Comm::new("warmq"),
        };
        let mut others = Others::starting_at(at(10));
        for (ms, record) in [
            (0, ours),
            (0, named),
            (0, other_run),
            (0, switch(3, 5)),
            (20, switch(3, 1)),
            (0, switch(2, 4)),
            (0, switch(0, 2)),
            (0, switch(1, 1)),
            (30, switch(0, 1)),
            (50, switch(1, 3)),
        ] {
            others.see(at(ms), &record);
        }
        assert_eq!(others.had(at(60)), Duration::from_ms(20 + 10 + 10));
    }
}
