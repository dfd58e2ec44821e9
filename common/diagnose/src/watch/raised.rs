//! Softirqs that are work of the task that runs, and not taken from it.
//!
//! So are all that ksoftirqd runs: that is what it is for, and who waits there waits for it.
//!
//! A packet over loopback, or between network namespaces, is received in a softirq as its sender
//! sends it: on the sender's CPU, in the sender's turn (`__local_bh_enable_ip()`). So it costs the
//! sender its own time, and whoever waits there waits for the sender. An interrupt runs the
//! softirqs that it raised on its way out (`irq_exit_rcu()`), which takes from whoever runs.

use warmq_trace::Interrupt;
use warmq_units::{Duration, Instant};

/// A softirq that an interrupt raised begins no later after that interrupt, or after another
/// softirq. On Linux 6.18 nine tenths begin within 3 us; a guest whose instructions are emulated
/// needs ten times that.
const ON_THE_WAY_OUT: Duration = Duration::from_us(50);
/// What came meanwhile is taken in another round of the same loop (`handle_softirqs()`): on Linux
/// 6.18 within 0.5 us, and the earliest softirq of another packet that is sent comes after 2.8 us.
const ANOTHER_ROUND: Duration = Duration::from_us(2);

/// The softirqs on one CPU that are work of the tasks which ran there: those of the network that
/// they raised, and all that ksoftirqd ran.
#[derive(Debug, Default)]
pub(super) struct Raised {
    /// For how long these had the CPU.
    total: Duration,
    /// One goes on: for how long interrupts had had the CPU when it began.
    open: Option<Duration>,
    /// A softirq that begins by then is of an interrupt; none: no interrupt was recorded, so that
    /// each may be of one.
    of_interrupts: Option<Instant>,
}

impl Raised {
    /// ksoftirqd runs a softirq; interrupts have had the CPU for `interrupted`.
    pub fn is_run(&mut self, interrupted: Duration) {
        self.open = Some(interrupted);
    }

    /// An interrupt begins while a task runs; interrupts have had the CPU for `interrupted`.
    pub fn enter(&mut self, at: Instant, interrupted: Duration, interrupt: Interrupt) {
        if interrupt != Interrupt::NetworkSoftirq {
            return;
        }
        if self.of_interrupts.is_some_and(|until| at > until) {
            self.open = Some(interrupted);
        }
        // An interrupt runs it once.
        self.of_interrupts = self.of_interrupts.map(|until| until.min(at));
    }

    /// An interrupt ends.
    pub fn exit(&mut self, at: Instant, interrupted: Duration, interrupt: Interrupt) {
        if interrupt.is_softirq()
            && let Some(before) = self.open.take()
        {
            self.total += interrupted.saturating_sub(before);
            return;
        }
        let follows = match interrupt {
            Interrupt::NetworkSoftirq => ANOTHER_ROUND,
            _ => ON_THE_WAY_OUT,
        };
        let known = !interrupt.is_softirq() || self.of_interrupts.is_some();
        if known {
            self.of_interrupts = self.of_interrupts.max(Some(at + follows));
        }
    }

    /// For how long they have had the CPU, when interrupts have had it for `interrupted`.
    pub fn until(&self, interrupted: Duration) -> Duration {
        let open = self.open.map(|before| interrupted.saturating_sub(before));
        self.total + open.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOFTIRQ: Interrupt = Interrupt::NetworkSoftirq;

    /// What a CPU's tasks raised of interrupts that begin and end at these times, in us.
    fn raised(interrupts: &[(u64, u64, Interrupt)]) -> u64 {
        let at = |us: u64| Instant::START + Duration::from_us(us);
        let (mut raised, mut all) = (Raised::default(), Duration::ZERO);
        for (from, to, interrupt) in interrupts {
            raised.enter(at(*from), all, *interrupt);
            all += Duration::from_us(to - from);
            raised.exit(at(*to), all, *interrupt);
        }
        raised.until(all).as_ns() / 1_000
    }

    #[test]
    fn what_no_interrupt_raised_is_of_the_task_that_runs() {
        let line = Interrupt::Line(9);
        // Without an interrupt in the recording, each may be of one.
        assert_eq!(raised(&[(100, 110, SOFTIRQ)]), 0);
        // On the way out, and in other rounds; also after softirqs of other kinds.
        assert_eq!(
            raised(&[(0, 5, line), (6, 20, SOFTIRQ), (20, 30, SOFTIRQ)]),
            0
        );
        assert_eq!(
            raised(&[
                (0, 5, line),
                (6, 90, Interrupt::Softirq(1)),
                (91, 99, SOFTIRQ)
            ]),
            0
        );
        // An interrupt raises it once: those that follow are sent by the task.
        let sent = [
            (0, 5, line),
            (6, 10, SOFTIRQ),
            (20, 24, SOFTIRQ),
            (30, 34, SOFTIRQ),
        ];
        assert_eq!(raised(&sent), 8);
        assert_eq!(raised(&[(0, 5, line), (200, 210, SOFTIRQ)]), 10);
    }
}
