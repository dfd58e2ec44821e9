//! A machine on which scx_warmq schedules, and on which nothing happens but what a test says.

use std::collections::BTreeMap;

use warmq_kernel::{GroupId, Mode, TaskSpec};
use warmq_machine::{CacheDescription, CpuPlace, MachineDescription, builtin, read_toml};
use warmq_sched_ext::interleaved::{Event, Interleaved, Note, Waits, What};
use warmq_sched_ext::{Facts, Place, Value};
use warmq_units::{CpuId, CpuSet, Duration, Seed, TaskId};

use crate::warmq::object::as_it_is;

/// All CPUs, as a mask of a task's.
pub const ALL: u64 = u64::MAX;

/// Ticks come every so many ms.
const TICK: u64 = 4;

/// How often CPUs look again after one event at most.
const ROUNDS: usize = 16;

/// Whether the object cannot be compiled here, so that a test is skipped.
pub fn is_missing() -> bool {
    as_it_is().is_none()
}

/// CPUs, what they share, and how the scheduler is set.
#[derive(Clone, Debug, Default)]
pub struct Site {
    pub places: Vec<Place>,
    pub set: Vec<(String, Value)>,
}

impl Site {
    /// Nodes of so many caches, of so many CPUs each.
    pub fn nodes(nodes: u16, caches: u16, cpus: u16) -> Site {
        let place = |cpu: u16| Place {
            core: cpu,
            llc: cpu / cpus,
            node: cpu / cpus / caches,
            ..Place::default()
        };
        let places = (0..nodes * caches * cpus).map(place).collect();
        Site {
            places,
            ..Site::default()
        }
    }

    /// The same, whose CPUs are of these cores.
    pub fn cores(mut self, cores: &[u16]) -> Site {
        for (place, core) in self.places.iter_mut().zip(cores) {
            place.core = *core;
        }
        self
    }

    /// The same, with a variable of the object set.
    pub fn set(mut self, variable: &str, value: i128) -> Site {
        self.set.push((variable.to_owned(), Value::Number(value)));
        self
    }

    /// The same, with an option of the loader.
    fn option(mut self, name: &str, value: &str) -> Site {
        self.set
            .push((name.to_owned(), Value::Text(value.to_owned())));
        self
    }

    /// A shipped machine whose CPUs are at these places.
    fn machine(&self) -> MachineDescription {
        let text = builtin("tiny-2cpu").expect("a shipped machine");
        let mut machine = read_toml("tiny-2cpu", text).expect("a sound machine");
        let cpu = |place: &Place| CpuPlace {
            socket: place.node,
            llc: place.llc,
            core: place.core,
        };
        machine.cpus = self.places.iter().map(cpu).collect();
        let pattern = |level| {
            machine
                .caches
                .iter()
                .find(move |cache| cache.level == level)
        };
        let (own, last) = (pattern(1).expect("one"), pattern(2).expect("one"));
        let numbered = || (0..).map(CpuId).zip(&self.places);
        let owned = numbered().map(|(cpu, _)| (own, vec![cpu]));
        let mut shared: BTreeMap<u16, Vec<CpuId>> = BTreeMap::new();
        for (cpu, place) in numbered() {
            shared.entry(place.llc).or_default().push(cpu);
        }
        let all = owned.chain(shared.into_values().map(|cpus| (last, cpus)));
        let with = |(cache, cpus): (&CacheDescription, Vec<CpuId>)| CacheDescription {
            cpus,
            ..cache.clone()
        };
        machine.caches = all.map(with).collect();
        machine
    }
}

/// Who is on the machine, and how late it is.
pub struct Play {
    pub kernel: Interleaved,
    /// Tasks by the numbers that a test gives them.
    tasks: BTreeMap<u32, TaskId>,
    cpus: u16,
    /// ms since the beginning.
    pub now: u64,
    /// Timers that have expired, and were not played yet.
    expired: Vec<(CpuId, u64)>,
}

impl Play {
    /// A machine all of whose CPUs idle. Groups live under caches, and a hint means the same data
    /// to all.
    pub fn on(site: &Site) -> Play {
        Play::in_scope(site, "system")
    }

