//! Machines of several memory nodes, and CPUs of unlike capacity: who goes where, and when.

use super::*;

const MS: u64 = 1_000_000;

/// Nodes of `caches` of `cpus` each.
fn nodes(nodes: u32, caches: u32, cpus: u32) -> Machine {
    let all = 0..nodes * caches * cpus;
    Machine {
        domain_of: all.clone().map(|cpu| cpu / cpus).collect(),
        core_of: all.clone().collect(),
        node_of: all.map(|cpu| cpu / cpus / caches).collect(),
        ..Machine::default()
    }
}

/// Who runs where.
struct Play {
    program: Program,
    running: Vec<Option<u32>>,
    now: u64,
}

/// Nobody preempts whoever runs, which is not what these tests are about.
fn policy() -> Policy {
    Policy {
        preempt_interval: 1 << 60,
        ..Policy::default()
    }
}

impl Play {
    fn on(machine: &Machine) -> Play {
        Play {
            program: Program::load(machine, policy()),
            running: vec![None; machine.domain_of.len()],
            now: 1_000_000 * MS,
        }
    }

    /// A task is made that was last on `prev` and may run on `allowed`.
    fn born(&mut self, task: u32, prev: u32, allowed: u64) {
        let birth = Birth {
            parent: None,
            weight: 100,
            allowed,
            cgroup: 0,
        };
        self.program.fork(task, birth, prev, self.now);
    }

    /// It wakes. Returns the CPU that runs it then, if one does.
    fn woken(&mut self, task: u32, prev: u32, waker: Waker) -> Option<u32> {
        let (cpus, how) = ((prev, prev), (waker, false));
        let cpu = self.program.select(task, cpus, how, self.now);
        let kicks = self.program.enqueue(task, (prev, cpu), waker, self.now);
        self.obey(kicks);
        self.cpu_of(task)
    }

    fn starts(&mut self, task: u32, prev: u32) -> Option<u32> {
        self.born(task, prev, u64::MAX);
        self.woken(task, prev, Waker::Interrupt)
    }

    fn cpu_of(&self, task: u32) -> Option<u32> {
        let at = self
            .running
            .iter()
            .position(|running| *running == Some(task));
        at.map(|cpu| cpu as u32)
    }

    fn obey(&mut self, kicks: Kicks) {
        for cpu in (kicks.idle | kicks.preempted).iter() {
            self.pick(cpu);
        }
    }

    fn pick(&mut self, cpu: u32) -> Option<u32> {
        self.running[cpu as usize] = self.program.pick(cpu, self.now);
        let kicks = self.program.kicks();
        self.obey(kicks);
        self.running[cpu as usize]
    }

    /// The task of a CPU sleeps. Returns the next.
    fn sleeps(&mut self, cpu: u32) -> Option<u32> {
        let task = self.running[cpu as usize].take().expect("one runs there");
        self.program.sleep(task, cpu, false, self.now);
        self.pick(cpu)
    }

    /// `ms` later; ticks come every 4 ms, the timer every 10.
    fn passes(&mut self, ms: u64) {
        for _ in 0..ms {
            self.now += MS;
            if (self.now / MS).is_multiple_of(4) {
                (0..self.running.len() as u32).for_each(|cpu| self.tick(cpu));
            }
            if (self.now / MS).is_multiple_of(10) {
                let kicks = self.program.timer(0, self.now);
                self.obey(kicks);
            }
        }
    }

    fn tick(&mut self, cpu: u32) {
        if self.running[cpu as usize].is_some() && self.program.tick(cpu, self.now) {
            self.pick(cpu);
        }
    }

    fn busy(&self, cpus: std::ops::Range<usize>) -> usize {
        self.running[cpus].iter().flatten().count()
    }
}

/// Two nodes of two caches of two CPUs; the first node is full.
fn beside_an_idle_node() -> Play {
    let mut play = Play::on(&nodes(2, 2, 2));
    let cpus: Vec<_> = (0..4).map(|task| play.starts(task, 0)).collect();
    assert_eq!(cpus, [0, 1, 2, 3].map(Some), "the cache, then the node");
    play
}

#[test]
fn a_task_that_wakes_stays_in_its_node_while_few_wait() {
    let mut play = beside_an_idle_node();
    assert_eq!([4, 5].map(|task| play.starts(task, 0)), [None, None]);
    assert_eq!(play.busy(4..8), 0);
    // A third one waits for two CPUs.
    play.starts(6, 0);
    assert_eq!((play.busy(4..8), play.running[4].is_some()), (1, true));
    // And so does one that wakes then, as long as three wait.
    assert_eq!(play.starts(7, 0), None);
    assert_eq!(play.busy(4..8), 2);
}

