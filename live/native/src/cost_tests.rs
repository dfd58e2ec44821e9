//! Which lines of other CPUs a wakeup and a switch touch, on a machine of 24 last-level caches of
//! 16 CPUs.
//!
//! `cargo test -p warmq-native lines -- --nocapture` prints the figures of docs/scheduler.md.

use std::collections::BTreeMap;

use super::*;

const CACHES: u32 = 24;
const CPUS_OF_CACHE: u32 = 16;
const CPUS: u32 = CACHES * CPUS_OF_CACHE;

const US: u64 = 1_000;
const TICK: u64 = 4_000 * US;

/// What happens to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Wake(u32),
    /// The task that got this CPU for the n-th time has done its work.
    Done(u32, u64),
    Tick(u32),
    Timer,
}

#[derive(Clone, Copy, Default)]
struct OnCpu {
    task: Option<u32>,
    since: u64,
    /// How often it got another task.
    turns: u64,
}

/// Tasks that compute for a while, and sleep.
#[derive(Clone, Copy)]
struct Load {
    tasks: u32,
    work: u64,
    sleep: u64,
}

/// The lines, and of how many of each.
#[derive(Default)]
struct Costs {
    wakeup: (u64, Lines),
    switch: (u64, Lines),
    tick: (u64, Lines),
}

fn note(sum: &mut (u64, Lines), lines: Lines) {
    sum.0 += 1;
    sum.1 += lines;
}

/// A machine with its tasks. Each is woken by another, which runs anywhere, as by a timer or a
/// packet there.
struct Play {
    program: Program,
    load: Load,
    now: u64,
    events: BTreeMap<(u64, u64), Event>,
    scheduled: u64,
    cpus: Vec<OnCpu>,
    last: Vec<u32>,
    left: Vec<u64>,
    random: u64,
    costs: Costs,
}

impl Play {
    fn new(load: Load) -> Play {
        let machine = Machine {
            domain_of: (0..CPUS).map(|cpu| cpu / CPUS_OF_CACHE).collect(),
            core_of: (0..CPUS).collect(),
            ..Machine::default()
        };
        let mut play = Play {
            program: Program::load(&machine, Policy::default()),
            load,
            now: 1_000_000_000,
            events: BTreeMap::new(),
            scheduled: 0,
            cpus: vec![OnCpu::default(); CPUS as usize],
            last: (0..load.tasks).map(|task| task % CPUS).collect(),
            left: vec![load.work; load.tasks as usize],
            random: 1,
            costs: Costs::default(),
        };
        play.program.make_cgroup(1, 0, 100);
        (0..load.tasks).for_each(|task| play.fork(task));
        (0..CPUS)
            .for_each(|cpu| play.after(TICK / u64::from(CPUS) * u64::from(cpu), Event::Tick(cpu)));
        play.after(0, Event::Timer);
        play
    }

    fn fork(&mut self, task: u32) {
        let birth = Birth {
            parent: None,
            weight: 100,
            allowed: u64::MAX,
            cgroup: 1,
        };
        self.program
            .fork(task, birth, self.last[task as usize], self.now);
        let soon = self.draw(self.load.sleep);
        self.after(soon, Event::Wake(task));
    }

    /// A number below `most`, of which any is as likely as another (xorshift).
    fn draw(&mut self, most: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % most
    }

    fn after(&mut self, ns: u64, event: Event) {
        self.scheduled += 1;
        self.events.insert((self.now + ns, self.scheduled), event);
    }

    fn run(&mut self, ns: u64) {
        let end = self.now + ns;
        while let Some((&(at, order), &event)) = self.events.first_key_value() {
            if at > end {
                break;
            }
            self.events.remove(&(at, order));
            self.now = at;
            match event {
                Event::Wake(task) => self.wake(task),
                Event::Done(cpu, turn) => self.done(cpu, turn),
                Event::Tick(cpu) => self.tick(cpu),
                Event::Timer => self.timer(),
            }
        }
    }

    fn wake(&mut self, task: u32) {
        let here = self.draw(CPUS.into()) as u32;
        let prev = self.last[task as usize];
        self.left[task as usize] = self.load.work / 2 + self.draw(self.load.work);
        self.program.lines();
        let cpu = self
            .program
            .select(task, (here, prev), (Waker::Interrupt, false), self.now);
        let kicks = self
            .program
            .enqueue(task, (here, cpu), Waker::Interrupt, self.now);
        let lines = self.program.lines();
        note(&mut self.costs.wakeup, lines);
        self.obey(kicks);
    }

