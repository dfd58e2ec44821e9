//! Under scx_warmq a task runs within a time that is bounded, whatever changes its weight or its
//! place while it waits.

use std::collections::BTreeMap;

use proptest::prelude::*;
use warmq_config::Value;
use warmq_kernel::*;
use warmq_trace::{Board, Doing, Ended, Observer, Record, Stretch};
use warmq_units::{CpuId, CpuSet, Duration, Instant, TaskId};

use crate::compiled::{WARMQ, is_missing, under};
use crate::stage::*;

/// The longest wait of one of `tasks` tasks, which is counted from the last change. It is late
/// after 3 s at most (WARMQ_LATE_MAX). Each 16th round of the balance timer looks at eight of a
/// queue, and a round is 10 ms to the next tick of 4 ms. Then it comes after what runs and after
/// whoever else is late: each runs for two slices and a batch at most.
fn longest(tasks: usize) -> Duration {
    let (late_max, look, succession) = (3_000, 16 * 12, 2 * 4 + 8);
    let looks = tasks.div_ceil(8) as u64;
    ms(late_max + looks * look + succession * tasks as u64)
}

/// When nothing changes any more, and when the run ends: after three times the longest wait.
const CALM: u64 = 3_000;
const END: u64 = 15_000;

/// The longest that each task waited for a CPU since `since`. One that is out of quota waits for
/// none.
struct Waits {
    since: Instant,
    board: Board,
    longest: BTreeMap<TaskId, Duration>,
}

impl Waits {
    fn since(since: Instant) -> Waits {
        Waits {
            since,
            board: Board::of_a_run(),
            longest: BTreeMap::new(),
        }
    }

    fn of_all(mut self, end: Instant) -> BTreeMap<TaskId, Duration> {
        let open: Vec<Ended> = self.board.open(end).collect();
        note(&mut self.longest, self.since, &open);
        self.longest
    }
}

fn note(longest: &mut BTreeMap<TaskId, Duration>, since: Instant, ended: &[Ended]) {
    for ended in ended {
        if let Stretch::Task { task, did, .. } = ended.stretch
            && matches!(did, Doing::Waits(_))
        {
            let longest = longest.entry(task).or_default();
            *longest = (*longest).max(ended.since(since));
        }
    }
}

impl Observer for Waits {
    fn see(&mut self, at: Instant, record: &Record) {
        note(&mut self.longest, self.since, self.board.see(at, record));
    }
}

/// One of the tasks of a case.
#[derive(Clone, Debug)]
struct Part {
    nice: i8,
    group: usize,
    fragment: Option<u32>,
    only: Option<u16>,
    /// For how many ms it sleeps after each 3 ms of work.
    asleep: u64,
}

/// A change of one of the tasks or groups, by number (modulo those there are).
#[derive(Clone, Debug)]
enum Act {
    Nice(usize, i8),
    Weight(usize, u32),
    Group(usize, usize),
    Fragment(usize, Option<u32>),
    Affinity(usize, Option<u16>),
    Quota(usize, u64),
}

#[derive(Clone, Debug)]
struct Case {
    cpus: u16,
    sharing: u16,
    on_cpus: bool,
    parts: Vec<Part>,
    acts: Vec<(u64, Act)>,
}

/// The root, one in it, one in that, and another in the root.
const GROUPS: usize = 4;

fn parts(cpus: u16) -> impl Strategy<Value = Vec<Part>> {
    let asleep = prop_oneof![2 => Just(0), 1 => 1u64..40];
    let part = (
        -5i8..20,
        0..GROUPS,
        prop::option::of(0u32..3),
        0..4 * cpus,
        asleep,
    );
    let part = part.prop_map(move |(nice, group, fragment, only, asleep)| Part {
        nice,
        group,
        fragment,
        only: (only < cpus).then_some(only),
        asleep,
    });
    prop::collection::vec(part, 2..12)
}

fn cases<A: Strategy<Value = Act>>(act: fn() -> A) -> impl Strategy<Value = Case> {
    (1u16..=3, 1u16..=3, any::<bool>()).prop_flat_map(move |(cpus, sharing, on_cpus)| {
        let acts = prop::collection::vec((0..CALM, act()), 0..30);
        (parts(cpus), acts).prop_map(move |(parts, acts)| Case {
            cpus,
            sharing,
            on_cpus,
            parts,
            acts,
        })
    })
}

fn some_weight() -> impl Strategy<Value = u32> {
    prop_oneof![Just(1), Just(100), 1u32..10_001]
}

/// Weights that fall and rise, of nested groups and of tasks.
fn weights() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => (1..GROUPS, some_weight()).prop_map(|(group, weight)| Act::Weight(group, weight)),
        1 => (0..12usize, -20i8..20).prop_map(|(task, nice)| Act::Nice(task, nice)),
        1 => (0..12usize, 0..GROUPS).prop_map(|(task, group)| Act::Group(task, group)),
    ]
}

/// Tasks that go from one queue to another, also while they wait.
fn places() -> impl Strategy<Value = Act> {
    let fragment = prop::option::of(0u32..3);
    let only = prop::option::of(0u16..3);
    prop_oneof![
        2 => (0..12usize, fragment).prop_map(|(task, data)| Act::Fragment(task, data)),
        2 => (0..12usize, only).prop_map(|(task, cpu)| Act::Affinity(task, cpu)),
        1 => (1..GROUPS, some_weight()).prop_map(|(group, weight)| Act::Weight(group, weight)),
    ]
}

