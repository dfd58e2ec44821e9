//! What a scenario does not have of a recording.

use warmq_units::Duration;

/// Declares what is counted, and the sentence that begins with each count.
macro_rules! missing {
    ($($(#[$doc:meta])* $count:ident $sentence:literal;)*) => {
        /// What cannot be carried over, counted.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Missing {
            $($(#[$doc])* pub $count: u64,)*
            /// For how long quotas held groups back.
            pub throttled: Duration,
            /// For how long the hypervisor took CPUs away.
            pub stolen: Duration,
        }

        impl Missing {
            fn counts(&self) -> impl Iterator<Item = (u64, &'static str)> {
                [$((self.$count, $sentence)),*].into_iter()
            }
        }
    };
}

missing! {
    /// Events that the recorder lost.
    lost "events were lost: tasks did more than is played";
    /// Switches and wakeups that the kernel did not report, and that were inferred.
    inferred "switches and wakeups were inferred";
    /// Wakeups by nobody that is known.
    unknown "wakeups are of unknown origin: played as sleeps of the recorded length";
    /// Wakeups by devices other than network cards.
    devices "wakeups by disks and other devices: played as sleeps of the recorded length";
    /// Packets for tasks that were awake: they woke nobody, and for whom they were is not recorded.
    packets "packets woke nobody, so that it is not known for whom they were: left out";
    /// Tasks that began meanwhile.
    forks "tasks began meanwhile: they are there from the beginning, and wait until they are \
         woken as whoever forked them did";
    /// Tasks that ended meanwhile.
    exits "tasks ended meanwhile: they stay, and wait to be forked again";
    /// How often nice values, policies, affinities and groups changed.
    changes "changes of nice values, policies, affinities and groups: the last values hold";
    /// How often CPUs came or went.
    hotplug "CPUs came or went: all stay online";
    /// How often a quota held a task.
    holds "times a quota held a task: there are no quotas";
    /// Threads by which the scheduler itself moves tasks.
    stoppers "threads by which the kernel moves tasks (migration/N): the lab has its own";
    /// Tasks whose real-time policy has deadlines.
    deadlines "tasks of SCHED_DEADLINE: played as SCHED_OTHER";
    /// Tasks that are bound to CPUs which the machine of the replay lacks.
    bound "tasks are bound to CPUs that this machine lacks: they may use all";
    /// Tasks that did nothing at all.
    silent "tasks did nothing: left out";
}

impl Missing {
    /// A sentence for each that there is.
    pub fn sentences(&self) -> Vec<String> {
        let found = self.counts().filter(|(count, _)| *count > 0);
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
