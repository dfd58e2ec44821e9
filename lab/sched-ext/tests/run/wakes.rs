//! Where the kernel's own choice of a CPU brings a task that wakes.

use warmq_kernel::*;
use warmq_units::{Bytes, Duration};

use crate::stage::*;

/// No callback of it chooses CPUs.
const CHANGES: &[u8] = include_bytes!("../programs/changes.bpf.o");

/// Two tasks on CPUs with a cache each, which work in turn and wake each other by a stream.
fn in_turn(series: &str) -> Vec<Duration> {
    let workload = |boot: &mut Boot<'_>| -> Started {
        let (near, far) = boot.socket_pair(Bytes(100))?;
        for (name, end, begins) in [("a", near, true), ("b", far, false)] {
            boot.task(called(name), move |task: Task| async move {
                if begins {
                    task.compute_for(ms(1)).await;
                    task.send(end, Bytes(1)).await;
                }
                loop {
                    task.receive(end, Bytes(1)).await;
                    task.compute_for(ms(1)).await;
                    task.send(end, Bytes(1)).await;
                }
            })?;
        }
        Ok(())
    };
    play(load(CHANGES, series, &[]), 2, 50, &workload).computed
}

/// In 6.18 the kernel asks a mask that nobody keeps whether a CPU idles (mended in 7.0): each task
/// stays where it was.
#[test]
fn a_sync_wakeup_brings_a_task_to_the_waker_since_7_0() {
    let least = |series: &str| in_turn(series).into_iter().min().unwrap();
    assert!(least("7.3") < ms(5), "{:?}", in_turn("7.3"));
    assert!(least("6.18") > ms(20), "{:?}", in_turn("6.18"));
}
