//! PLS and vanilla asked the same question: both must answer with a task of equal goodness.

use proptest::prelude::*;
use warmq_config::Chosen;
use warmq_kernel::{
    Attach, Context, Costs, Ending, Kernel, MakeScheduler, Pick, Scheduler, Settings, UnknownCost,
    Why,
};
use warmq_machine::{builtin, read_toml};
use warmq_random::{Script, scripts};
use warmq_units::{CpuId, Duration, Instant, LockId, Seed, TaskId};

use crate::linux24::{self, Linux24};
use crate::pls::Pls;

/// Both schedulers over the same tasks. Each hears everything; what PLS picks is run, as a pick
/// changes nothing in vanilla's queue.
struct Twins {
    vanilla: Linux24,
    pls: Pls,
}

impl Twins {
    fn new(attach: &mut Attach<'_>) -> Result<Twins, UnknownCost> {
        let chosen = |settings| Chosen::new(settings, Default::default()).expect("defaults");
        Ok(Twins {
            vanilla: Linux24::new(&chosen(linux24::settings()), attach)?,
            pls: Pls::new(&chosen(crate::family::settings()), attach)?,
        })
    }

    fn both(&mut self, mut call: impl FnMut(&mut dyn Scheduler)) {
        call(&mut self.vanilla);
        call(&mut self.pls);
    }
}

impl Scheduler for Twins {
    fn lock_for(&self, cpu: CpuId) -> LockId {
        self.pls.lock_for(cpu)
    }

    fn fork(&mut self, context: &mut Context<'_>, parent: Option<TaskId>, child: TaskId) {
        self.both(|twin| twin.fork(context, parent, child));
    }

    fn enqueue(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, why: Why) {
        self.both(|twin| twin.enqueue(context, task, cpu, why));
    }

    fn wakeup_preempt(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, why: Why) {
        self.both(|twin| twin.wakeup_preempt(context, task, cpu, why));
    }

    fn dequeue(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.both(|twin| twin.dequeue(context, task));
    }

    fn pick_next(&mut self, context: &mut Context<'_>, prev: Option<TaskId>) -> Pick {
        // A yield is over once its task is picked: weigh before anybody does.
        let worth: Vec<i32> = linux24::worths(&self.vanilla, context);
        let (first, second) = (
            self.vanilla.pick_next(context, prev),
            self.pls.pick_next(context, prev),
        );
        let weight = |pick| match pick {
            Pick::Task(task) => Some(worth[task.index()]),
            Pick::Idle | Pick::Retry => None,
        };
        assert_eq!(weight(first), weight(second), "{first:?} or {second:?}");
        assert_eq!(first == Pick::Retry, second == Pick::Retry);
        second
    }

    fn unlocked(&mut self, context: &mut Context<'_>) {
        self.both(|twin| twin.unlocked(context));
    }

    fn wants_put_prev(&self, prev: TaskId) -> bool {
        self.pls.wants_put_prev(prev)
    }

    fn put_prev(&mut self, context: &mut Context<'_>, prev: TaskId) {
        self.both(|twin| twin.put_prev(context, prev));
    }

    fn tick(&mut self, context: &mut Context<'_>, running: Option<TaskId>) {
        self.both(|twin| twin.tick(context, running));
    }

    fn yield_task(&mut self, context: &mut Context<'_>, task: TaskId) -> bool {
        let gives_way = self.vanilla.yield_task(context, task);
        assert_eq!(gives_way, self.pls.yield_task(context, task));
        gives_way
    }

    fn switched(&mut self, context: &mut Context<'_>, prev: Option<TaskId>, next: Option<TaskId>) {
        self.both(|twin| twin.switched(context, prev, next));
    }

    fn set_weight(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.both(|twin| twin.set_weight(context, task));
    }

    fn set_cpumask(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.both(|twin| twin.set_cpumask(context, task));
    }

    fn exit(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.both(|twin| twin.exit(context, task));
    }
}

fn play(script: &Script, cpus: usize) -> Ending {
    let text = builtin("p3xeon-8way").expect("a shipped machine");
    let mut machine = read_toml("p3xeon-8way.toml", text).expect("a sound machine");
    machine.cpus.truncate(cpus);
    let settings = Settings {
        caches: false,
        ..Settings::linux24(Seed(1))
    };
    let costs = Costs::new(machine.costs["linux-2.4"].clone());
    let twins: MakeScheduler = Box::new(|attach| Ok(Box::new(Twins::new(attach)?)));
    let kernel = Kernel::boot(&machine, &costs, settings, twins, script, ());
    let mut kernel = kernel.expect("the workload fits");
    kernel.run_until(Instant::START + Duration::from_ms(300))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn pls_picks_a_task_as_good_as_vanillas(script in scripts(), cpus in 1usize..5) {
        let ending = play(&script, cpus);
        prop_assert!(matches!(ending, Ending::WorkDone | Ending::TimeUp), "{ending}");
    }
}
