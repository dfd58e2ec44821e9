//! Support for tests: a small machine, and checkers on every run.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use warmq_kernel::*;
use warmq_machine::description::*;
use warmq_machine::{Fragmentation, OutOfMemory};
use warmq_metrics::{LockFigures, LockMeter, TaskFigures, TaskMeter};
use warmq_trace::{Checker, Digest, Observer, Promise, Queues, Record};
use warmq_units::{Bytes, CpuId, Cycles, Duration, Hertz, Instant, LockId, Seed, TaskId};

use crate::round_robin::round_robin;

/// CPUs of 1 GHz, so that a cycle is a nanosecond, on a bus; each has one level of cache of 4 KB.
pub fn machine(cpus: u16) -> MachineDescription {
    let cache = |cpu| CacheDescription {
        level: 1,
        size: Bytes::from_kb(4),
        ways: 2,
        line: Bytes(32),
        latency: Cycles(2),
        replacement: Replacement::Lru,
        inclusion: Inclusion::NonInclusive,
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
            crossing: None,
        },
        memory: MemoryDescription {
            size: Bytes::from_mb(8),
            page: Bytes::from_kb(4),
            huge_page: Bytes::from_mb(2),
            latency: Duration::from_ns(100),
            dma_into_llc: false,
        },
        miss_overlap: 1,
        smt_speed: 1_000,
        priorities: Vec::new(),
        capacities: Vec::new(),
        nodes: Vec::new(),
        node_distances: Vec::new(),
        card: None,
        steals: Vec::new(),
        costs: BTreeMap::new(),
        sources: BTreeMap::new(),
        left_out: Vec::new(),
    }
}

/// Costs of zero, except for those named.
pub fn costs(some: &[(&str, u64)]) -> Costs {
    with(&Costs::free(), some)
}

/// Costs that a machine need not give.
const OPTIONAL: [&str; 5] = [
    "halt_exit",
    "unix_message",
    "futex",
    "mm_refill",
    "fork_faults",
];

/// The same with those that are named.
pub fn with(costs: &Costs, some: &[(&str, u64)]) -> Costs {
    let mut table = costs.table().clone();
    for (name, cycles) in some {
        let known = table.contains_key(*name) || OPTIONAL.contains(name);
        assert!(known, "a cost that the kernel knows: {name}");
        let cost = Cost {
            cycles: Cycles(*cycles),
            source: "a test".to_owned(),
        };
        table.insert((*name).to_owned(), cost);
    }
    Costs::new(table)
}

/// Every cost, in round numbers of nanoseconds.
pub fn some_costs() -> Costs {
    costs(&[
        ("system_call", 300),
        ("context_switch", 1_000),
        ("mm_switch", 500),
        ("interrupt_entry", 400),
        ("interrupt_exit", 200),
        ("interrupt_return", 150),
        ("timer_program", 150),
        ("timer_tick", 700),
        ("reschedule_interrupt", 600),
        ("network_packet", 3_000),
        ("stream_packet", 2_500),
        ("stream_call", 250),
        ("accept", 800),
        ("socket_send", 900),
        ("socket_receive", 500),
        ("copy_per_line", 10),
        ("fork", 5_000),
        ("exit", 4_000),
        ("lock_uncontended", 30),
    ])
}

/// Keeps every record of a run, and checks the invariants.
pub struct Watch {
    pub records: Vec<(Instant, Record)>,
    pub checker: Checker,
    pub digest: Digest,
    pub locks: LockMeter,
    pub tasks: TaskMeter,
}

impl Observer for Watch {
    fn see(&mut self, at: Instant, record: &Record) {
        self.records.push((at, *record));
        self.checker.see(at, record);
        self.digest.see(at, record);
        self.locks.see(at, record);
        self.tasks.see(at, record);
    }
}

/// The setup of a run.
pub struct Stage {
    pub machine: MachineDescription,
    pub costs: Costs,
    pub settings: Settings,
    pub scheduler: MakeScheduler,
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
        scheduler: round_robin(0),
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

    pub fn under(self, scheduler: MakeScheduler) -> Stage {
        Stage { scheduler, ..self }
    }

