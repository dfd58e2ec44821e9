//! The scheduler under random workloads, with what must hold checked after each callback.

use std::collections::BTreeSet;

use proptest::prelude::*;
use warmq_config::{Chosen, Value};
use warmq_kernel::*;
use warmq_machine::{OutOfMemory, builtin, read_toml};
use warmq_random::{Act, Script, scripts};
use warmq_units::{CpuId, Duration, Instant, LockId, Seed, TaskId};

use super::{O1, Release, of_2_6_4, settings};

/// A scheduler whose state is looked at after each callback.
struct Checked {
    o1: O1,
    /// The tasks that it owns.
    owned: BTreeSet<TaskId>,
    /// All tasks have the same nice value for ever, so that no slice is longer than a full one.
    alike: bool,
}

impl Checked {
    fn new(
        release: Release,
        attach: &mut Attach<'_>,
        alike: bool,
        clock: &str,
    ) -> Result<Checked, UnknownCost> {
        let set = [("clock".to_owned(), Value::Text(clock.to_owned()))];
        let settings = match release {
            Release::V2_6_4 => of_2_6_4(),
            Release::V2_6_16 => settings(),
        };
        let chosen = Chosen::new(settings, set.into()).expect("a clock that there is");
        Ok(Checked {
            o1: O1::new(release, &chosen, attach)?,
            owned: BTreeSet::new(),
            alike,
        })
    }

    fn check(&self) {
        let mut listed = Vec::new();
        for (cpu, queue) in (0..).map(CpuId).zip(&self.o1.queues) {
            for (index, array) in queue.arrays.iter().enumerate() {
                let tasks: Vec<TaskId> = array.iter().collect();
                assert_eq!(tasks.len(), array.len());
                let priorities = tasks.iter().map(|task| self.o1.task(*task).priority);
                assert!(priorities.is_sorted(), "the best come first");
                for task in &tasks {
                    let state = self.o1.task(*task);
                    assert_eq!((state.cpu, state.array), (cpu, Some(index)), "{task}");
                }
                listed.extend(tasks);
            }
        }
        listed.sort_unstable();
        let owned: Vec<TaskId> = self.owned.iter().copied().collect();
        assert_eq!(listed, owned, "no task is lost, and none is there twice");
        let rules = &self.o1.rules;
        for state in &self.o1.tasks {
            assert!(state.sleep_avg <= rules.max_sleep_avg());
            assert_eq!(state.priority < 100, state.is_real_time());
            if self.alike {
                let full = rules.slice(state.nice);
                assert!(state.slice <= full, "{} of {full} jiffies", state.slice);
            }
        }
    }

    /// The best priority of the tasks that `cpu` can run, from the array that it picks from.
    fn best(&self, context: &Context<'_>) -> Option<usize> {
        let here = context.cpu();
        let queue = self.o1.queue(here);
        let can_run = |task: &TaskId| {
            let view = context.task(*task);
            view.may_run_on(here) && view.on_cpu().is_none_or(|there| there == here)
        };
        let in_array = |array: usize| {
            let runs = |task: &&TaskId| self.o1.task(**task).array == Some(array);
            let mine = |task: &&TaskId| self.o1.task(**task).cpu == here;
            let tasks = self.owned.iter().filter(runs).filter(mine);
            let priority = |task: &TaskId| self.o1.task(*task).priority;
            tasks.filter(|task| can_run(task)).map(priority).min()
        };
        in_array(queue.active).or_else(|| in_array(queue.expired()))
    }
}

impl Scheduler for Checked {
    fn lock_for(&self, cpu: CpuId) -> LockId {
        self.o1.lock_for(cpu)
    }

    fn queues(&self, callback: Callback<'_>, cpu: CpuId) -> [Option<CpuId>; 2] {
        self.o1.queues(callback, cpu)
    }

    fn fork(&mut self, context: &mut Context<'_>, parent: Option<TaskId>, child: TaskId) {
        self.o1.fork(context, parent, child);
        self.check();
    }

    fn select_cpu(&mut self, context: &mut Context<'_>, task: TaskId, why: Why) -> CpuId {
        self.o1.select_cpu(context, task, why)
    }

    fn exec_cpu(&mut self, context: &mut Context<'_>, task: TaskId) -> CpuId {
        self.o1.exec_cpu(context, task)
    }

    fn enqueue(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, why: Why) {
        self.o1.enqueue(context, task, cpu, why);
        assert!(self.owned.insert(task));
        self.check();
    }

