//! Which cost is found by which play.

use std::collections::BTreeMap;

use Figure::{Over, Span, TimePer};

/// A play of which all figures are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scene {
    /// Its file in experiments/costs.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
    /// How many CPUs it needs.
    pub cpus: u16,
    /// Its time in ms.
    pub ms: u64,
    /// What is set in it.
    pub set: &'static [(&'static str, i64)],
}

/// A cost, and the figure that shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The cost, as machines name it.
    pub cost: &'static str,
    /// The play.
    pub scene: Scene,
    /// The figure.
    pub figure: Figure,
}

impl Step {
    /// The figure of the try that other work disturbed least, of at least one. On one CPU, what
    /// disturbs makes spans longer. With two CPUs, and for differences, it does both: the middle
    /// one counts.
    pub fn least_disturbed(&self, tries: &[f64]) -> f64 {
        let mut tries = tries.to_vec();
        tries.sort_by(f64::total_cmp);
        let one_way = self.scene.cpus == 1 && !matches!(self.figure, Over(..));
        tries[if one_way { 0 } else { tries.len() / 2 }]
    }
}

/// A figure that a cost changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// The median of a span in us, without what taking the time takes on a real machine, which a
    /// span of nothing shows.
    Span(&'static str),
    /// The CPU time in us that these tasks take for each of what the rate counts.
    TimePer(&'static str, &'static [&'static str]),
    /// The time in us from one of what the rate counts to the next.
    Period(&'static str),
    /// By how many us a span is longer at the median than another one.
    Over(&'static str, &'static str),
}

impl Figure {
    /// The figure in us of a play with these `figures`; `None`, where they lack something.
    pub fn of(self, figures: &BTreeMap<String, f64>) -> Option<f64> {
        let get = |name: &str| figures.get(name).copied();
        let each = |rate: &str| get(rate).filter(|rate| *rate > 0.0).map(|rate| 1e6 / rate);
        match self {
            Figure::Span(name) => Some(get(&format!("{name}_p50"))? - get("nothing_p50")?),
            Figure::TimePer(rate, tasks) => {
                let shares = tasks.iter().map(|task| get(&format!("{task}_share")));
                let share: f64 = shares.sum::<Option<f64>>()?;
                Some(each(rate)? * share / 100.0)
            }
            Figure::Period(rate) => each(rate),
            Figure::Over(span, other) => {
                Some(get(&format!("{span}_p50"))? - get(&format!("{other}_p50"))?)
            }
        }
    }
}

macro_rules! scene {
    ($name:literal, $cpus:literal, $ms:literal) => {
        Scene {
            name: concat!($name, ".toml"),
            text: include_str!(concat!("../../../../experiments/costs/", $name, ".toml")),
            cpus: $cpus,
            ms: $ms,
            set: &[],
        }
    };
}

const ACCESS: Scene = scene!("access", 1, 300);
const CALLS: Scene = scene!("calls", 1, 500);
const STREAM: Scene = scene!("stream", 1, 500);
const WAKES: Scene = scene!("wakes", 1, 1_000);
const THREADS: Scene = scene!("trips", 1, 500);
const PROCESSES: Scene = Scene {
    set: &[("processes", 1)],
    ..THREADS
};
const RINGS: Scene = scene!("rings", 1, 1_000);
const LIVES: Scene = scene!("lives", 1, 1_000);
const WAKEUPS: Scene = scene!("taken-by-wakeups", 2, 600);
const TIMERS: Scene = scene!("taken-by-timers", 1, 600);
const AFAR: Scene = scene!("afar", 2, 1_000);

const fn step(cost: &'static str, scene: Scene, figure: Figure) -> Step {
    Step {
        cost,
        scene,
        figure,
    }
}

/// The way out of idle: of CPUs that poll, and of those that halt.
pub const NOHZ_EXIT: &str = "nohz_exit";
pub const HALT_EXIT: &str = "halt_exit";

/// In this order: the figure of a step has no cost in it that comes later.
pub const STEPS: &[Step] = &[
    step("access", ACCESS, TimePer("work_per_second", &["thread"])),
    step("schedule_fixed", CALLS, Span("yield")),
    step("socket_send", CALLS, Span("piped")),
    step("socket_receive", CALLS, Span("unpiped")),
    step("network_packet", CALLS, Span("sent")),
    step("unix_message", CALLS, Span("unix")),
    step("futex", CALLS, Span("futex")),
    step("stream_call", STREAM, Span("closed")),
    step("stream_packet", STREAM, Span("open")),
    step("wakeup", WAKES, Span("wake")),
    step("context_switch", THREADS, Span("trip")),
    step("mm_switch", PROCESSES, Span("trip")),
    step("mm_refill", RINGS, Over("processes", "threads")),
    step("fork", LIVES, Span("fork")),
    step(
        "exit",
        LIVES,
        TimePer("work_per_second", &["parent", "child"]),
    ),
    step("reschedule_interrupt", WAKEUPS, Span("wake")),
    step("interrupt_return", WAKEUPS, Over("beside", "alone")),
    step("timer_program", TIMERS, Over("beside", "alone")),
    step(NOHZ_EXIT, AFAR, Span("trip")),
];
