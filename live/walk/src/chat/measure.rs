//! Measures all numbers of rooms in all modes.

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::compare::{Compared, Limit, Plan, Report, Spread, Step};
use crate::error::BenchError;

use super::run::{self, ChatSample, ServerProgram};
use super::settings::{Case, ChatSettings};

/// A row for each number of rooms and mode.
pub type ChatReport = Report<ChatRow>;

/// One number of rooms in one mode. Work is a message delivered to one user; CPU time and switches
/// are those of both processes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChatRow {
    /// Rooms.
    pub rooms: u32,
    /// Users in a room.
    pub users: u32,
    /// Messages that each user sent.
    pub messages: u32,
    /// Bytes of a message.
    pub size: u32,
    /// Messages delivered in a run.
    pub delivered: u64,
    /// The mode, what its runs took, and how it compares.
    #[serde(flatten)]
    pub compared: Compared,
    /// How long messages were on their way.
    pub latency_us: Latency,
    /// Hints in all runs that a scheduler heard.
    pub hints_heard: u64,
}

/// Percentiles of the time from a message's write to its read, in us, and their spread over the
/// runs. Users send as fast as they may, so that most of it is waiting in queues.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// Half of the messages took less.
    pub p50: Spread,
    /// 99 of a hundred took less.
    pub p99: Spread,
    /// 999 of a thousand took less.
    pub p999: Spread,
    /// The slowest.
    pub max: Spread,
}

/// Measures every number of rooms, all modes in turn. `progress` is called after each run.
///
/// # Errors
/// Settings that make no sense, threads, descriptors or a server that cannot be had, and a time
/// limit before the first complete round.
pub fn measure_chat(
    settings: &ChatSettings,
    server: &ServerProgram,
    progress: &mut dyn FnMut(Step),
) -> Result<ChatReport, BenchError> {
    settings.check()?;
    let limit = Limit::after(settings.time_limit);
    let plan = Plan {
        cases: &settings.cases(),
        modes: &settings.modes,
        rounds: settings.repetitions,
        limit,
    };
    let run = |case: &Case, mode| run::run(server, case, mode, &limit);
    let name = |case: &Case| format!("{} rooms", case.rooms);
    Report::measure(&plan, run, name, progress, row)
}

fn row(case: &Case, compared: Compared, runs: &[&ChatSample]) -> Option<ChatRow> {
    let hints_heard = runs.iter().map(|run| run.heard).sum();
    Some(ChatRow {
        rooms: case.rooms,
        users: case.users,
        messages: case.messages,
        size: case.size,
        delivered: case.delivered(),
        compared: compared.with_hints(hints_heard),
        latency_us: latency(runs)?,
        hints_heard,
    })
}

fn latency(runs: &[&ChatSample]) -> Option<Latency> {
    let spread = |of: &dyn Fn(&Histogram<u64>) -> u64| {
        let us: Vec<f64> = runs
            .iter()
            .map(|run| of(&run.latency) as f64 / 1e3)
            .collect();
        Spread::of(&us)
    };
    Some(Latency {
        p50: spread(&|it| it.value_at_quantile(0.5))?,
        p99: spread(&|it| it.value_at_quantile(0.99))?,
        p999: spread(&|it| it.value_at_quantile(0.999))?,
        max: spread(&|it| it.max())?,
    })
}
