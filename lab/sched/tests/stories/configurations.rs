//! Random configurations of a kernel: preemption, idle CPUs, softirqs, quotas.

use proptest::prelude::*;

use warmq_kernel::{IdleLoop, PollTime, Preemption, Settings, SoftirqLimits, Throttling};
use warmq_units::Duration;

/// How a kernel is configured, apart from its timers.
#[derive(Clone, Copy, Debug)]
pub struct Configuration {
    pub preemption: Preemption,
    pub idle_loop: IdleLoop,
    pub nohz: bool,
    pub sync: bool,
    pub softirqs: SoftirqLimits,
    pub throttling: Throttling,
    pub staggered_periods: bool,
}

impl Configuration {
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