    fn wakeup_preempt(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, why: Why) {
        self.o1.wakeup_preempt(context, task, cpu, why);
    }

    fn dequeue(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.o1.dequeue(context, task);
        assert!(self.owned.remove(&task));
        self.check();
    }

    fn pick_next(&mut self, context: &mut Context<'_>, prev: Option<TaskId>) -> Pick {
        let best = self.best(context);
        let pushes = self.o1.queue(context.cpu()).push_to.is_some();
        let before: Vec<usize> = self.o1.tasks.iter().map(|task| task.priority).collect();
        let pick = self.o1.pick_next(context, prev);
        let picked = match pick {
            Pick::Task(next) => Some(before[next.index()]),
            Pick::Idle | Pick::Retry => None,
        };
        assert!(pushes || picked == best, "{picked:?} instead of {best:?}");
        self.check();
        pick
    }

    fn wants_put_prev(&self, prev: TaskId) -> bool {
        self.o1.wants_put_prev(prev)
    }

    fn put_prev(&mut self, context: &mut Context<'_>, prev: TaskId) {
        self.o1.put_prev(context, prev);
        self.check();
    }

    fn tick(&mut self, context: &mut Context<'_>, running: Option<TaskId>) {
        self.o1.tick(context, running);
        self.check();
    }

    fn yield_task(&mut self, context: &mut Context<'_>, task: TaskId) -> bool {
        let yields = self.o1.yield_task(context, task);
        self.check();
        yields
    }

    fn set_weight(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.o1.set_weight(context, task);
        self.check();
    }

    fn set_cpumask(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.o1.set_cpumask(context, task);
        self.check();
    }

    fn cpu_offline(&mut self, context: &mut Context<'_>, cpu: CpuId) {
        self.o1.cpu_offline(context, cpu);
        self.check();
    }

    fn balance(&mut self, context: &mut Context<'_>, when: Balance) -> Option<CpuId> {
        self.o1.balance(context, when)
    }

    fn pull(&mut self, context: &mut Context<'_>, from: CpuId, when: Balance) {
        self.o1.pull(context, from, when);
        self.check();
    }

    fn exit(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.o1.exit(context, task);
        self.check();
    }
}

/// `script`, and tasks that sleep until they are interactive and then use up slices, with children
/// that do so too.
fn start(boot: &mut Boot<'_>, script: &Script) -> Result<(), OutOfMemory> {
    script.start(boot)?;
    for number in 1..4 {
        let mm = boot.mm();
        boot.task(
            TaskSpec::new("late", Some(mm)),
            move |task: Task| async move {
                loop {
                    task.sleep(Duration::from_ms(70 * number)).await;
                    let child = TaskSpec::new("child", Some(mm));
                    let works = |child: Task| async move {
                        child.compute_for(Duration::from_ms(150)).await;
                    };
                    task.spawn(child, works).await;
                    task.compute_for(Duration::from_ms(130 * number)).await;
                }
            },
        )?;
    }
    Ok(())
}

/// Gives all tasks of `script` nice 0 for ever.
fn alike(script: &mut Script) {
    for part in &mut script.parts {
        part.nice = 0;
        part.acts.retain(|act| !matches!(act, Act::Nice(_)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn tasks_and_slices_add_up_in_every_run(
        mut script in scripts(), cpus in 1usize..5, nice_0: bool, tick_ms in 1u64..11,
        tsc: bool, older: bool
    ) {
        if nice_0 {
            alike(&mut script);
        }
        let text = builtin("p3xeon-8way").expect("a shipped machine");
        let mut machine = read_toml("p3xeon-8way.toml", text).expect("a sound machine");
        machine.cpus.truncate(cpus);
        let settings = Settings {
            caches: false,
            tick: Duration::from_ms(tick_ms),
            ..Settings::linux2616(Seed(1))
        };
        let costs = Costs::new(machine.costs["linux-2.4"].clone());
        let release = if older { Release::V2_6_4 } else { Release::V2_6_16 };
        let clock = if tsc { "tsc" } else { "jiffies" };
        let checked: MakeScheduler =
            Box::new(move |attach| Ok(Box::new(Checked::new(release, attach, nice_0, clock)?)));
        let workload = |boot: &mut Boot<'_>| start(boot, &script);
        let kernel = Kernel::boot(&machine, &costs, settings, checked, &workload, ());
        let mut kernel = kernel.expect("the workload fits");
        let ending = kernel.run_until(Instant::START + Duration::from_ms(1_500));
        prop_assert!(matches!(ending, Ending::WorkDone | Ending::TimeUp), "{ending}");
    }
}
