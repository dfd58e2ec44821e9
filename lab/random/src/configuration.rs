//! Random configurations of a kernel: preemption, idle CPUs, softirqs, quotas.

use proptest::prelude::*;

use warmq_kernel::{IdleLoop, PollTime, Preemption, Settings, SoftirqLimits, Throttling};
use warmq_units::Duration;

/// How a kernel is configured, apart from its timers.
#[derive(Clone, Copy, Debug)]
pub struct Configuration {
    /// Where it can be preempted.
    pub preemption: Preemption,
    /// How its CPUs idle.
    pub idle_loop: IdleLoop,
    /// Whether ticks of idle CPUs stop.
    pub nohz: bool,
    /// Whether packets wake with `WF_SYNC` (`Settings::sync_socket_wakeups`).
    pub sync: bool,
    /// The limits of its softirqs.
    pub softirqs: SoftirqLimits,
    /// What it does with groups that are out of quota.
    pub throttling: Throttling,
    /// Whether periods of quotas begin at drawn times.
    pub staggered_periods: bool,
}

impl Configuration {
    /// Sets all of it.
    pub fn apply(self, settings: &mut Settings) {
        settings.preemption = self.preemption;
        settings.idle_loop = self.idle_loop;
        settings.nohz = self.nohz;
        settings.sync_socket_wakeups = self.sync;
        settings.softirqs = self.softirqs;
        settings.throttling = self.throttling;
        settings.staggered_periods = self.staggered_periods;
    }
}

/// Any configuration.
pub fn configurations() -> impl Strategy<Value = Configuration> {
    let preemption = prop::sample::select(vec![
        Preemption::None,
        Preemption::Voluntary,
        Preemption::Full,
        Preemption::Lazy,
    ]);
    let idle_loop = prop::sample::select(vec![IdleLoop::Halt, IdleLoop::Poll]);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    let throttling = prop::sample::select(vec![Throttling::Groups, Throttling::Tasks]);
    let drawn = (preemption, idle_loop, flags, softirq_limits(), throttling);
    drawn.prop_map(
        |(preemption, idle_loop, (nohz, sync, staggered_periods), softirqs, throttling)| {
            Configuration {
                preemption,
                idle_loop,
                nohz,
                sync,
                softirqs,
                throttling,
                staggered_periods,
            }
        },
    )
}

fn softirq_limits() -> impl Strategy<Value = SoftirqLimits> {
    let ksoftirqd = prop::option::of(-20i8..20);
    (
        1u32..11,
        1u64..3_000,
        1u32..301,
        1u64..10_000,
        1u32..65,
        ksoftirqd,
    )
        .prop_map(
            |(rounds, time, packets, packets_time, weight, ksoftirqd)| SoftirqLimits {
                rounds,
                time: Duration::from_us(time),
                packets,
                packets_time: PollTime::After(Duration::from_us(packets_time)),
                whole_polls: false,
                weight,
                ksoftirqd,
                ends_for_tasks: ksoftirqd.is_some(),
            },
        )
}