    /// The same, where a hint means the same data within a scope.
    pub fn in_scope(site: &Site, scope: &str) -> Play {
        let source = as_it_is().expect("looked for before");
        let site = site.clone().option("place", "llc").option("scope", scope);
        let facts = Facts::of_places(site.places.clone());
        let loaded = source.load("7.3", &facts, &site.set);
        let loaded = loaded.unwrap_or_else(|error| panic!("{error}"));
        let kernel = Interleaved::new(&loaded, &site.machine(), Seed(1)).expect("it is attached");
        let mut play = Play {
            kernel,
            tasks: BTreeMap::new(),
            cpus: site.places.len() as u16,
            now: 0,
            expired: Vec::new(),
        };
        play.kernel.take_notes();
        // ops.init runs before the first task.
        play.fork(TaskSpec::new("first", None), 0);
        for cpu in play.cpus() {
            play.happens(cpu, Event::Pick);
        }
        play
    }

    fn cpus(&self) -> impl Iterator<Item = u16> + use<> {
        0..self.cpus
    }

    fn fork(&mut self, spec: TaskSpec, last: u16) -> TaskId {
        let forked = self.kernel.fork(spec, CpuId(last));
        forked.expect("there is memory")
    }

    /// A task is made that was last on `last` and may run on the CPUs of a mask.
    pub fn born(&mut self, task: u32, last: u16, allowed: u64) {
        self.born_as(task, last, bound(TaskSpec::new("task", None), allowed));
    }

    /// The same of any kind.
    pub fn born_as(&mut self, task: u32, last: u16, spec: TaskSpec) {
        let made = self.fork(spec, last);
        self.tasks.insert(task, made);
    }

    /// The kernel's number of a task.
    pub fn id(&self, task: u32) -> TaskId {
        self.tasks[&task]
    }

    /// Something happens on a CPU, to its end, and nothing that follows from it yet.
    pub fn happens(&mut self, cpu: u16, event: Event) {
        self.kernel.begin(CpuId(cpu), event, None);
        self.kernel.go_on();
        assert_eq!(self.kernel.ejected(), None);
    }

    /// Something begins on a CPU, and is interrupted after so many places, if it has so many.
    /// Meanwhile other things happen. Whether it was.
    pub fn held(
        &mut self,
        (cpu, event): (u16, Event),
        passes: u64,
        meanwhile: impl FnOnce(&mut Play),
    ) -> bool {
        let path = self.kernel.begin(CpuId(cpu), event, Some(passes));
        self.kernel.go_on();
        let held = matches!(self.kernel.waits(path), Some(Waits::Held(_)));
        if held {
            meanwhile(self);
            self.kernel.release(path);
            self.kernel.go_on();
        }
        held
    }

    /// CPUs look that were asked to. Whether any was.
    pub fn look(&mut self) -> bool {
        let kicked = self.kicked();
        for cpu in &kicked {
            self.happens(*cpu, Event::Pick);
        }
        !kicked.is_empty()
    }

    /// CPUs look that were asked to, until none is.
    pub fn settle(&mut self) {
        let looked = (0..ROUNDS).take_while(|_| self.look()).count();
        assert!(looked < ROUNDS, "CPUs look again and again");
    }

    /// CPUs that were asked to look.
    pub fn kicked(&self) -> Vec<u16> {
        let asked = |cpu: &u16| {
            let cpu = CpuId(*cpu);
            self.kernel.is_to_pick(cpu) && self.kernel.is_free(cpu)
        };
        self.cpus().filter(asked).collect()
    }

    /// Something happens on a CPU, and all that follows from it.
    pub fn all_of(&mut self, cpu: u16, event: Event) {
        self.happens(cpu, event);
        self.settle();
    }

    /// A task is woken by code on a CPU. The CPU that runs it then.
    pub fn woken(&mut self, task: u32, here: u16) -> Option<u16> {
        self.all_of(here, Event::Wake(self.id(task)));
        self.cpu_of(task)
    }

    /// A task that may run everywhere, and was last on a CPU, wakes there.
    pub fn starts(&mut self, task: u32, last: u16) -> Option<u16> {
        self.born(task, last, ALL);
        self.woken(task, last)
    }

    /// The CPU that runs a task.
    pub fn cpu_of(&self, task: u32) -> Option<u16> {
        self.cpus().find(|cpu| self.runs(*cpu) == Some(task))
    }

    /// Who runs on a CPU.
    pub fn runs(&self, cpu: u16) -> Option<u32> {
        let runs = self.kernel.runs(CpuId(cpu))?;
        let mut tasks = self.tasks.iter();
        tasks.find(|(_, id)| **id == runs).map(|(task, _)| *task)
    }

    /// How many CPUs are busy.
    pub fn busy(&self, cpus: std::ops::Range<u16>) -> usize {
        cpus.filter(|cpu| self.runs(*cpu).is_some()).count()
    }

