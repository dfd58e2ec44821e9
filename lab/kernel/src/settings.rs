//! How the simulated kernel is configured, apart from its scheduler.

use warmq_machine::{Fragmentation, Options};
use warmq_units::{Bytes, Duration, Seed};

/// How the kernel is configured, apart from its scheduler.
#[derive(Clone, Debug)]
pub struct Settings {
    /// From one timer tick to the next: 1 / HZ.
    pub tick: Duration,
    /// Sleeps end at multiples of this (a jiffy in 2.4).
    pub timer_resolution: Duration,
    /// Kernel stack and task structure of one task.
    pub block: Bytes,
    /// The receive buffer of a socket.
    pub socket_buffer: Bytes,
    /// How long a runnable task may wait for its first chance before the run is said to stall.
    pub patience: Duration,
    /// Whether memory accesses go through the machine's caches; without, they are free.
    pub caches: bool,
    /// What the caches count besides hits and misses.
    pub counting: Options,
    /// How worn the page allocator is.
    pub fragmentation: Fragmentation,
    /// What makes this run differ from another.
    pub seed: Seed,
}

impl Settings {
    /// Linux 6 on x86 as Debian builds it: HZ 250, and sleeps that end on a clock of their own, to
    /// a microsecond here. Where memory lies is as in [`Settings::linux24`], so that schedulers
    /// compare.
    pub fn linux6(seed: Seed) -> Settings {
        Settings {
            tick: Duration::from_ms(4),
            timer_resolution: Duration::from_us(1),
            ..Settings::linux24(seed)
        }
    }

    /// Linux 2.4 on x86: HZ 100, 8 KB blocks, 64 KB socket buffers, a machine that has been up for
    /// long.
    pub fn linux24(seed: Seed) -> Settings {
        Settings {
            tick: Duration::from_ms(10),
            timer_resolution: Duration::from_ms(10),
            block: Bytes::from_kb(8),
            socket_buffer: Bytes::from_kb(64),
            patience: Duration::from_s(120),
            caches: true,
            counting: Options::default(),
            fragmentation: Fragmentation::Worn {
                cluster: 8,
                used_percent: 50,
            },
            seed,
        }
    }
}
