//! What holds of the trees after every callback, over random scripts.

use std::collections::BTreeMap;

use proptest::prelude::*;
use warmq_config::{Chosen, Value};
use warmq_kernel::{
    Attach, Balance, Boot, Callback, Context, Costs, Ending, GroupId, Kernel, MakeScheduler, Pick,
    Scheduler, Settings, UnknownCost, Why,
};
use warmq_machine::{OutOfMemory, builtin, read_toml};
use warmq_random::{Script, scripts};
use warmq_units::{CpuId, Duration, Instant, LockId, Seed, TaskId};

use super::state::{Class, State, What};
use super::{Cfs, settings};

/// CFS, looked at after every callback.
struct Watched {
    cfs: Cfs,
    min_vruntimes: Vec<i64>,
}

impl Watched {
    fn new(attach: &mut Attach<'_>, groups: &str) -> Result<Watched, UnknownCost> {
        let set = BTreeMap::from([
            ("groups".to_owned(), Value::Text(groups.into())),
            ("group_levels".to_owned(), Value::Integer(2)),
        ]);
        let chosen = Chosen::new(settings(), set).expect("settings that it has");
        let cfs = Cfs::new(&chosen, attach)?;
        Ok(Watched {
            cfs,
            min_vruntimes: Vec::new(),
        })
    }

    fn then<T>(&mut self, callback: impl FnOnce(&mut Cfs) -> T) -> T {
        let answer = callback(&mut self.cfs);
        let state = &self.cfs.state;
        self.min_vruntimes.resize(state.queues.len(), i64::MIN);
        for (queue, before) in state.queues.iter().zip(&mut self.min_vruntimes) {
            assert!(queue.min_vruntime >= *before, "min_vruntime never falls");
            *before = queue.min_vruntime;
        }
        queues_add_up(state);
        cpus_add_up(state);
        answer
    }
}

/// The trees are in order, hold what belongs there, and weigh what is in them.
fn queues_add_up(state: &State) {
    for (id, queue) in state.queues.iter().enumerate() {
        let current = queue
            .current
            .filter(|current| state.entities[*current].queued);
        let members: Vec<usize> = queue.tree.iter().chain(current).collect();
        for entity in &members {
            assert_eq!(state.entities[*entity].queue, id, "in its own queue");
            assert!(state.entities[*entity].queued);
        }
        let waiting: Vec<i64> = queue
            .tree
            .iter()
            .map(|entity| state.entities[entity].vruntime)
            .collect();
        assert!(waiting.is_sorted(), "by vruntime: {waiting:?}");
        let weights = members.iter().map(|member| state.entities[*member].weight);
        let weight: u64 = weights.sum();
        assert_eq!(
            (queue.weight, queue.running),
            (weight, members.len() as u64)
        );
        if let Some(owner) = queue.owner {
            assert_eq!(
                state.entities[owner].queued,
                queue.running > 0,
                "a group waits if one does"
            );
        }
    }
}

/// Every queued task is in one place, and counts there.
fn cpus_add_up(state: &State) {
    for (number, cpu) in state.cpus.iter().enumerate() {
        let mut found: Vec<TaskId> = cpu.realtime.iter().collect();
        for queue in state
            .queues
            .iter()
            .filter(|queue| queue.cpu.index() == number)
        {
            let current = queue
                .current
                .filter(|current| state.entities[*current].queued);
            let tasks = queue.tree.iter().chain(current);
            found.extend(
                tasks.filter_map(|entity| match state.entities[entity].what {
                    What::Task(task) => Some(task),
                    What::Group(_) => None,
                }),
            );
        }
        found.sort_unstable();
        let known = (0..state.tasks.len() as u32).map(TaskId);
        let queued: Vec<TaskId> = known
            .filter(|task| {
                let task = &state.tasks[task.index()];
                task.queued && task.cpu.index() == number
            })
            .collect();
        assert_eq!(found, queued, "no task is lost or doubled");
        let weights = queued
            .iter()
            .map(|task| state.entities[state.entity_of(*task)].weight);
        assert_eq!(
            (cpu.running, cpu.load),
            (queued.len() as u64, weights.sum())
        );
        if let Some(current) = cpu.current {
            let task = &state.tasks[current.index()];
            assert!(
                !task.queued || task.cpu.index() == number,
                "{current} runs where it is"
            );
            let entity = &state.entities[task.entity];
            let has_it = state.queues[entity.queue].current == Some(task.entity);
            assert!(!task.queued || task.class == Class::RealTime || has_it);
        }
    }
}

