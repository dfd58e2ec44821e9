//! A task that leaves the program while another CPU wants it.

use warmq_kernel::TaskSpec;
use warmq_machine::{MachineDescription, builtin, read_toml};
use warmq_sched_ext::interleaved::{At, Event, Interleaved, Lock, Waits};
use warmq_units::{CpuId, Seed, TaskId};

use crate::stage::load;

const CUSTODY: &[u8] = include_bytes!("../../../sched-ext/tests/programs/custody.bpf.o");

/// The program keeps tasks in a list, and dispatches them to the global queue.
const SET: &[(&str, i128)] = &[("first", (1 << 64) - 1), ("then", 1 << 63 | 1)];

fn machine() -> MachineDescription {
    let text = builtin("tiny-2cpu").expect("a shipped machine");
    read_toml("tiny-2cpu", text).expect("a sound machine")
}

/// A task of CPU 0 waits in the program's list.
fn waiting() -> (Interleaved, TaskId) {
    let loaded = load(CUSTODY, SET);
    let mut kernel = Interleaved::new(&loaded, &machine(), Seed(1)).expect("it is attached");
    let spec = TaskSpec::new("a", None).bound([CpuId(0)]);
    let task = kernel.fork(spec, CpuId(0)).expect("it has memory");
    kernel.begin(CpuId(0), Event::Wake(task), None);
    kernel.go_on();
    (kernel, task)
}

/// The function of the program in which a path is held.
fn held_in(kernel: &Interleaved, path: usize) -> Option<String> {
    match kernel.waits(path)? {
        Waits::Held(At::Before(at)) => {
            let function = kernel.image().function_at(at);
            Some(
                function
                    .map(|function| function.name.clone())
                    .unwrap_or_default(),
            )
        }
        waits => Some(format!("{waits:?}")),
    }
}

/// CPU 1 dispatches the task, and is interrupted in `dequeue`: CPU 0, which changes the task, waits
/// until that is over.
#[test]
fn a_task_that_is_dispatched_changes_when_its_dequeue_is_over() {
    let mut held = (0..100).filter_map(|passes| {
        let (mut kernel, task) = waiting();
        let path = kernel.begin(CpuId(1), Event::Pick, Some(passes));
        kernel.go_on();
        (held_in(&kernel, path)? == "custody_dequeue").then_some((kernel, task, path))
    });
    let (mut kernel, task, path) = held.next().expect("it is interrupted there");
    let other = kernel.begin(CpuId(0), Event::Nice(task, 5), None);
    kernel.go_on();
    let wanted = Waits::For(vec![Lock::Handover(task)]);
    assert_eq!(kernel.waits(other), Some(wanted));
    kernel.release(path);
    kernel.go_on();
    assert_eq!((kernel.waits(other), kernel.ejected()), (None, None));
}