#[test]
fn a_task_that_wakes_where_many_wait_runs_elsewhere_at_once() {
    let machine = nodes(2, 1, 1);
    let mut play = Play::on(&machine);
    (0..2).for_each(|task| assert!(play.starts(task, task).is_some()));
    (2..5).for_each(|task| assert_eq!(play.starts(task, 0), None));
    assert_eq!(play.sleeps(1), Some(2), "three waited for one CPU");
    assert_eq!(play.sleeps(1), Some(3), "two did");
    assert_eq!(play.sleeps(1), None, "only one does");
}

#[test]
fn a_new_task_has_no_memory_and_goes_to_any_node() {
    let mut play = beside_an_idle_node();
    play.born(4, 0, u64::MAX);
    assert_eq!(play.woken(4, 0, Waker::Fork), Some(4));
    // It has some then.
    play.program.sleep(4, 4, false, play.now);
    play.running[4] = play.program.pick(4, play.now);
    assert_eq!(play.woken(4, 0, Waker::Interrupt), None);
}

/// Not only those that wait at first: whoever lost its CPU since waits as well.
#[test]
fn no_task_waits_beside_an_idle_node_for_longer_than_patience_and_two_rounds() {
    let mut play = beside_an_idle_node();
    play.now += 5 * MS; // between two rounds of the timer
    assert_eq!(play.starts(4, 0), None);
    play.passes(24);
    assert_eq!(play.busy(0..8), 4, "a CPU has idled beside it for 19 ms");
    play.passes(10);
    assert_eq!((play.busy(0..4), play.busy(4..8)), (4, 1));
    play.passes(100);
    assert_eq!((play.busy(0..4), play.busy(4..8)), (4, 1));
}

/// CPUs without ticks queue nobody again, and look no more. Node 2 is nearer to node 0 than node 1
/// is.
#[test]
fn the_timer_wakes_a_cpu_of_the_nearest_node_when_patience_is_over() {
    let mut machine = nodes(3, 1, 1);
    machine.distances = vec![vec![10, 32, 12], vec![32, 10, 32], vec![12, 32, 10]];
    let mut play = Play::on(&machine);
    (0..3).for_each(|cpu| assert_eq!(play.starts(cpu, cpu), Some(cpu)));
    assert_eq!(play.starts(3, 0), None);
    assert_eq!([1, 2].map(|cpu| play.sleeps(cpu)), [None, None]);
    let mut woken = || {
        let kicks = play.program.timer(0, play.now);
        play.now += 10 * MS;
        kicks.idle
    };
    assert_eq!(woken(), 0);
    assert_eq!(woken(), 0);
    assert_eq!(woken(), 1 << 2);
    assert_eq!(play.pick(2), Some(3));
}

/// No CPU idles. Four tasks share the two CPUs of a cache, beside two that have two; both nodes are
/// alike in that.
#[test]
fn the_timer_balances_between_the_caches_of_each_node() {
    for busy in [0, 4] {
        let mut play = Play::on(&nodes(2, 2, 2));
        (0..8).for_each(|cpu| assert_eq!(play.starts(cpu, cpu), Some(cpu)));
        (8..10).for_each(|task| assert_eq!(play.starts(task, busy), None));
        let mut ran = [[false; 10]; 8];
        for _ in 0..200 {
            play.passes(1);
            for (cpu, task) in play.running.iter().enumerate() {
                ran[cpu][task.expect("no CPU idles") as usize] = true;
            }
        }
        for (cpu, tasks) in ran.iter().enumerate() {
            let of_busy = tasks[8] || tasks[9] || tasks[busy as usize] || tasks[busy as usize + 1];
            assert_eq!(
                of_busy,
                cpu / 4 == busy as usize / 4,
                "{busy}, {cpu}: {tasks:?}"
            );
        }
    }
}

/// It would take one task after the other from a node that has no less to do.
#[test]
fn a_node_that_is_as_busy_gives_nothing_however_long_its_tasks_wait() {
    let mut play = beside_an_idle_node();
    (4..8).for_each(|task| assert!(play.starts(task, 4).is_some()));
    play.starts(8, 0);
    play.passes(200);
    let sleeper = play.running[7].expect("all CPUs are busy");
    assert_eq!(play.sleeps(7), None);
    assert_eq!(play.woken(sleeper, 7, Waker::Interrupt), Some(7));
}