    /// A CPU looks for its next task.
    pub fn pick(&mut self, cpu: u16) -> Option<u32> {
        self.all_of(cpu, Event::Pick);
        self.runs(cpu)
    }

    /// Who runs on a CPU sleeps. Who runs next there.
    pub fn sleeps(&mut self, cpu: u16) -> Option<u32> {
        assert!(self.runs(cpu).is_some(), "nobody runs on CPU {cpu}");
        self.all_of(cpu, Event::Sleep);
        self.runs(cpu)
    }

    /// Who runs on a CPU, if anybody does, has a tick. Who runs there then.
    pub fn tick(&mut self, cpu: u16, mode: Mode) -> Option<u32> {
        if self.runs(cpu).is_some() {
            self.all_of(cpu, Event::Tick(mode));
        }
        self.runs(cpu)
    }

    /// Who runs on a CPU names its data.
    pub fn names(&mut self, cpu: u16, hint: u64) {
        self.all_of(cpu, Event::Hint(hint));
    }

    /// So many ms later; nothing happens meanwhile.
    pub fn later(&mut self, ms: u64) {
        for _ in 0..ms {
            self.now += 1;
            let expired = self.kernel.pass(Duration::from_ms(1));
            self.expired.extend(expired);
        }
    }

    /// What timers do that have expired.
    pub fn timers(&mut self) {
        for (cpu, timer) in std::mem::take(&mut self.expired) {
            self.happens(cpu.0, Event::Timer(timer));
        }
    }

    /// Timers that have expired; they are not played.
    pub fn expired(&mut self) -> Vec<(CpuId, u64)> {
        std::mem::take(&mut self.expired)
    }

    /// So many ms later; ticks come every 4 ms, and timers when they expire.
    pub fn passes(&mut self, ms: u64) {
        for _ in 0..ms {
            self.later(1);
            if self.now.is_multiple_of(TICK) {
                for cpu in self.cpus() {
                    self.tick(cpu, Mode::User);
                }
            }
            self.timers();
            self.settle();
        }
    }

    /// All is counted right.
    pub fn check(&mut self) {
        self.kernel.check();
        assert_eq!(self.kernel.ejected(), None);
    }

    /// Asks a program of race.bpf.h, with a number of a task or a group, and another one.
    pub fn ask(&mut self, program: &str, numbers: [u64; 2]) -> i32 {
        let answer = self.kernel.ask(program, &numbers);
        answer.expect("race.bpf.h has it")
    }

    /// The process id of a task.
    pub fn pid(&self, task: u32) -> u64 {
        self.kernel.pid(self.id(task))
    }

    /// A group is removed.
    pub fn remove(&mut self, group: GroupId) {
        let number = self.kernel.cgroup(group);
        assert_eq!(self.ask("race_cgroup_exit", [number, 0]), 0);
    }

    /// The hint whose group a task is in; 0: it is in none.
    pub fn hint_of(&mut self, task: u32) -> i32 {
        self.ask("race_hint_of", [self.pid(task), 0])
    }

    /// A task writes a hint into its slot.
    pub fn write_slot(&mut self, task: u32, hint: u64) {
        assert_eq!(self.ask("race_write_slot", [self.pid(task), hint]), 0);
    }

    /// Calls of a kfunc since the last time that somebody asked for any: their arguments. The name
    /// may be the beginning of one.
    pub fn calls(&mut self, kfunc: &str) -> Vec<[u64; 5]> {
        let image = self.kernel.image().clone();
        let is_meant = |which: &u32| image.kfuncs[*which as usize].starts_with(kfunc);
        let called = |note: Note| match note.what {
            What::Calls(which, args) => is_meant(&which).then_some(args),
            _ => None,
        };
        self.kernel.notes().into_iter().filter_map(called).collect()
    }
}

/// The same task, which may run on the CPUs of a mask.
pub fn bound(spec: TaskSpec, allowed: u64) -> TaskSpec {
    TaskSpec {
        allowed: cpu_set(allowed),
        ..spec
    }
}

fn cpu_set(mask: u64) -> Option<CpuSet> {
    let cpus = (0..64).filter(|cpu| mask >> cpu & 1 == 1).map(CpuId);
    (mask != ALL).then(|| cpus.collect())
}

/// Code changes the affinity of a task.
pub fn affinity(task: TaskId, mask: u64) -> Event {
    Event::Affinity(task, cpu_set(mask).expect("some CPUs"))
}
