//! The online algorithm on an instance: what becomes of it if every decision is made by the rules,
//! when it has to be made, by somebody who does not know how long a run is.

use std::collections::VecDeque;

use warmq_units::TaskId;

use crate::cpu::Cpu;
use crate::model::{FragmentId, Instance, Run};
use crate::rules::{Balancing, Groups, Members, Move, Place, Reference, View, balance, succession};
use crate::schedule::Schedule;

/// What the paper leaves open, as far as time comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Units between two looks at the balance; from 1. A CPU that goes idle looks at once.
    pub balance_every: u64,
    /// When a look finds something.
    pub balancing: Balancing,
}

impl Policy {
    /// Looks in a row that must find nothing to move before a group is split. The paper has no
    /// number.
    pub const SPLIT_AFTER: u32 = 4;

    /// The usual policy on `instance`. A busy CPU of Linux 2.6.4 balances every 200 ms, beside
    /// slices of 102 ms: here every two mean runs.
    pub fn usual(instance: &Instance) -> Policy {
        let runs = || instance.tasks.iter().flat_map(|task| &task.runs);
        let total: u64 = runs().map(|run| run.length).sum();
        Policy {
            balance_every: (2 * total).div_ceil(runs().count() as u64),
            balancing: Balancing {
                reference: Reference::Busiest,
                percent: 25,
                split_after: Some(Policy::SPLIT_AFTER),
            },
        }
    }
}

/// What the online algorithm makes of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Online {
    /// Who ran where and when.
    pub schedule: Schedule,
    /// What it took.
    pub counts: Counts,
}

/// How often what was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Groups moved as a whole.
    pub groups_moved: u64,
    /// Unmanaged tasks moved.
    pub unmanaged_moved: u64,
    /// Groups split.
    pub splits: u64,
    /// Changes of a task's fragment.
    pub changes: u64,
}

/// Runs `instance` by the rules.
pub fn online(instance: &Instance, policy: &Policy) -> Online {
    let mut play = Play::new(instance, policy);
    play.start();
    while play.running.iter().any(Option::is_some) {
        play.advance();
    }
    Online {
        schedule: Cpu::finish(play.cpus),
        counts: play.counts,
    }
}

/// A task and which of its runs.
type Turn = (TaskId, usize);

struct Play<'a> {
    instance: &'a Instance,
    policy: &'a Policy,
    cpus: Vec<Cpu<'a>>,
    groups: Groups<FragmentId, TaskId>,
    // Each CPU's run queue, in order. Invariant: a task with a fragment waits, and runs, where its
    // group is.
    waiting: Vec<VecDeque<Turn>>,
    running: Vec<Option<Turn>>,
    /// The fragment of each CPU's last managed run, whose group is in succession.
    last: Vec<Option<FragmentId>>,
    /// Of each CPU, the looks in a row that found nothing to move.
    stuck: Vec<u32>,
    now: u64,
    next_look: u64,
    counts: Counts,
}

