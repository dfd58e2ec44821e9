//! Figures by name: what is computed of counts, spans and tasks.

use std::collections::BTreeMap;

use warmq_units::Duration;

use crate::{Spans, TaskFigures};

/// The figures of a window.
pub(super) struct Found {
    pub seconds: f64,
    pub figures: BTreeMap<String, f64>,
}

/// The quantiles of each distribution, in percent.
pub(super) const QUANTILES: [(&str, f64); 4] =
    [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p999", 99.9)];

impl Found {
    pub fn put(&mut self, name: &str, value: f64) {
        if value.is_finite() {
            self.figures.insert(name.to_owned(), value);
        }
    }

    pub fn rate(&mut self, name: &str, count: u64) {
        self.put(name, count as f64 / self.seconds);
    }

    pub fn spans(&mut self, name: &str, spans: &Spans) {
        if spans.count() == 0 {
            return;
        }
        self.put(&format!("{name}_mean"), us(spans.mean()));
        for (quantile, percent) in QUANTILES {
            self.put(&format!("{name}_{quantile}"), us(spans.percentile(percent)));
        }
        self.put(&format!("{name}_max"), us(spans.max()));
    }

    /// What was counted of the spin locks of a table.
    pub fn spinlock(&mut self, name: &str, taken: u64, contended: u64, spun: Duration) {
        self.rate(&format!("{name}_taken_per_second"), taken);
        let share = 100.0 * contended as f64 / taken as f64;
        self.put(&format!("{name}_contention"), share);
        let share = 100.0 * spun.as_s_f64() / self.seconds;
        self.put(&format!("{name}_spin_share"), share);
    }

    /// Shares are of one CPU's time.
    pub fn shares(&mut self, name: &str, tasks: &[TaskFigures]) {
        let share = |ran: Duration| 100.0 * ran.as_s_f64() / self.seconds;
        let shares: Vec<f64> = tasks.iter().map(|task| share(task.ran)).collect();
        let Some(least) = shares.iter().copied().reduce(f64::min) else {
            return;
        };
        let most = shares.iter().copied().fold(least, f64::max);
        self.put(&format!("{name}_share"), shares.iter().sum());
        if shares.len() > 1 {
            self.put(&format!("{name}_share_least"), least);
            self.put(&format!("{name}_share_most"), most);
        }
    }

    /// What only a recording of switches shows.
    pub fn switches(&mut self, name: &str, tasks: &[TaskFigures]) {
        let Some(longest) = tasks.iter().map(|task| task.longest_wait).max() else {
            return;
        };
        self.put(&format!("{name}_delay_max"), us(longest));
        let sum = |of: fn(&TaskFigures) -> u64| tasks.iter().map(of).sum::<u64>();
        let wakeups = sum(|task| task.wakeups);
        self.rate(&format!("{name}_wakeups_per_second"), wakeups);
        self.put(
            &format!("{name}_preemptions"),
            sum(|task| task.involuntary) as f64,
        );
        if tasks.iter().all(|task| task.exited) {
            let elapsed: Duration = tasks.iter().map(TaskFigures::elapsed).sum();
            let mean = elapsed.as_s_f64() / tasks.len() as f64;
            self.put(&format!("{name}_elapsed"), mean);
        }
        let preempted = sum(|task| task.involuntary);
        self.rate(&format!("{name}_preemptions_per_second"), preempted);
        let migrations = sum(|task| task.migrations);
        self.rate(&format!("{name}_migrations_per_second"), migrations);
    }
}

/// In microseconds.
pub(super) fn us(span: Duration) -> f64 {
    span.0 as f64 / 1e6
}
