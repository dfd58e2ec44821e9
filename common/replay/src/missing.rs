//! What a scenario does not have of a recording.

use warmq_units::Duration;

/// What cannot be carried over, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missing {
    /// Events that the recorder lost.
    pub lost: u64,
    /// Switches and wakeups that the kernel did not report, and that were inferred.
    pub inferred: u64,
    /// Wakeups by nobody that is known.
    pub unknown: u64,
    /// Wakeups by devices other than network cards.
    pub devices: u64,
    /// Packets for tasks that were awake: they woke nobody, and for whom they were is not recorded.
    pub packets: u64,
    /// Tasks that began meanwhile.
    pub forks: u64,
    /// Tasks that ended meanwhile.
    pub exits: u64,
    /// How often nice values, policies, affinities and groups changed.
    pub changes: u64,
    /// How often CPUs came or went.
    pub hotplug: u64,
    /// For how long quotas held groups back.
    pub throttled: Duration,
    /// For how long the hypervisor took CPUs away.
    pub stolen: Duration,
    /// How often a quota held a task.
    pub holds: u64,
    /// Threads by which the scheduler itself moves tasks.
    pub stoppers: u64,
    /// Tasks whose real-time policy has deadlines.
    pub deadlines: u64,
    /// Tasks that are bound to CPUs which the machine of the replay lacks.
    pub bound: u64,
    /// Tasks that did nothing at all.
    pub silent: u64,
}

impl Missing {
    /// A sentence for each that there is.
    pub fn sentences(&self) -> Vec<String> {
        let all = [
            (self.lost, "events were lost: tasks did more than is played"),
            (self.inferred, "switches and wakeups were inferred"),
            (
                self.unknown,
                "wakeups are of unknown origin: played as sleeps of the recorded length",
            ),
            (
                self.devices,
                "wakeups by disks and other devices: played as sleeps of the recorded length",
            ),
            (
                self.packets,
                "packets woke nobody, so that it is not known for whom they were: left out",
            ),
            (
                self.forks,
                "tasks began meanwhile: they are there from the beginning, and wait until they are \
                 woken as whoever forked them did",
            ),
            (
                self.exits,
                "tasks ended meanwhile: they stay, and wait to be forked again",
            ),
            (
                self.changes,
                "changes of nice values, policies, affinities and groups: the last values hold",
            ),
            (self.hotplug, "CPUs came or went: all stay online"),
            (self.holds, "times a quota held a task: there are no quotas"),
            (
                self.stoppers,
                "threads by which the kernel moves tasks (migration/N): the lab has its own",
            ),
            (
                self.deadlines,
                "tasks of SCHED_DEADLINE: played as SCHED_OTHER",
            ),
            (
                self.bound,
                "tasks are bound to CPUs that this machine lacks: they may use all",
            ),
            (self.silent, "tasks did nothing: left out"),
        ];
        let found = all.into_iter().filter(|(count, _)| *count > 0);
        let mut sentences: Vec<String> = found
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        let spans = [
            (
                self.throttled,
                "quotas held groups back for",
                "there are no quotas",
            ),
            (
                self.stolen,
                "the machine was disturbed: its hypervisor took CPUs away for",
                "they are there all the time",
            ),
        ];
        for (span, what, instead) in spans {
            let ms = span.as_ns() / 1_000_000;
            if ms > 0 {
                sentences.push(format!("{what} {ms} ms: {instead}"));
            }
        }
        sentences
    }
}
