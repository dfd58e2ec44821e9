//! Autogroups of a scenario, as a scheduler sees them.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use warmq_config::Chosen;
use warmq_kernel::*;
use warmq_play::Counters;
use warmq_units::{CpuId, LockId, TaskId};

use crate::scenarios::story;
use crate::stage::*;

/// Groups by name and weight: of each task when it is born, and of each group whose weight changes.
/// Tables of tasks are known by their nice values.
#[derive(Default)]
struct Seen {
    born: Vec<(i8, (String, u32))>,
    changed: Vec<(String, u32)>,
}

/// One queue for one CPU, first come, first served.
struct Watching {
    lock: LockId,
    queue: VecDeque<TaskId>,
    seen: Rc<RefCell<Seen>>,
}

fn group(context: &Context<'_>, group: GroupId) -> (String, u32) {
    let group = context.group(group);
    (group.name.to_string(), group.weight)
}

impl Scheduler for Watching {
    fn lock_for(&self, _: CpuId) -> LockId {
        self.lock
    }
    fn fork(&mut self, context: &mut Context<'_>, _: Option<TaskId>, child: TaskId) {
        let view = context.task(child);
        let (nice, of) = (view.nice(), view.group());
        let of = group(context, of);
        self.seen.borrow_mut().born.push((nice, of));
    }
    fn enqueue(&mut self, _: &mut Context<'_>, task: TaskId, _: CpuId, _: Why) {
        self.queue.push_back(task);
    }
    fn wakeup_preempt(&mut self, context: &mut Context<'_>, _: TaskId, cpu: CpuId, _: Why) {
        if context.running_on(cpu).is_none() {
            context.reschedule(cpu);
        }
    }
    fn dequeue(&mut self, _: &mut Context<'_>, task: TaskId) {
        self.queue.retain(|queued| *queued != task);
    }
    fn pick_next(&mut self, context: &mut Context<'_>, prev: Option<TaskId>) -> Pick {
        let prev = prev.filter(|prev| context.task(*prev).is_runnable());
        self.queue.extend(prev);
        self.queue.pop_front().map_or(Pick::Idle, Pick::Task)
    }
    fn tick(&mut self, context: &mut Context<'_>, _: Option<TaskId>) {
        context.reschedule(context.cpu());
    }
    fn set_group_weight(&mut self, context: &mut Context<'_>, of: GroupId) {
        self.seen.borrow_mut().changed.push(group(context, of));
    }
    fn exit(&mut self, _: &mut Context<'_>, _: TaskId) {}
}

/// What the scheduler sees while `text` is played for 100 ms.
fn seen(text: &str) -> Seen {
    let seen = Rc::new(RefCell::new(Seen::default()));
    let log = seen.clone();
    let watching: MakeScheduler = Box::new(move |attach| {
        Ok(Box::new(Watching {
            lock: attach.lock("queue"),
            queue: VecDeque::new(),
            seen: log,
        }))
    });
    let entry = story(text);
    let chosen = Chosen::new(entry.settings(), BTreeMap::new()).expect("nothing is chosen");
    let workload = entry
        .build(&chosen, &stage(1).site(), &Counters::default())
        .expect("its defaults are sound");
    let start = |boot: &mut Boot<'_>| workload.start(boot);
    let (ending, kernel) = stage(1).promised_nothing().plays(watching, 100, start);
    assert_eq!(ending, Ending::WorkDone);
    drop(kernel);
    seen.take()
}

#[test]
fn an_autogroup_weighs_what_its_nice_value_does_and_is_inherited() {
    let text = r#"
        [group.desk]
        for = { n = 2 }
        autogroup = true
        nice = "10 * n - 5"
        [group.plain]
        autogroup = true
        [group.cgroup]
        weight = 70

        [task.first]
        nice = 1
        group = "desk[0]"
        times = 1
        body = [{ run = "1ms" }, { spawn = "thread" }, { fork = "child" }, { fork = "apart" }]
        [task.second]
        nice = 2
        group = "desk[1]"
        times = 1
        body = [{ run = "1ms" }]
        [task.third]
        nice = 3
        group = "plain"
        times = 1
        start = "30ms"
        body = [{ spawn = "thread" }]
        [task.free]
        nice = 4
        times = 1
        start = "40ms"
        body = [{ spawn = "thread" }]

        [task.thread]
        nice = 5
        spawned = true
        times = 1
        body = [{ run = "1ms" }, { fork = "child" }]
        [task.child]
        nice = 6
        spawned = true
        times = 1
        body = [{ run = "1ms" }]
        [task.apart]
        nice = 7
        spawned = true
        group = "cgroup"
        times = 1
        body = [{ run = "1ms" }]

        [[change]]
        at = "50ms"
        group = "desk"
        set = { nice = 1 }
        [[change]]
        at = "60ms"
        group = "cgroup"
        set = { weight = 7 }
        [task.last]
        times = 1
        start = "90ms"
        body = [{ run = "1ms" }]
    "#;
    let seen = seen(text);
    let groups = |table: i8| -> Vec<(&str, u32)> {
        let named = seen.born.iter().filter(|(nice, _)| *nice == table);
        let mut groups: Vec<_> = named
            .map(|(_, (name, weight))| (name.as_str(), *weight))
            .collect();
        groups.sort_unstable();
        groups
    };
    // The kernel's weights of nice -5 and 5 are 3121 and 335, of 1024 for nice 0.
    assert_eq!(groups(1), [("desk", 305)]);
    assert_eq!(groups(2), [("desk", 33)]);
    assert_eq!(groups(3), [("plain", 100)]);
    assert_eq!(groups(4), [("root", 100)]);
    let inherited = [("desk", 305), ("plain", 100), ("root", 100)];
    assert_eq!(groups(5), inherited);
    assert_eq!(groups(6), [&inherited[..1], &inherited].concat());
    assert_eq!(groups(7), [("cgroup", 70)]);
    let name = |group: &str| group.to_owned();
    let changed = [(name("desk"), 80), (name("desk"), 80), (name("cgroup"), 7)];
    assert_eq!(seen.changed, changed);
}