#[test]
fn a_queue_that_was_empty_or_beside_no_idle_cpu_begins_to_wait_anew() {
    let mut play = beside_an_idle_node();
    play.now += 5 * MS;
    play.starts(4, 0);
    play.passes(14);
    // For two rounds none idles.
    (5..9).for_each(|task| assert!(play.starts(task, 4).is_some()));
    play.passes(20);
    (4..8).for_each(|cpu| assert_eq!(play.sleeps(cpu), None));
    play.passes(14);
    assert_eq!(play.busy(4..8), 0);
    play.passes(20);
    assert_eq!(play.busy(4..8), 1);
}

/// Four nodes of two caches of one CPU. Node 0 is near to node 2, then 3, then 1.
#[test]
fn an_idle_cpu_takes_what_waits_in_its_node_and_then_in_the_nearest() {
    let mut machine = nodes(4, 2, 1);
    machine.distances = vec![
        vec![10, 32, 12, 22],
        vec![32, 10, 32, 32],
        vec![12, 32, 10, 22],
        vec![22, 32, 22, 10],
    ];
    let mut play = Play::on(&machine);
    (0..8).for_each(|cpu| assert_eq!(play.starts(cpu, cpu), Some(cpu)));
    // Three wait for each of the others; of those of another node, two come.
    for cpu in 1..8 {
        (1..=3).for_each(|number| assert_eq!(play.starts(cpu + 10 * number, cpu), None));
    }
    let from: Vec<u32> = std::iter::from_fn(|| play.sleeps(0))
        .map(|task| task % 10)
        .collect();
    assert_eq!(from, [1, 1, 1, 4, 4, 5, 5, 6, 6, 7, 7, 2, 2, 3, 3]);
}

#[test]
fn who_may_not_run_everywhere_at_home_goes_to_any_node_at_once() {
    let mut play = beside_an_idle_node();
    play.born(4, 0, 1 | 1 << 6);
    assert_eq!(play.woken(4, 0, Waker::Interrupt), Some(6));
    // Who may waits with the others.
    play.born(5, 0, 0b11 | 1 << 7);
    assert_eq!(play.woken(5, 0, Waker::Interrupt), None);
}

/// The tasks of a group run where it lives.
fn names(play: &mut Play, task: u32, hint: u64) -> u32 {
    let cpu = play.starts(task, 0).expect("a CPU idles");
    if play.program.hint(cpu, hint, play.now) {
        play.pick(cpu);
    }
    play.cpu_of(task).expect("a CPU idles at its home")
}

#[test]
fn new_groups_live_in_their_node_until_all_its_cpus_have_work() {
    let mut play = Play::on(&nodes(2, 2, 2));
    let homes = [1, 2, 3, 4].map(|hint| names(&mut play, hint, hint.into()) / 2);
    assert_eq!(homes, [0, 1, 2, 3]);
}

/// A member of a group wakes.
fn joins(play: &mut Play, task: u32, hint: u64) -> Option<u32> {
    play.born(task, 0, u64::MAX);
    play.program.write_slot(task, hint);
    play.woken(task, 0, Waker::Interrupt)
}

#[test]
fn a_group_leaves_its_node_after_patience() {
    let mut play = Play::on(&nodes(2, 2, 2));
    let homes = [1, 2].map(|hint| names(&mut play, hint, hint.into()) / 2);
    assert_eq!(homes, [0, 1]);
    joins(&mut play, 3, 1);
    joins(&mut play, 4, 2);
    assert_eq!(joins(&mut play, 5, 2), None, "a third task of two CPUs");
    play.passes(19);
    assert_eq!((play.busy(0..4), play.busy(4..8)), (4, 0));
    play.passes(31);
    assert!(play.busy(4..8) > 0, "{:?}", play.running);
}

/// No CPU idles. What is too much for a node is more than a cache has CPUs.
#[test]
fn the_timer_balances_between_nodes_where_many_wait() {
    for (waiting, goes) in [(2, false), (3, true)] {
        let mut play = Play::on(&nodes(2, 1, 2));
        (0..4).for_each(|cpu| assert_eq!(play.starts(cpu, cpu), Some(cpu)));
        (4..4 + waiting).for_each(|task| assert_eq!(play.starts(task, 0), None));
        let mut others = 0;
        for _ in 0..100 {
            play.passes(1);
            others += play.running[2..]
                .iter()
                .flatten()
                .filter(|running| ![2, 3].contains(*running))
                .count();
        }
        assert_eq!(others > 0, goes, "{waiting} wait");
    }
}