    fn obey(&mut self, kicks: Kicks) {
        for cpu in (kicks.idle | kicks.preempted).iter() {
            self.stop(cpu);
            self.pick(cpu);
        }
    }

    /// A CPU is about to choose: what its task ran so far is over.
    fn stop(&mut self, cpu: u32) {
        let here = &mut self.cpus[cpu as usize];
        if let Some(task) = here.task {
            let left = &mut self.left[task as usize];
            *left = left.saturating_sub(self.now - here.since).max(1);
        }
        here.since = self.now;
    }

    fn done(&mut self, cpu: u32, turn: u64) {
        let here = self.cpus[cpu as usize];
        let Some(task) = here.task.filter(|_| here.turns == turn) else {
            return;
        };
        self.program.lines();
        self.program.sleep(task, cpu, false, self.now);
        self.last[task as usize] = cpu;
        let sleep = self.load.sleep / 2 + self.draw(self.load.sleep);
        self.after(sleep, Event::Wake(task));
        self.cpus[cpu as usize].task = None;
        self.switch(cpu);
    }

    fn pick(&mut self, cpu: u32) {
        self.program.lines();
        self.switch(cpu);
    }

    fn switch(&mut self, cpu: u32) {
        let next = self.program.pick(cpu, self.now);
        let lines = self.program.lines();
        let here = &mut self.cpus[cpu as usize];
        *here = OnCpu {
            task: next,
            since: self.now,
            turns: here.turns + 1,
        };
        let turn = here.turns;
        if let Some(task) = next {
            self.costs.switch.0 += 1;
            self.last[task as usize] = cpu;
            self.after(self.left[task as usize], Event::Done(cpu, turn));
        }
        // That a CPU goes idle is part of the switch to the next.
        self.costs.switch.1 += lines;
        let kicks = self.program.kicks();
        self.obey(kicks);
    }

    fn tick(&mut self, cpu: u32) {
        self.after(TICK, Event::Tick(cpu));
        if self.cpus[cpu as usize].task.is_none() {
            return;
        }
        self.program.lines();
        let ends = self.program.tick(cpu, self.now);
        let lines = self.program.lines();
        note(&mut self.costs.tick, lines);
        if ends {
            self.stop(cpu);
            self.pick(cpu);
        }
    }

    fn timer(&mut self) {
        self.after(10_000 * US, Event::Timer);
        let kicks = self.program.timer(0, self.now);
        self.obey(kicks);
    }
}

/// A hundredth of a line for each of several events.
fn hundredths(sum: &(u64, Lines)) -> u64 {
    100 * sum.1.all() / sum.0
}

fn measure(name: &str, load: Load) -> Costs {
    let mut play = Play::new(load);
    play.run(20_000 * US);
    play.program.count_lines();
    // Until each line is where it is used.
    play.run(20_000 * US);
    play.costs = Costs::default();
    play.run(40_000 * US);
    let costs = play.costs;
    for (what, (times, lines)) in [
        ("wakeup", &costs.wakeup),
        ("switch", &costs.switch),
        ("tick", &costs.tick),
    ] {
        println!("{name}, each {what} ({times}): {}", lines.each(*times));
    }
    costs
}

/// It was 16.0 for a wakeup and 43.1 for a switch while each wakeup and each sleep changed the sums
/// of its domain.
#[test]
fn lines_of_other_cpus_where_cpus_idle() {
    let load = Load {
        tasks: 768,
        work: 100 * US,
        sleep: 300 * US,
    };
    let costs = measure("half busy", load);
    assert!((1..=850).contains(&hundredths(&costs.wakeup)));
    assert!((1..=1_250).contains(&hundredths(&costs.switch)));
}

/// It was 16.0 for a wakeup and 16.7 for a switch.
#[test]
fn lines_of_other_cpus_where_tasks_wait() {
    let load = Load {
        tasks: 1536,
        work: 200 * US,
        sleep: 500 * US,
    };
    let costs = measure("overloaded", load);
    assert!((1..=1_050).contains(&hundredths(&costs.wakeup)));
    assert!((1..=1_150).contains(&hundredths(&costs.switch)));
}
