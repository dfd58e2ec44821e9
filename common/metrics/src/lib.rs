//! From trace records to latencies, shares and lock figures.
//!
//! Purpose: every figure that a report shows about a run is computed here, from records alone, so
//! that simulated and recorded machines are measured by the same code.
//!
//! A meter is an observer: it is fed one record at a time and keeps integers. Floats appear only
//! where a figure is asked for. Every meter follows a run from its first record, and counts what
//! happens from a chosen time on, so that a warm-up can be left out; a span that began before that
//! time counts from that time.
//!
//! - [`PlayMeter`]: all that a scenario can ask for, how long wakeups wait among it;
//! - [`TaskMeter`]: how long each task runs, waits and sleeps, and its switches (`time -v`);
//! - [`CpuMeter`]: how long each CPU runs tasks, idles and is interrupted;
//! - [`LockMeter`]: requests, waits and tenures of each spin lock (Lockmeter);
//! - [`Counts`]: how often things happen;
//! - [`Chart`]: a schedule as text, for tests.
//!
//! [`mod@evidence`] shows who ran while a task waited, and [`mod@compare`] looks at two whole
//! recordings, decision by decision.

mod chart;
pub mod compare;
mod counts;
mod cpus;
pub mod evidence;
mod locks;
mod others;
mod play;
mod quotas;
mod spans;
mod stranded;
mod tasks;

pub use chart::Chart;
pub use counts::{Counts, INTERRUPTS, InterruptTable};
pub use cpus::{CpuFigures, CpuMeter};
pub use locks::{LockFigures, LockMeter};
pub use others::{MOST_TAKEN, Others, TAKEN};
pub use play::{Described, MISSING, PlayMeter, answers, described, of_one_name};
pub use spans::Spans;
pub use stranded::StrandedMeter;
pub use tasks::{TaskFigures, TaskMeter, TaskSums};

use warmq_units::Duration;

/// Saturates, because a damaged trace file can contain spans whose sum exceeds a `u64`.
fn sum(total: Duration, span: Duration) -> Duration {
    Duration(total.0.saturating_add(span.0))
}