    /// Switches the machine on; no time has passed yet.
    pub fn boot(self, workload: impl Workload) -> Result<Kernel<Watch>, BootError> {
        let watch = Watch {
            records: Vec::new(),
            // One queue serves all.
            checker: Checker::of_a_run().promised(Promise {
                queues: Queues::Shared,
                ..Promise::default()
            }),
            digest: Digest::new(),
            locks: LockMeter::default(),
            tasks: TaskMeter::default(),
        };
        let Stage {
            machine,
            costs,
            settings,
            scheduler,
            ..
        } = self;
        Kernel::boot(&machine, &costs, settings, scheduler, &workload, watch)
    }

    /// Runs `workload` without checking the invariants.
    pub fn plays_badly(self, workload: impl Workload) -> Story {
        let end = Instant::START + self.until;
        let mut kernel = self.boot(workload).expect("the workload fits");
        let ending = kernel.run_until(end);
        Story { ending, kernel }
    }

    /// Runs `workload` and checks every invariant.
    pub fn plays(self, workload: impl Workload) -> Story {
        let story = self.plays_badly(workload);
        story.keeps_the_laws();
        story
    }
}

impl Story {
    /// Checks every invariant of a run: those of the checker, coherence, and that no CPU time is
    /// lost.
    pub fn keeps_the_laws(&self) {
        let watch = self.kernel.observer();
        let now = self.kernel.now();
        assert_eq!(watch.checker.clone().finish(now), Ok(()));
        assert_eq!(self.kernel.check_coherence(), Ok(()));
        assert_eq!(self.kernel.check_times(), Ok(()));
    }

    pub fn records(&self) -> &[(Instant, Record)] {
        &self.kernel.observer().records
    }

    /// When `task` exited, in microseconds.
    pub fn exit_us(&self, task: u32) -> u64 {
        let exit = self.records().iter().find_map(|(at, record)| match record {
            Record::Exit { task: gone, .. } if gone.0 == task => Some(*at),
            _ => None,
        });
        (exit.expect("the task exited") - Instant::START).as_us()
    }

    /// The tasks that CPU `cpu` switched to, in order; `None` is the idle task.
    pub fn turns(&self, cpu: u16) -> Vec<Option<u32>> {
        let next = |record: &Record| match record {
            Record::Switch { cpu: on, next, .. } if on.0 == cpu => Some(next.map(|task| task.0)),
            _ => None,
        };
        self.records()
            .iter()
            .filter_map(|(_, record)| next(record))
            .collect()
    }

    /// The figures of the first lock.
    pub fn first_lock(&self) -> LockFigures {
        self.kernel.observer().locks.figures(LockId(0))
    }

    /// What `task` did.
    pub fn task(&self, task: u32) -> TaskFigures {
        let tasks = &self.kernel.observer().tasks;
        let figures = tasks.figures(TaskId(task), self.kernel.now());
        figures.expect("there is such a task")
    }

    pub fn spent(&self, cpu: u16, mode: Mode) -> Duration {
        self.kernel.spent_by_cpu()[usize::from(cpu)][mode as usize]
    }
}

/// What programs say, in the order in which they say it.
#[derive(Clone, Default)]
pub struct Said(Rc<RefCell<Vec<String>>>);

impl Said {
    pub fn say(&self, what: impl Into<String>) {
        self.0.borrow_mut().push(what.into());
    }

    pub fn all(&self) -> Vec<String> {
        self.0.borrow().clone()
    }
}

pub fn us(us: u64) -> Cycles {
    Cycles(us * 1_000)
}

pub fn cpu(cpu: u16) -> CpuId {
    CpuId(cpu)
}

/// A task without an address space of its own.
pub fn called(name: &str) -> TaskSpec {
    TaskSpec::new(name, None)
}

pub type Started = Result<(), OutOfMemory>;

/// A task on each of the first `cpus` CPUs that computes for `ms` milliseconds.
pub fn bound_hogs(boot: &mut Boot<'_>, cpus: u16, ms: u64) -> Started {
    for number in 0..cpus {
        let hog = called("hog").bound([cpu(number)]);
        boot.task(hog, move |task: Task| async move {
            task.compute(us(ms * 1_000)).await;
        })?;
    }
    Ok(())
}
