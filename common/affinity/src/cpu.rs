//! A CPU with its cache, as it carries out runs: the one place where penalties become time.

use warmq_units::TaskId;

use crate::cache::Cache;
use crate::model::{Instance, Run};
use crate::schedule::{Doing, Schedule, Span};

/// A CPU.
pub(crate) struct Cpu<'a> {
    instance: &'a Instance,
    cache: Cache,
    /// The end of what it does.
    pub free_at: u64,
    spans: Vec<Span>,
}

impl<'a> Cpu<'a> {
    /// All CPUs of `instance` at the time when its tasks are ready: the first task, if there is
    /// one, has run on CPU 0.
    pub fn all(instance: &'a Instance) -> Vec<Cpu<'a>> {
        let cold = || Cpu {
            instance,
            cache: Cache::new(instance.costs.lines),
            free_at: 0,
            spans: Vec::new(),
        };
        let mut cpus: Vec<Cpu<'a>> = std::iter::repeat_with(cold).take(instance.cpus).collect();
        if let Some(first) = instance.first {
            cpus[0].run(0, first, &instance.task(first).runs[0]);
            let ready = cpus[0].free_at;
            cpus.iter_mut().for_each(|cpu| cpu.free_at = ready);
        }
        cpus
    }

    /// Carries out a run from `at` on, or from when the CPU is free: writes back what must leave,
    /// fills what is missing, runs.
    pub fn run(&mut self, at: u64, task: TaskId, run: &Run) {
        self.free_at = self.free_at.max(at);
        if let Some(fragment) = run.fragment {
            let lines = self.instance.lines_of(fragment);
            let switch = self.cache.run(fragment, lines, run.writes);
            let costs = self.instance.costs;
            self.spend(costs.f(0, switch.dirty), Doing::WriteBack);
            self.spend(costs.f(switch.missing, 0), Doing::Fill);
        }
        self.spend(run.length, Doing::Run(task));
    }

    fn spend(&mut self, length: u64, doing: Doing) {
        let (from, to) = (self.free_at, self.free_at + length);
        if length > 0 {
            self.spans.push(Span { from, to, doing });
        }
        self.free_at = to;
    }

    /// What all CPUs did, after each has written back what is still dirty.
    pub fn finish(cpus: Vec<Cpu<'a>>) -> Schedule {
        let flushed = cpus.into_iter().map(|mut cpu| {
            let dirty = cpu.cache.flush();
            // An idle CPU's clock may have stood at the start.
            cpu.free_at = cpu.spans.last().map_or(cpu.free_at, |span| span.to);
            cpu.spend(cpu.instance.costs.f(0, dirty), Doing::WriteBack);
            cpu.spans
        });
        Schedule {
            cpus: flushed.collect(),
        }
    }
}
