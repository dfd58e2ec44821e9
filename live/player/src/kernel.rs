//! The recorder of tracefs, as the player needs it.

use warmq_record::{Recorder as Tracefs, Recording as Pages, Tasks, Wanted};
use warmq_trace::Record;
use warmq_units::{Instant, TaskId};

use crate::recorder::{Recorder, Recording, Start};

/// Starts a recorder of what the kernel does.
pub fn record(wanted: Wanted) -> Box<Start> {
    Box::new(move || match Tracefs::start(&wanted) {
        Ok(recorder) => Ok(Box::new(Running(recorder)) as Box<dyn Recorder>),
        Err(error) => Err(error.to_string()),
    })
}

struct Running(Tracefs);

impl Recorder for Running {
    fn stop(self: Box<Self>) -> Result<Box<dyn Recording>, String> {
        let recording = self.0.stop().map_err(|error| error.to_string())?;
        Ok(Box::new(Stopped(recording)))
    }
}

struct Stopped(Pages);

impl Recording for Stopped {
    fn missing(&self) -> Vec<String> {
        self.0.missing().to_vec()
    }

    fn records(
        &mut self,
        known: &[(u32, TaskId)],
        strangers: TaskId,
        start_ns: u64,
        out: &mut dyn FnMut(Instant, Record),
    ) {
        let mut tasks = Tasks::with_strangers_from(strangers);
        for (tid, task) in known {
            tasks.know(*tid, *task);
        }
        self.0.records(&mut tasks, start_ns, out);
    }
}

/// Removes the tracing instance of process `controller`, which was killed: the next recorder would
/// do so, but there may be none for long.
pub fn forget(controller: i32) {
    for tracefs in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
        // It is not there if nothing was recorded.
        let _ = std::fs::remove_dir(format!("{tracefs}/instances/warmq-{controller}"));
    }
}
