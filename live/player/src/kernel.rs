//! The recorder of tracefs behind [`Recorder`].

use warmq_record::{Tasks, Wanted};
use warmq_trace::Record;
use warmq_units::{Instant, TaskId};

use crate::recorder::{Recorder, Recording};

/// Room for a run of some seconds with 100,000 events a second, on each CPU.
const BUFFER_KB: u32 = 16 * 1024;

/// Starts to record what the kernel does.
///
/// # Errors
/// Why it cannot be recorded here.
pub fn start() -> Result<Box<dyn Recorder>, String> {
    let wanted = Wanted {
        buffer_kb_per_cpu: BUFFER_KB,
        ..Wanted::default()
    };
    let recorder = warmq_record::Recorder::start(&wanted).map_err(|error| error.to_string())?;
    Ok(Box::new(Tracefs(recorder)))
}

struct Tracefs(warmq_record::Recorder);

impl Recorder for Tracefs {
    fn stop(self: Box<Self>) -> Result<Box<dyn Recording>, String> {
        let recording = self.0.stop().map_err(|error| error.to_string())?;
        Ok(Box::new(Kept(recording)))
    }
}

struct Kept(warmq_record::Recording);

impl Recording for Kept {
    fn records(
        &mut self,
        threads: &[(u32, TaskId)],
        next: TaskId,
        start_ns: u64,
        out: &mut dyn FnMut(Instant, Record),
    ) {
        let mut tasks = Tasks::new();
        // Threads that were never started have no id.
        for (tid, task) in threads.iter().filter(|(tid, _)| *tid != 0) {
            tasks.know(*tid, *task);
        }
        tasks.reserve(next);
        self.0.records(&mut tasks, start_ns, out);
    }
}
