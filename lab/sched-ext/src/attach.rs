//! Attaching an object to a machine: its memory, its code, and what the kernel keeps beside it.

use std::rc::Rc;
use std::sync::Arc;

use warmq_bpf_run::{Ending, Guest, Program, Shape, map_handle};
use warmq_kernel::{Attach, UnknownCost};
use warmq_units::{CpuId, Duration, Instant};

use crate::call::{self, Code};
use crate::callbacks::SchedExt;
use crate::expenses::Expenses;
use crate::ground::Ground;
use crate::idle::Idle;
use crate::kicks::KickWait;
use crate::layout::Layouts;
use crate::lines::Lines;
use crate::load::Loaded;
use crate::masks;
use crate::profiler::Profiler;
use crate::queue::Queue;
use crate::realtime::Above;
use crate::run_queue::{Callbacks, Machine};
use crate::state::{Cpu, State};
use crate::tracing::{AtEvents, MIGRATE, TICK};
use crate::variables::Variables;
use crate::words::{BATCH_DEFAULT, Enq, TIMEOUT_DEFAULT, flags};
use warmq_bpf::Entry;

/// Why an object cannot be attached to a machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAttached {
    /// The machine has no such cost.
    #[error("{0}")]
    Cost(UnknownCost),
    /// An entry that its loader writes does not fit its map.
    #[error("its loader writes entries of the map {0}, which has none like these")]
    Entry(String),
    /// Its memory does not fit.
    #[error(transparent)]
    Memory(#[from] Ending),
}

/// Bytes of maps and objects at most.
pub(crate) const MEMORY: u64 = 2 << 30;

impl SchedExt {
    /// Attaches an object. `ops.init` runs when the first task is forked. `seed` is that of
    /// `bpf_get_prandom_u32()`.
    ///
    /// # Errors
    /// If the machine lacks a cost, or the program's memory does not fit.
    pub fn attach(
        loaded: &Loaded,
        attach: &mut Attach<'_>,
        expenses: Expenses,
        seed: u64,
    ) -> Result<SchedExt, NotAttached> {
        let ground = Ground::of(attach, expenses, loaded)?;
        let numbers = loaded.image.ops.as_ref().map(|found| &found.numbers);
        let timeout = match numbers.and_then(|numbers| numbers.get("timeout_ms")) {
            None | Some(0) => TIMEOUT_DEFAULT,
            Some(ms) => TIMEOUT_DEFAULT.min(*ms),
        };
        Ok(SchedExt {
            machine: Machine::new(loaded, &ground, seed)?,
            ground,
            loaded: loaded.clone(),
            seed,
            begun: false,
            runs: loaded.runs.clone(),
            hint: loaded.hint.clone(),
            loader: loaded.cpu.map(CpuId),
            timeout: Duration::from_ms(timeout),
            watched: Instant::START,
            counted: Vec::new(),
        })
    }

    /// The same scheduler of the object, whose callbacks are counted.
    #[must_use]
    pub fn profiled(mut self, loaded: &Loaded, profiler: &Profiler) -> SchedExt {
        profiler.counts_of(&loaded.image, &loaded.kernel);
        self.machine.state.profiler = Some(profiler.clone());
        self
    }
}

impl Machine {
    /// The program with the memory that it begins with, and the kernel's state.
    pub(crate) fn new(loaded: &Loaded, ground: &Ground, seed: u64) -> Result<Machine, NotAttached> {
        let image = loaded.image.clone();
        let shape = Shape {
            memory: MEMORY,
            ..Shape::of(ground.sites.len() as u32)
        };
        let mut guest = Guest::new(image.clone(), shape)?;
        let found = image.ops.clone().unwrap_or_default();
        let events = AtEvents::of(&image);
        let state = state(loaded, ground, &mut guest, seed, &found, &events)?;
        for entry in &loaded.entries {
            write(&mut guest, entry)?;
        }
        Ok(Machine {
            code: Code {
                program: Arc::new(Program::new(&guest)),
                table: call::table(&image.kfuncs),
                callbacks: Callbacks::of(&found.callbacks, &loaded.kernel),
            },
            guest,
            state,
            events,
        })
    }
}