impl Scheduler for Watched {
    fn lock_for(&self, cpu: CpuId) -> LockId {
        self.cfs.lock_for(cpu)
    }
    fn queues(&self, callback: Callback<'_>, cpu: CpuId) -> [Option<CpuId>; 2] {
        self.cfs.queues(callback, cpu)
    }
    fn fork(&mut self, context: &mut Context<'_>, parent: Option<TaskId>, child: TaskId) {
        self.then(|cfs| cfs.fork(context, parent, child));
    }
    fn select_cpu(&mut self, context: &mut Context<'_>, task: TaskId, why: Why) -> CpuId {
        self.then(|cfs| cfs.select_cpu(context, task, why))
    }
    fn exec_cpu(&mut self, context: &mut Context<'_>, task: TaskId) -> CpuId {
        self.then(|cfs| cfs.exec_cpu(context, task))
    }
    fn enqueue(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, why: Why) {
        self.then(|cfs| cfs.enqueue(context, task, cpu, why));
    }
    fn wakeup_preempt(&mut self, context: &mut Context<'_>, task: TaskId, cpu: CpuId, why: Why) {
        self.then(|cfs| cfs.wakeup_preempt(context, task, cpu, why));
    }
    fn dequeue(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.then(|cfs| cfs.dequeue(context, task));
    }
    fn pick_next(&mut self, context: &mut Context<'_>, prev: Option<TaskId>) -> Pick {
        self.then(|cfs| cfs.pick_next(context, prev))
    }
    fn wants_put_prev(&self, prev: TaskId) -> bool {
        self.cfs.wants_put_prev(prev)
    }
    fn put_prev(&mut self, context: &mut Context<'_>, prev: TaskId) {
        self.then(|cfs| cfs.put_prev(context, prev));
    }
    fn tick(&mut self, context: &mut Context<'_>, running: Option<TaskId>) {
        self.then(|cfs| cfs.tick(context, running));
    }
    fn yield_task(&mut self, context: &mut Context<'_>, task: TaskId) -> bool {
        self.then(|cfs| cfs.yield_task(context, task))
    }
    fn set_weight(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.then(|cfs| cfs.set_weight(context, task));
    }
    fn set_cpumask(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.then(|cfs| cfs.set_cpumask(context, task));
    }
    fn cpu_offline(&mut self, context: &mut Context<'_>, cpu: CpuId) {
        self.then(|cfs| cfs.cpu_offline(context, cpu));
    }
    fn balance(&mut self, context: &mut Context<'_>, when: Balance) -> Option<CpuId> {
        self.then(|cfs| cfs.balance(context, when))
    }
    fn pull(&mut self, context: &mut Context<'_>, from: CpuId, when: Balance) {
        self.then(|cfs| cfs.pull(context, from, when));
    }
    fn set_group_weight(&mut self, context: &mut Context<'_>, group: GroupId) {
        self.then(|cfs| cfs.set_group_weight(context, group));
    }
    fn exit(&mut self, context: &mut Context<'_>, task: TaskId) {
        self.then(|cfs| cfs.exit(context, task));
    }
}

/// Changes of group, weight and nice value that operators make during a script, at so many ms.
#[derive(Clone, Debug)]
struct Changes(Vec<(u64, u32, usize, u32)>);

fn play(script: &Script, cpus: usize, groups: &'static str, changes: &Changes) -> Ending {
    let text = builtin("p3xeon-8way").expect("a shipped machine");
    let mut machine = read_toml("p3xeon-8way.toml", text).expect("a sound machine");
    machine.cpus.truncate(cpus);
    for (number, place) in machine.cpus.iter_mut().enumerate() {
        (place.core, place.llc) = (number as u16 / 2, number as u16 / 4);
    }
    let settings = Settings {
        caches: false,
        ..Settings::linux2624(Seed(1))
    };
    let costs = Costs::new(machine.costs["linux-2.4"].clone());
    let watched: MakeScheduler =
        Box::new(move |attach| Ok(Box::new(Watched::new(attach, groups)?)));
    let workload = |boot: &mut Boot<'_>| -> Result<(), OutOfMemory> {
        script.start_with(boot)?;
        let outer = boot.group(GroupId::ROOT, "outer", 50);
        let inner = boot.group(outer, "inner", 300);
        let all = [GroupId::ROOT, outer, inner];
        for (at, task, group, weight) in changes.0.clone() {
            let (task, group) = (TaskId(task % script.parts.len() as u32), all[group]);
            boot.operator(
                Instant::START + Duration::from_ms(at),
                move |operator| async move {
                    operator
                        .change(warmq_kernel::Change::Group(task, group))
                        .await;
                    operator
                        .change(warmq_kernel::Change::Weight(group, weight))
                        .await;
                    let nice = (weight % 40) as i8 - 20;
                    operator
                        .change(warmq_kernel::Change::Nice(task, nice))
                        .await;
                },
            );
        }
        Ok(())
    };
    let kernel = Kernel::boot(&machine, &costs, settings, watched, &workload, ());
    let mut kernel = kernel.expect("the workload fits");
    kernel.run_until(Instant::START + Duration::from_ms(300))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn trees_are_in_order_and_nobody_is_lost_or_doubled(
        script in scripts(),
        cpus in 1usize..9,
        groups in prop::sample::select(vec!["off", "on"]),
        changes in prop::collection::vec((0u64..250, 0u32..8, 0usize..3, 1u32..500), 0..8),
    ) {
        let ending = play(&script, cpus, groups, &Changes(changes));
        prop_assert!(matches!(ending, Ending::WorkDone | Ending::TimeUp), "{ending}");
    }
}