/// Quotas, of which 0 stands for none, that come and go beside changes of weights.
fn quotas() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => (1..GROUPS, 0u64..60).prop_map(|(group, quota)| Act::Quota(group, quota)),
        1 => (1..GROUPS, some_weight()).prop_map(|(group, weight)| Act::Weight(group, weight)),
        1 => (0..12usize, 0..GROUPS).prop_map(|(task, group)| Act::Group(task, group)),
    ]
}

impl Case {
    fn change(&self, act: &Act, tasks: &[TaskId], groups: &[GroupId]) -> Change {
        let task = |number: usize| tasks[number % tasks.len()];
        match *act {
            Act::Nice(of, nice) => Change::Nice(task(of), nice),
            Act::Weight(of, weight) => Change::Weight(groups[of], weight),
            Act::Group(of, to) => Change::Group(task(of), groups[to]),
            Act::Fragment(of, number) => {
                let named = number.map(|number| Fragment { app: 1, number });
                Change::Fragment(task(of), named)
            }
            Act::Affinity(of, only) => Change::Affinity(task(of), self.allowed(only)),
            Act::Quota(of, 0) => Change::Quota(groups[of], Duration::from_s(1_000)),
            Act::Quota(of, ms) => Change::Quota(groups[of], Duration::from_ms(ms)),
        }
    }

    /// When the last change is over. Where there are quotas, the end of all is one.
    fn calm(&self) -> Instant {
        let quotas = self
            .acts
            .iter()
            .any(|(_, act)| matches!(act, Act::Quota(..)));
        let last = self.acts.iter().map(|(at, _)| *at).max();
        Instant::START + ms(if quotas { CALM } else { last.unwrap_or(0) })
    }

    fn allowed(&self, only: Option<u16>) -> CpuSet {
        match only {
            Some(only) => [CpuId(only % self.cpus)].into_iter().collect(),
            None => CpuSet::first_cpus(self.cpus),
        }
    }

    /// The longest wait of each task.
    fn play(&self) -> BTreeMap<TaskId, Duration> {
        let workload = |boot: &mut Boot<'_>| -> Started {
            let outer = boot.group(GroupId::ROOT, "outer", 100);
            let inner = boot.group(outer, "inner", 100);
            let other = boot.group(GroupId::ROOT, "other", 100);
            let groups = [GroupId::ROOT, outer, inner, other];
            let tasks: Result<Vec<TaskId>, _> = self
                .parts
                .iter()
                .map(|part| start(boot, part, groups[part.group]))
                .collect();
            let tasks = tasks?;
            for (at, act) in &self.acts {
                let change = self.change(act, &tasks, &groups);
                boot.operator(Instant::START + ms(*at), |operator| async move {
                    operator.change(change).await;
                });
            }
            let unlimited = groups[1..]
                .iter()
                .map(|group| Change::Quota(*group, Duration::from_s(1_000)));
            let unlimited: Vec<Change> = unlimited.collect();
            boot.operator(Instant::START + ms(CALM), |operator| async move {
                for change in unlimited {
                    operator.change(change).await;
                }
            });
            Ok(())
        };
        let place = [("place", Value::Text("cpu".into()))];
        let scheduler = scheduler(WARMQ, if self.on_cpus { &place } else { &[] });
        let mut stage = stage(self.cpus).sharing(self.sharing).tick_of(4);
        stage.settings = under(WARMQ, stage.settings);
        let (_, kernel) = stage.plays_before(Waits::since(self.calm()), scheduler, END, workload);
        let end = kernel.now();
        kernel.into_observer().of_all(end)
    }

    fn everybody_runs(&self) -> Result<(), TestCaseError> {
        for (task, waited) in self.play() {
            prop_assert!(
                waited <= longest(self.parts.len()),
                "{task:?} waits for {} ms",
                waited.as_us() / 1_000
            );
        }
        Ok(())
    }
}

fn start(
    boot: &mut Boot<'_>,
    part: &Part,
    group: GroupId,
) -> Result<TaskId, warmq_machine::OutOfMemory> {
    let spec = called("t").nice(part.nice).group(group);
    let spec = match part.only {
        Some(only) => spec.bound([cpu(only)]),
        None => spec,
    };
    let (fragment, asleep) = (part.fragment, part.asleep);
    boot.task(spec, move |task: Task| async move {
        if let Some(fragment) = fragment {
            task.enter(1, fragment).await;
        }
        loop {
            task.compute_for(ms(3)).await;
            if asleep > 0 {
                task.sleep(ms(asleep)).await;
            }
        }
    })
}

proptest! {
    #![proptest_config(config(12))]

    #[test]
    fn who_waits_while_weights_fall_and_rise_runs(case in cases(weights)) {
        if is_missing() {
            return Ok(());
        }
        case.everybody_runs()?;
    }

    #[test]
    fn who_is_moved_while_it_waits_runs(case in cases(places)) {
        if is_missing() {
            return Ok(());
        }
        case.everybody_runs()?;
    }

    #[test]
    fn who_waits_while_quotas_come_and_go_runs(case in cases(quotas)) {
        if is_missing() {
            return Ok(());
        }
        case.everybody_runs()?;
    }
}
