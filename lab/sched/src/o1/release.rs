//! Which release of Linux 2.6 the scheduler is that of.
//!
//! 2.6.16 is what the rest of this folder describes. What 2.6.4 does otherwise:
//!
//! ```text
//! slices             10 + 190 (139 - static priority) / 39 ms, so that sleep_avg is at most 1020 ms
//! sleep_avg          by interactive_credit: who has slept much for long is charged less for running,
//!                    who never sleeps earns a slice at most (interactive_credit.rs)
//! wakeups            on the task's last CPU; a sync one (pipes) on the waker's, at the old priority
//! forks              processes and threads go before their parent, and run first
//! granularity        going behind one's equals also recomputes the priority
//! balancing          by the lengths of queues, from one CPU to another (queue_lengths.rs)
//! ```

/// A release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Release {
    V2_6_4,
    V2_6_16,
}
