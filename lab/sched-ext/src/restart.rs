//! A program that is ended and started anew, by its loader, since a CPU has come or gone.
//!
//! Its memory is what it was when it was loaded. It gets to know all tasks, those that run go on,
//! and those that wait are queued again (`scx_root_enable()`).
//!
//! Different from a kernel: the restart takes no time, in which a kernel's own scheduler would run;
//! and a CPU that is offline is one that never idles, which loaders would leave out.

use warmq_kernel::Context;
use warmq_units::{CpuId, TaskId};

use crate::callbacks::SchedExt;
use crate::execution::at_once;
use crate::masks;
use crate::run_queue::{Machine, RunQueue};
use crate::state::{State, Task};

impl SchedExt {
    /// Ends the program, and starts it anew.
    pub(crate) fn restart(&mut self, context: &mut Context<'_>) {
        let machine = match Machine::new(&self.loaded, &self.ground, self.seed) {
            Ok(machine) => machine,
            Err(why) => return self.machine.here(context).eject(why.to_string()),
        };
        self.counted = self.counts();
        let old = std::mem::replace(&mut self.machine, machine);
        for timer in old.state.timers.values() {
            context.cancel_timer(*timer);
        }
        let (before, tasks) = self.machine.take_over(context, old);
        self.begun = false;
        self.begin(context);
        for (at, task) in (0..).zip(tasks) {
            if task.address != 0 {
                let runs = before.contains(&TaskId(at));
                self.machine.know_again(context, TaskId(at), &task, runs);
            }
        }
        let online = self.ground.cpus().filter(|cpu| context.is_online(*cpu));
        for cpu in online.collect::<Vec<CpuId>>() {
            context.reschedule(cpu);
        }
        self.machine.here(context).send_kicks();
    }
}

impl Machine {
    /// What stays: the classes above, the profiler, the memory of the machine that the program's is
    /// on, and which CPUs are online. Returns who runs, and all tasks as they were.
    fn take_over(&mut self, context: &mut Context<'_>, old: Machine) -> (Vec<TaskId>, Vec<Task>) {
        let State {
            above,
            servers,
            profiler,
            lines,
            tasks,
            cpus,
            ..
        } = old.state;
        let runs = cpus.iter().filter_map(|cpu| cpu.current).collect();
        self.state.above = above;
        self.state.servers = servers;
        self.state.profiler = profiler;
        self.state.lines = lines;
        for above in &mut self.state.above {
            above.forget_runnable();
        }
        for cpu in (0..context.cpus()).map(CpuId) {
            context.looks_again(cpu);
            if !context.is_online(cpu) {
                masks::put(&mut self.guest, self.state.online, cpu, false);
                self.here(context).note_idle(cpu, false);
            }
        }
        (runs, tasks)
    }

    /// The program gets to know a task that was there before.
    fn know_again(&mut self, context: &mut Context<'_>, task: TaskId, old: &Task, runs: bool) {
        let mut here = self.here(context);
        if let Err(ending) = here.make_task(task, None) {
            return here.eject(ending.to_string());
        }
        here.set_cpu(task, old.cpu);
        let state = here.state.task_mut(task);
        state.class = old.class.clone();
        self.know_task(context, task, false);
        if !old.queued {
            return;
        }
        if runs {
            let now = context.now();
            let there = self.state.cpu_mut(old.cpu);
            there.current = Some(task);
            there.exec_start = now;
            return at_once(self.on(context).goes_on(task));
        }
        self.state.task_mut(task).waits_since = old.waits_since;
        let restore = self.state.enq.restore;
        at_once(self.on(context).enqueue(task, old.cpu, restore));
    }
}
