//! Random lawful runs pass, and each invariant catches its violation wherever in a run it occurs.

use warmq_units::{CpuId, TaskId};

use crate::Record;

mod invariant;
mod random;
mod stories;

fn switch(cpu: CpuId, prev: Option<TaskId>, next: Option<TaskId>) -> Record {
    Record::Switch {
        cpu,
        prev,
        prev_runnable: prev.is_some(),
        next,
    }
}