/// Two nodes of two CPUs; a group has those of the first, and so many tasks of another wait there,
/// and of none. What an idle CPU of the second node takes.
fn taken_of(waiting: u32, unmanaged: u32) -> Option<u32> {
    let mut play = Play::on(&nodes(2, 1, 2));
    assert_eq!(names(&mut play, 1, 1), 0);
    play.passes(25); // it is no newcomer any more
    assert_eq!(names(&mut play, 2, 2), 1);
    assert_eq!(play.sleeps(1), None);
    assert_eq!(joins(&mut play, 3, 1), Some(1));
    for task in 4..4 + waiting {
        assert_eq!(joins(&mut play, task, 2), None);
    }
    for task in 20..20 + unmanaged {
        assert_eq!(play.starts(task, 0), None);
    }
    play.pick(2)
}

#[test]
fn a_group_that_lets_many_wait_leaves_its_node_at_once() {
    assert_eq!(taken_of(2, 0), None);
    assert!(taken_of(3, 0).is_some_and(|task| task < 20));
}

#[test]
fn what_waits_beside_groups_stays_in_its_node_as_well() {
    assert_eq!(taken_of(1, 1), None);
    assert_eq!(taken_of(1, 2), None);
}

/// The other node idles, and would be a better home still.
#[test]
fn an_idle_cpu_takes_a_group_of_its_node() {
    let mut play = Play::on(&nodes(2, 2, 2));
    assert_eq!(
        [2, 3].map(|cpu| play.starts(cpu + 10, cpu)),
        [Some(2), Some(3)]
    );
    assert_eq!(names(&mut play, 1, 1) / 2, 0);
    play.passes(25); // it is no newcomer any more
    assert_eq!(names(&mut play, 2, 2), 1);
    assert_eq!(play.sleeps(1), None);
    assert_eq!(joins(&mut play, 3, 1), Some(1));
    assert_eq!(joins(&mut play, 4, 2), None);
    assert_eq!(play.sleeps(3), Some(4));
}

#[test]
fn a_core_is_left_for_another_node_late_only() {
    let mut machine = nodes(2, 1, 2);
    machine.core_of = vec![0, 0, 1, 1];
    let mut play = Play::on(&machine);
    assert_eq!([play.starts(0, 0), play.starts(1, 1)], [Some(0), Some(1)]);
    play.passes(190);
    assert_eq!(play.busy(0..2), 2);
    play.passes(30);
    assert_eq!((play.busy(0..2), play.busy(2..4)), (1, 1));
}

/// A cache of four CPUs; the last two are fast.
fn unlike() -> Machine {
    Machine {
        fast: vec![false, false, true, true],
        ..nodes(1, 1, 4)
    }
}

#[test]
fn fast_cpus_are_taken_first_and_the_previous_one_of_equals() {
    let mut play = Play::on(&unlike());
    assert_eq!(play.starts(0, 3), Some(3), "the previous one is fast");
    assert_eq!(play.starts(1, 1), Some(2), "it is not");
    assert_eq!(play.starts(2, 1), Some(1), "no fast one idles");
    assert_eq!(play.starts(3, 1), Some(0));
}

#[test]
fn fast_cpus_are_woken_first_for_what_waits() {
    let mut play = Play::on(&unlike());
    play.born(0, 0, u64::MAX);
    // It is queued without having been woken, as when its nice value changes.
    let kicks = play.program.enqueue(0, (0, 0), Waker::Interrupt, play.now);
    assert_eq!(kicks.idle, 1 << 2);
    // That CPU does not look. The timer wakes another.
    assert_eq!(play.program.timer(1, play.now).idle, 1 << 3);
}

#[test]
fn a_fast_core_comes_before_a_slow_one_and_that_before_half_a_core() {
    let mut machine = nodes(1, 1, 6);
    // Fast CPUs 0 and 1 are a core, and so are 2 and 3; 4 and 5 are slow.
    machine.core_of = vec![0, 0, 1, 1, 2, 3];
    machine.fast = vec![true, true, true, true, false, false];
    let mut play = Play::on(&machine);
    let starts = (0..6).map(|task| play.starts(task, 4).expect("all idle"));
    let cores: Vec<u32> = starts.map(|cpu| machine.core_of[cpu as usize]).collect();
    // Which of equals comes first is the kernel's.
    let mut fast = [cores[0], cores[1]];
    fast.sort_unstable();
    assert_eq!((fast, &cores[2..4]), ([0, 1], &[2, 3][..]));
    assert!(cores[4..].iter().all(|core| *core < 2));
}
