//! What a recording holds beside events, whoever records them: noted at the start and at the end.

use std::collections::BTreeMap;

use crate::wall::monotonic_ns;
use crate::{Wanted, lines, proc};
use warmq_recordings::recording::Raw;

/// The most that is kept of a recording in memory: this, and a share of what is available.
const MOST_BYTES: u64 = 1 << 30;
const SHARE: u64 = 4;

/// What was noted at the start.
#[derive(Debug)]
pub(crate) struct Beside {
    processes: BTreeMap<u32, u32>,
    steal: BTreeMap<u16, u64>,
}

impl Beside {
    /// Looks around at the start.
    pub fn look() -> Beside {
        Beside {
            processes: proc::processes(),
            steal: proc::steal(),
        }
    }

    /// Notes the end in `raw`. Events are written no more, or those of this would be among them.
    pub fn end(self, raw: &mut Raw) {
        raw.end_ns = monotonic_ns();
        raw.steal = stolen(&self.steal, &proc::steal());
        raw.processes = self.processes;
        raw.processes.extend(proc::processes());
        raw.network_lines = lines::network_lines();
    }
}

/// What is missing whatever the kernel has.
pub(crate) fn missing(wanted: &Wanted) -> Vec<String> {
    let mut missing = Vec::new();
    if wanted.locks {
        missing.push("locks: no tracepoint says for how long a lock is held".to_owned());
    }
    if !proc::sees_all_ids() {
        let why = "this process is in a PID namespace, and the kernel shows the ids outside of it";
        missing.push(format!("thread ids: {why}"));
    }
    missing
}

/// How many bytes of events may be kept.
pub(crate) fn most_bytes() -> usize {
    let share = proc::available_bytes().map_or(MOST_BYTES, |bytes| bytes / SHARE);
    usize::try_from(share.min(MOST_BYTES)).unwrap_or(usize::MAX)
}

fn stolen(before: &BTreeMap<u16, u64>, after: &BTreeMap<u16, u64>) -> BTreeMap<u32, u64> {
    let since =
        |cpu: &u16, after: u64| Some((u32::from(*cpu), after.saturating_sub(*before.get(cpu)?)));
    let all = after.iter().filter_map(|(cpu, after)| since(cpu, *after));
    all.collect()
}