impl<'a> Play<'a> {
    fn new(instance: &'a Instance, policy: &'a Policy) -> Play<'a> {
        let cpus = Cpu::all(instance);
        let (now, count) = (cpus[0].free_at, cpus.len());
        Play {
            instance,
            policy,
            cpus,
            groups: Groups::default(),
            waiting: vec![VecDeque::new(); count],
            running: vec![None; count],
            last: vec![None; count],
            stuck: vec![0; count],
            now,
            next_look: now + policy.balance_every,
            counts: Counts::default(),
        }
    }

    fn fragment(&self, (task, nth): Turn) -> Option<FragmentId> {
        self.run(task, nth).fragment
    }

    fn run(&self, task: TaskId, nth: usize) -> &'a Run {
        &self.instance.task(task).runs[nth]
    }

    /// All tasks become ready in their order, while the first, which created them, still runs.
    fn start(&mut self) {
        let first = self.instance.first.map(|first| (first, 0));
        if let Some(turn) = first {
            // No CPU has a task yet, so this is CPU 0.
            self.place(turn, 0);
            self.running[0] = self.waiting[0].pop_front();
            self.last[0] = self.fragment(turn);
        }
        for (task, _) in self.instance.ready() {
            self.place((task, 0), 0);
        }
        if let Some((task, _)) = first {
            self.groups.leave(task);
            self.running[0] = None;
        }
        self.fill_cpus();
    }

    /// How many tasks each CPU has.
    fn tasks(&self) -> Vec<u32> {
        let both = self.waiting.iter().zip(&self.running);
        let tasks = both.map(|(waiting, running)| waiting.len() + usize::from(running.is_some()));
        tasks.map(|count| count as u32).collect()
    }

    /// Queues a task that starts or changes its fragment on CPU `here`. An unmanaged one stays
    /// there, as a child stays on its parent's CPU in Linux 2.6.4.
    fn place(&mut self, turn: Turn, here: usize) {
        let cpu = match self.fragment(turn) {
            Some(fragment) => {
                let tasks = self.tasks();
                self.groups.join(turn.0, fragment, &tasks).index()
            }
            None => {
                self.groups.leave(turn.0);
                here
            }
        };
        self.waiting[cpu].push_back(turn);
    }

    /// Goes on to the next time at which something happens.
    fn advance(&mut self) {
        let busy = self.cpus.iter().zip(&self.running);
        let ends = busy.filter_map(|(cpu, running)| running.map(|_| cpu.free_at));
        let end = ends.min().unwrap_or(self.next_look);
        self.now = end.min(self.next_look);
        for cpu in 0..self.cpus.len() {
            if self.cpus[cpu].free_at == self.now && self.running[cpu].is_some() {
                self.end_run(cpu);
            }
        }
        if self.now == self.next_look {
            (0..self.cpus.len()).for_each(|cpu| self.look(cpu, true));
            self.next_look += self.policy.balance_every;
        }
        self.fill_cpus();
    }

    /// The task on `cpu` exits, goes on waiting, or changes its fragment.
    fn end_run(&mut self, cpu: usize) {
        let Some((task, nth)) = self.running[cpu] else {
            return;
        };
        let next = (task, nth + 1);
        if next.1 == self.instance.task(task).runs.len() {
            self.groups.leave(task);
        } else if self.fragment(next) == self.fragment((task, nth)) {
            self.waiting[cpu].push_back(next);
        } else {
            self.counts.changes += 1;
            self.place(next, cpu);
        }
        self.running[cpu] = None;
    }

    /// Lets every free CPU run what waits there; those that have nothing look for something.
    fn fill_cpus(&mut self) {
        (0..self.cpus.len()).for_each(|cpu| self.pick(cpu));
        for cpu in 0..self.cpus.len() {
            if self.running[cpu].is_none() {
                self.look(cpu, false);
                self.pick(cpu);
            }
        }
    }

    fn pick(&mut self, cpu: usize) {
        if self.running[cpu].is_some() {
            return;
        }
        let fragments = self.waiting[cpu].iter().map(|turn| self.fragment(*turn));
        let Some(index) = succession(fragments, self.last[cpu]) else {
            return;
        };
        let turn = self.waiting[cpu].remove(index).expect("it waits there");
        let run = self.run(turn.0, turn.1);
        self.cpus[cpu].run(self.now, turn.0, run);
        self.running[cpu] = Some(turn);
        // An unmanaged task leaves the cache as it is.
        self.last[cpu] = run.fragment.or(self.last[cpu]);
    }

    /// Lets `cpu` look at the balance and pull. Only looks by the timer make an imbalance last.
    fn look(&mut self, cpu: usize, by_timer: bool) {
        let tasks = self.tasks();
        let others = tasks.iter().enumerate().filter(|(other, _)| *other != cpu);
        let Some((busiest, _)) = others.max_by_key(|(other, tasks)| (**tasks, usize::MAX - other))
        else {
            return;
        };
        let (own, theirs) = (self.view(cpu), self.view(busiest));
        let balancing = &self.policy.balancing;
        match balance(balancing, &own, &theirs, self.stuck[cpu]) {
            Move::Stuck => {
                self.stuck[cpu] += u32::from(by_timer);
                return;
            }
            Move::Nothing => {}
            Move::Group(fragment) => self.pull_group(fragment, busiest, cpu),
            Move::Unmanaged(count) => {
                self.counts.unmanaged_moved += u64::from(count);
                self.pull(None, count as usize, busiest, cpu);
            }
            Move::Split(fragment, count) => self.split(fragment, count as usize, busiest, cpu),
        }
        self.stuck[cpu] = 0;
    }

    fn pull_group(&mut self, fragment: FragmentId, from: usize, to: usize) {
        self.counts.groups_moved += 1;
        let places = [from, to].map(|cpu| Place(cpu as u16));
        self.groups.shift(fragment, places[0], places[1]);
        self.pull(Some(fragment), usize::MAX, from, to);
    }

    fn split(&mut self, fragment: FragmentId, count: usize, from: usize, to: usize) {
        self.counts.splits += 1;
        for (task, _) in self.pull(Some(fragment), count, from, to) {
            self.groups.split(task, Place(to as u16));
        }
    }

    /// Moves the last `count` of those that wait with `fragment`; they keep their order.
    fn pull(
        &mut self,
        fragment: Option<FragmentId>,
        count: usize,
        from: usize,
        to: usize,
    ) -> Vec<Turn> {
        let (theirs, others): (Vec<Turn>, Vec<Turn>) = self.waiting[from]
            .iter()
            .partition(|turn| self.fragment(**turn) == fragment);
        let stay = theirs.len().saturating_sub(count);
        let (stay, moved) = theirs.split_at(stay);
        self.waiting[from].retain(|turn| others.contains(turn) || stay.contains(turn));
        self.waiting[to].extend(moved);
        moved.to_vec()
    }

    fn view(&self, cpu: usize) -> View<FragmentId> {
        let running = self.running[cpu];
        let mut groups: Vec<Members<FragmentId>> = Vec::new();
        let mut view = View {
            groups: Vec::new(),
            unmanaged: 0,
            unmanaged_bound: 0,
        };
        let waiting = self.waiting[cpu].iter().map(|turn| (*turn, 1, 0));
        let all = waiting.chain(running.map(|turn| (turn, 0, 1)));
        for (turn, waiting, bound) in all {
            let Some(fragment) = self.fragment(turn) else {
                view.unmanaged += waiting;
                view.unmanaged_bound += bound;
                continue;
            };
            match groups.iter_mut().find(|group| group.fragment == fragment) {
                Some(group) => {
                    group.waiting += waiting;
                    group.bound += bound;
                }
                None => groups.push(Members {
                    fragment,
                    waiting,
                    bound,
                }),
            }
        }
        View { groups, ..view }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::random::{Shape, draw};

    /// Where every task that runs or waits is.
    fn places(play: &Play<'_>) -> BTreeMap<TaskId, (usize, Option<FragmentId>)> {
        let mut places = BTreeMap::new();
        for cpu in 0..play.cpus.len() {
            for turn in play.waiting[cpu].iter().chain(&play.running[cpu]) {
                let there = (cpu, play.fragment(*turn));
                assert_eq!(places.insert(turn.0, there), None, "it is there twice");
            }
        }
        places
    }

    proptest! {
        #[test]
        fn a_task_is_where_its_group_is(seed: u64) {
            let instance = draw(&Shape { changes: true, ..Shape::default() }, seed);
            let policy = Policy::usual(&instance);
            let mut play = Play::new(&instance, &policy);
            play.start();
            while play.running.iter().any(Option::is_some) {
                for (task, (cpu, fragment)) in places(&play) {
                    prop_assert_eq!(play.groups.fragment_of(task), fragment);
                    let groups = fragment.map_or(&[][..], |fragment| play.groups.of(fragment));
                    let group = groups.iter().find(|group| group.tasks.contains(&task));
                    let place = group.map(|group| group.place.index());
                    prop_assert_eq!(place, fragment.map(|_| cpu));
                    if play.counts.splits == 0 {
                        prop_assert!(groups.len() <= 1);
                    }
                }
                play.advance();
            }
            prop_assert_eq!(play.groups.count(), 0);
        }

        #[test]
        fn no_cpu_idles_beside_an_unmanaged_task_that_waits(seed: u64) {
            let instance = draw(&Shape { changes: true, ..Shape::default() }, seed);
            let policy = Policy::usual(&instance);
            let mut play = Play::new(&instance, &policy);
            play.start();
            while play.running.iter().any(Option::is_some) {
                let idle = play.running.iter().any(Option::is_none);
                let tasks = play.tasks();
                let busiest = (0..tasks.len()).max_by_key(|cpu| (tasks[*cpu], usize::MAX - cpu));
                let busiest = play.view(busiest.unwrap());
                prop_assert!(!idle || busiest.unmanaged == 0);
                play.advance();
            }
        }
    }
}
