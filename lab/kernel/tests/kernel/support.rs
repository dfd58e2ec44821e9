//! A stage for stories: a small machine, a plain scheduler, and watchers on every run.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use warmq_kernel::*;
use warmq_machine::description::*;
use warmq_machine::{Fragmentation, OutOfMemory};
use warmq_trace::{Checker, Digest, Observer, Record};
use warmq_units::{Bytes, CpuId, Cycles, Duration, Hertz, Instant, LockId, Seed, TaskId};

/// CPUs of 1 GHz, so that a cycle is a nanosecond, on a bus; one level of 4 KB each.
pub fn machine(cpus: u16) -> MachineDescription {
    let cache = |cpu| CacheDescription {
        level: 1,
        size: Bytes::from_kb(4),
        ways: 2,
        line: Bytes(32),
        latency: Cycles(2),
        replacement: Replacement::Lru,
        inclusive: false,
        cpus: vec![CpuId(cpu)],
    };
    let place = |cpu| CpuPlace {
        socket: cpu,
        llc: cpu,
        core: cpu,
    };
    MachineDescription {
        name: "stage".into(),
        title: "CPUs of 1 GHz".into(),
        clock: Hertz::from_khz(1_000_000),
        cpus: (0..cpus).map(place).collect(),
        caches: (0..cpus).map(cache).collect(),
        coherence: Coherence::Bus {
            line_transfer: Duration::from_ns(20),
            address_only: Duration::from_ns(5),
            cache_to_cache: Duration::from_ns(80),
        },
        memory: MemoryDescription {
            size: Bytes::from_mb(8),
            page: Bytes::from_kb(4),
            huge_page: Bytes::from_mb(2),
            latency: Duration::from_ns(100),
        },
        miss_overlap: 1,
        costs: BTreeMap::new(),
        sources: BTreeMap::new(),
    }
}

/// Costs of nothing, but for those named.
pub fn costs(some: &[(&str, u64)]) -> Costs {
    let mut table = Costs::free().table().clone();
    for (name, cycles) in some {
        let cost = table.get_mut(*name).expect("a cost that the kernel knows");
        cost.cycles = Cycles(*cycles);
    }
    Costs::new(table)
}

/// Every cost with a round number of nanoseconds.
pub fn some_costs() -> Costs {
    costs(&[
        ("system_call", 300),
        ("context_switch", 1_000),
        ("mm_switch", 500),
        ("interrupt_entry", 400),
        ("interrupt_exit", 200),
        ("timer_tick", 700),
        ("reschedule_interrupt", 600),
        ("network_packet", 3_000),
        ("accept", 800),
        ("socket_send", 900),
        ("socket_receive", 500),
        ("copy_per_line", 10),
        ("fork", 5_000),
        ("exit", 4_000),
        ("lock_uncontended", 30),
    ])
}

/// Keeps every record of a run, and watches the laws.
pub struct Watch {
    pub records: Vec<(Instant, Record)>,
    pub checker: Checker,
    pub digest: Digest,
}

impl Observer for Watch {
    fn see(&mut self, at: Instant, record: &Record) {
        self.records.push((at, *record));
        self.checker.see(at, record);
        self.digest.see(at, record);
    }
}

/// How a run is set up.
pub struct Stage {
    pub machine: MachineDescription,
    pub costs: Costs,
    pub settings: Settings,
    pub scheduler: Box<dyn Scheduler>,
    pub until: Duration,
}

/// CPUs whose kernel costs nothing and whose memory is free, under round robin.
pub fn stage(cpus: u16) -> Stage {
    let settings = Settings {
        caches: false,
        fragmentation: Fragmentation::Fresh,
        patience: Duration::from_s(5),
        ..Settings::linux24(Seed(1))
    };
    Stage {
        machine: machine(cpus),
        costs: Costs::free(),
        settings,
        scheduler: Box::new(RoundRobin::default()),
        until: Duration::from_s(10),
    }
}

/// A run that is over.
pub struct Story {
    pub ending: Ending,
    pub kernel: Kernel<Watch>,
}

impl Stage {
    pub fn costs(self, costs: Costs) -> Stage {
        Stage { costs, ..self }
    }

    pub fn with_caches(mut self) -> Stage {
        self.settings.caches = true;
        self
    }

    pub fn until_ms(self, ms: u64) -> Stage {
        let until = Duration::from_ms(ms);
        Stage { until, ..self }
    }

    pub fn under(self, scheduler: impl Scheduler + 'static) -> Stage {
        let scheduler = Box::new(scheduler);
        Stage { scheduler, ..self }
    }

    /// Runs `workload`, without judging the run.
    pub fn plays_badly(self, workload: impl Workload) -> Story {
        let mut kernel = self.boots(&workload).expect("the workload fits");
        let ending = kernel.run_until(Instant::START + self.until_of());
        Story { ending, kernel }
    }

    fn boots(&self, _: &dyn Workload) -> Result<Kernel<Watch>, BootError> {
        unreachable!("replaced below")
    }

    fn until_of(&self) -> Duration {
        self.until
    }
}