fn state(
    loaded: &Loaded,
    ground: &Ground,
    guest: &mut Guest,
    seed: u64,
    found: &warmq_bpf::StructOps,
    events: &AtEvents,
) -> Result<State, NotAttached> {
    let kernel = &*loaded.kernel;
    let layouts = Layouts::of(kernel);
    let number = |name: &str| found.numbers.get(name).copied().unwrap_or(0);
    let flags = number("flags");
    let updates = found.callbacks.contains_key("update_idle");
    let kick_wait = KickWait::of(kernel);
    // Both were mended by one merge.
    let mended = kick_wait == KickWait::AfterPick;
    let idle = Idle::new(ground, guest, flags, updates, mended)?;
    let mut cpus = Vec::new();
    for cpu in ground.cpus() {
        cpus.push(new_cpu(ground, guest, &layouts, cpu)?);
    }
    let is_served = kernel.field("rq", "ext_server").is_some();
    let above = cpus.iter().map(|_| Above::new(is_served)).collect();
    let nodes = 1 + cpus.iter().map(|cpu| cpu.node).max().unwrap_or(0);
    let globals: Result<Vec<Queue>, Ending> = (0..nodes)
        .map(|_| Ok(Queue::new(guest.allocate(layouts.queue.size)?)))
        .collect();
    let (possible, online) = (masks::allocate(guest)?, masks::allocate(guest)?);
    masks::write(guest, possible, None);
    masks::write(guest, online, None);
    Ok(State {
        layouts,
        enq: Enq::of(kernel),
        flags,
        cpus,
        above,
        is_served,
        kick_wait,
        round_robin: ground.round_robin,
        globals: globals?,
        idle: Rc::new(idle),
        lines: Lines::new(ground.line),
        costs: ground.costs.clone(),
        most_batch: match number("dispatch_max_batch") {
            0 => BATCH_DEFAULT,
            most => most,
        },
        watches_migrations: events.has(MIGRATE),
        variables: Variables::new(ground, guest, kernel, events.has(TICK))?,
        cred: cred(&layouts, guest)?,
        possible,
        online,
        random: seed | 1,
        ..State::default()
    })
}

/// Writes an entry of a map.
fn write(guest: &mut Guest, entry: &Entry) -> Result<(), NotAttached> {
    let wrong = || NotAttached::Entry(entry.map.clone());
    let (map, known) = guest.image().map(&entry.map).ok_or_else(wrong)?;
    let sizes = (known.key_size as usize, known.value_size as usize);
    if sizes != (entry.key.len(), entry.value.len()) {
        return Err(wrong());
    }
    let both = [&entry.key[..], &entry.value[..]].concat();
    let (key, size) = (guest.allocate(both.len() as u64)?, both.len() as u64);
    if let Some(bytes) = guest.bytes_mut(key, size) {
        bytes.copy_from_slice(&both);
    }
    let value = key + entry.key.len() as u64;
    let returned = guest.map_update(map_handle(map), key, value, 0, 0)?;
    guest.free(key, size);
    match returned {
        0 => Ok(()),
        _ => Err(wrong()),
    }
}

/// The credentials of all tasks: root's, in the first user namespace.
fn cred(layouts: &Layouts, guest: &mut Guest) -> Result<u64, Ending> {
    let cred = guest.allocate(layouts.cred.size)?;
    let namespace = guest.allocate(layouts.namespace.size)?;
    layouts.cred.namespace.set(guest, cred, namespace);
    Ok(cred)
}

fn new_cpu(
    ground: &Ground,
    guest: &mut Guest,
    layouts: &Layouts,
    cpu: CpuId,
) -> Result<Cpu, Ending> {
    let site = ground.site(cpu);
    let idle_task = guest.allocate(layouts.task.size)?;
    let kind = flags::IDLE | flags::KTHREAD;
    layouts.task.flags.set(guest, idle_task, kind);
    layouts.task.cpu.set(guest, idle_task, cpu.0.into());
    let comm = format!("swapper/{}", cpu.0);
    layouts.task.comm.set_text(guest, idle_task, &comm);
    Ok(Cpu {
        lock: site.lock,
        word: site.word,
        node: site.node,
        local: Queue::new(guest.allocate(layouts.queue.size)?),
        idle_task,
        turn: 1,
        ..Cpu::default()
    })
}
