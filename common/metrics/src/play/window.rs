//! A time over which figures are computed: the whole measurement, or a phase of it.

use std::collections::BTreeMap;

use warmq_trace::Names;
use warmq_units::{Duration, Instant, TaskId};

use crate::quotas::Counted;
use crate::{Counts, Spans, TaskSums};

/// What happened from one time to another.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub from: Instant,
    pub tasks: TaskSums,
    pub events: Counts,
    /// By name.
    pub spans: Vec<Spans>,
    /// By table of tasks: from the wakeup to the CPU.
    pub waits: Vec<Spans>,
    pub counts_before: Vec<u64>,
    pub ran_before: BTreeMap<TaskId, Duration>,
    pub quotas_before: Counted,
    pub lost: u64,
}

impl Window {
    /// One in which nothing has happened.
    pub fn starting_at(from: Instant, names: &Names) -> Window {
        Window {
            from,
            tasks: TaskSums::starting_at(from),
            events: Counts::starting_at(from),
            spans: vec![Spans::default(); names.spans.len()],
            waits: vec![Spans::default(); names.tasks.len()],
            counts_before: vec![0; names.counters.len()],
            ran_before: BTreeMap::new(),
            quotas_before: Counted::new(),
            lost: 0,
        }
    }
}
