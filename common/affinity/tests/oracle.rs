//! The optimum and the online algorithm against what the paper says and against exhaustive search.

use proptest::prelude::*;
use warmq_affinity::{
    Costs, Counts, Doing, FragmentId, Instance, Optimum, Order, Penalty, Plan, Policy, Run,
    Schedule, Shape, by_fragment, draw, greedy, online, optimum, replay, switches,
};
use warmq_units::TaskId;

fn shipped(name: &str) -> Plan {
    let path = format!("{}/../../instances/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    Plan::read(name, &text).unwrap()
}

fn best(instance: &Instance, which: Optimum) -> u64 {
    optimum(instance, which, &mut |_, _| {}).unwrap().end
}

/// From the first to the last busy unit of each CPU.
fn busy_units(schedule: &Schedule) -> Vec<(u64, u64)> {
    let spans = schedule.cpus.iter();
    spans
        .map(|span| (span[0].from, span[span.len() - 1].to - 1))
        .collect()
}

/// Decision case 11: the paper's own figures.
#[test]
fn the_worked_example_ends_with_unit_22_by_cpu_affinity_and_14_by_data_affinity() {
    let plan = shipped("example");
    let units = |name: &str| {
        let (_, order) = plan.orders.iter().find(|(title, _)| title == name).unwrap();
        busy_units(&replay(&plan.instance, order))
    };
    assert_eq!(units("by CPU affinity"), [(0, 22), (5, 22)]);
    assert_eq!(units("by data affinity"), [(0, 10), (5, 14)]);
}

#[test]
fn the_online_algorithm_and_the_optimum_find_the_schedule_by_data_affinity() {
    let plan = shipped("example");
    let by_data = replay(&plan.instance, &plan.orders[1].1);
    let found = online(&plan.instance, &plan.policy);
    assert_eq!(
        (found.schedule, found.counts),
        (by_data.clone(), Counts::default())
    );
    for which in [Optimum::SplitBins, Optimum::WholeBins] {
        let best = optimum(&plan.instance, which, &mut |_, _| {}).unwrap();
        assert_eq!(best.schedule.unwrap().end(), by_data.end());
        assert_eq!(best.end, 15);
    }
}

/// Decision case 12.
#[test]
fn a_switch_costs_what_is_missing_and_what_is_dirty() {
    let costs = Costs {
        lines: 8,
        fill: 7,
        write_back: 5,
    };
    let table = [((0, 0), 0), ((3, 0), 21), ((0, 2), 10), ((3, 2), 31)];
    for ((missing, dirty), cost) in table {
        assert_eq!(costs.f(missing, dirty), cost);
    }
    assert_eq!(costs.g(), 8 * 12);
}

/// Decision case 13.
#[test]
fn bins_change_the_fragment_once_each() {
    let fragments = |letters: &str| {
        let ids: Vec<FragmentId> = letters
            .bytes()
            .map(|letter| FragmentId(letter.into()))
            .collect();
        switches(ids)
    };
    assert_eq!(fragments("ABABA"), 4);
    assert_eq!(fragments("AAABB"), 1);
    assert_eq!(fragments(""), 0);
}

/// Decision case 14.
#[test]
fn five_bins_end_at_9_where_greed_ends_at_10() {
    let plan = shipped("bins");
    assert_eq!(best(&plan.instance, Optimum::WholeBins), 9);
    assert_eq!(greedy(&plan.instance), 10);
    assert_eq!(replay(&plan.instance, &plan.orders[0].1).end(), 10);
}

#[test]
fn the_third_instance_shows_all_that_the_online_algorithm_does() {
    let plan = shipped("changes");
    let counts = online(&plan.instance, &plan.policy).counts;
    assert!(
        counts.changes > 0 && counts.unmanaged_moved > 0 && counts.splits > 0,
        "{counts:?}"
    );
}

#[test]
fn a_bin_is_split_where_that_ends_sooner() {
    let text = "title = \"t\"\ncpus = 2\ncache = { fill = 1, write_back = 1 }\nfragment.A = 1\n\
                task.a = { fragment = \"A\", run = 9 }\ntask.b = { fragment = \"A\", run = 9 }";
    let instance = Plan::read("t", text).unwrap().instance;
    assert_eq!(best(&instance, Optimum::WholeBins), 20);
    assert_eq!(best(&instance, Optimum::SplitBins), 11);
}

#[test]
fn g_takes_every_fragment_for_a_whole_cache() {
    let text = |penalty: &str| {
        format!(
            "title = \"t\"\ncpus = 1\npenalty = \"{penalty}\"\n\
             cache = {{ lines = 4, fill = 2, write_back = 1 }}\nfragment = {{ A = 1, B = 2 }}\n\
             task.a = {{ fragment = \"A\", run = 1 }}\ntask.b = {{ fragment = \"B\", run = 1 }}"
        )
    };
    let end = |penalty| {
        best(
            &Plan::read("t", &text(penalty)).unwrap().instance,
            Optimum::WholeBins,
        )
    };
    assert_eq!(end("lines"), 2 + 3 * (2 + 1));
    assert_eq!(end("whole-cache"), 2 + 2 * 4 * (2 + 1));
}

#[test]
fn what_is_too_large_is_said_to_be() {
    let tasks: String = (0..60)
        .map(|number| {
            format!(
                "t{number} = {{ fragment = \"A\", run = {} }}\n",
                1 + number * number * 2
            )
        })
        .collect();
    let text = format!(
        "title = \"t\"\ncpus = 6\ncache = {{ fill = 1, write_back = 1 }}\nfragment.A = 1\n[task]\n{tasks}"
    );
    let instance = Plan::read("t", &text).unwrap().instance;
    assert!(optimum(&instance, Optimum::SplitBins, &mut |_, _| {}).is_err());
}

/// Every order of `runs` on `cpus` CPUs, each handed to `see`.
fn every_order(order: &mut Order, left: &mut Vec<(TaskId, Run)>, see: &mut dyn FnMut(&Order)) {
    if left.is_empty() {
        return see(order);
    }
    // The next task of all goes to every place of every CPU: each order comes up once.
    let run = left.remove(0);
    for cpu in 0..order.len() {
        for place in 0..=order[cpu].len() {
            order[cpu].insert(place, run);
            every_order(order, left, see);
            order[cpu].remove(place);
        }
    }
    left.insert(0, run);
}

fn runs(instance: &Instance) -> Vec<(TaskId, Run)> {
    let runs = instance
        .ready()
        .flat_map(|(id, task)| task.runs.iter().map(move |run| (id, *run)));
    runs.collect()
}

/// The least end of all orders, and of those that split no bin.
fn exhaustive(instance: &Instance) -> (u64, u64) {
    let (mut split, mut whole) = (u64::MAX, u64::MAX);
    let mut order = vec![Vec::new(); instance.cpus];
    every_order(&mut order, &mut runs(instance), &mut |order| {
        let end = replay(instance, order).end();
        split = split.min(end);
        if !is_split(order) {
            whole = whole.min(end);
        }
    });
    (split, whole)
}

fn is_split(order: &Order) -> bool {
    let on = |cpu: usize| {
        let runs: &Vec<(TaskId, Run)> = &order[cpu];
        runs.iter()
            .filter_map(|(_, run)| run.fragment)
            .collect::<Vec<FragmentId>>()
    };
    let pairs = (0..order.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
    pairs
        .into_iter()
        .any(|(a, b)| on(a).iter().any(|fragment| on(b).contains(fragment)))
}

fn small() -> Shape {
    Shape {
        cpus: 1..=3,
        fragments: 1..=3,
        tasks: 1..=5,
        changes: false,
    }
}

/// `instance` under the penalty g, or f.
fn under(mut instance: Instance, g: bool) -> Instance {
    instance.penalty = match g {
        true => Penalty::WholeCache,
        false => Penalty::Lines,
    };
    instance
}

/// Every run once, no two spans of a CPU at the same time, no run of a task before its last one
/// ended: what any schedule of the instance keeps.
fn check(instance: &Instance, schedule: &Schedule) {
    let mut ran: Vec<(TaskId, u64, u64)> = Vec::new();
    for spans in &schedule.cpus {
        assert!(spans.is_sorted_by(|a, b| a.to <= b.from));
        for span in spans {
            assert!(span.from < span.to);
            if let Doing::Run(task) = span.doing {
                ran.push((task, span.from, span.to));
            }
        }
    }
    ran.sort_unstable();
    assert!(ran.is_sorted_by(|a, b| a.0 != b.0 || a.2 <= b.1), "{ran:?}");
    let lengths: Vec<(TaskId, u64)> = ran.iter().map(|ran| (ran.0, ran.2 - ran.1)).collect();
    let tasks = (0..).map(TaskId).zip(&instance.tasks);
    let wanted = tasks.flat_map(|(id, task)| task.runs.iter().map(move |run| (id, run.length)));
    assert_eq!(lengths, wanted.collect::<Vec<_>>());
}

proptest! {
    #[test]
    fn the_dynamic_program_finds_what_exhaustive_search_finds(seed: u64, g: bool) {
        let instance = under(draw(&small(), seed), g);
        let found = (best(&instance, Optimum::SplitBins), best(&instance, Optimum::WholeBins));
        prop_assert_eq!(found, exhaustive(&instance));
    }

    #[test]
    fn an_optimal_schedule_ends_when_the_table_says(seed: u64) {
        let instance = draw(&Shape::default(), seed);
        for which in [Optimum::SplitBins, Optimum::WholeBins] {
            let best = optimum(&instance, which, &mut |_, _| {}).unwrap();
            let schedule = best.schedule.unwrap();
            check(&instance, &schedule);
            prop_assert_eq!(schedule.end(), best.end);
        }
    }

    #[test]
    fn bins_are_optimal_on_one_cpu_under_both_penalties(seed: u64, g: bool, at in prop::collection::vec(0usize..10, 10)) {
        let shape = Shape { cpus: 1..=1, ..Shape::default() };
        let instance = under(draw(&shape, seed), g);
        let warm = instance.first.and_then(|first| instance.task(first).runs[0].fragment);
        let mut in_bins = runs(&instance);
        by_fragment(&mut in_bins, warm);
        let mut other = runs(&instance);
        for (index, at) in at.iter().enumerate().take(other.len()) {
            let at = at % other.len();
            other.swap(index, at);
        }
        let fragments = |order: &[(TaskId, Run)]| {
            let fragments = order.iter().filter_map(|(_, run)| run.fragment);
            switches(warm.into_iter().chain(fragments))
        };
        prop_assert!(fragments(&in_bins) <= fragments(&other));
        let penalty = |order| replay(&instance, &vec![order]).penalty();
        prop_assert!(penalty(in_bins) <= penalty(other));
    }

    #[test]
    fn the_online_algorithm_is_never_better_than_the_optimum(seed: u64, every in 1u64..30, after in 0u32..6) {
        for changes in [false, true] {
            let instance = draw(&Shape { changes, ..Shape::default() }, seed);
            let mut policy = Policy::usual(&instance);
            policy.balance_every = every;
            // 5 stands for never.
            policy.balancing.split_after = (after < 5).then_some(after);
            let online = online(&instance, &policy);
            check(&instance, &online.schedule);
            prop_assert!(online.schedule.end() >= best(&instance, Optimum::SplitBins));
        }
    }

    #[test]
    fn what_uses_the_first_tasks_fragment_starts_beside_it(seed: u64) {
        let mut instance = draw(&Shape::default(), seed);
        let Some(first) = instance.first else { return Ok(()) };
        // All on one fragment, of which nobody may take a part.
        let run = instance.task(first).runs[0];
        instance.tasks.iter_mut().for_each(|task| task.runs[0].fragment = run.fragment);
        let mut policy = Policy::usual(&instance);
        policy.balancing.split_after = None;
        let found = online(&instance, &policy);
        if run.fragment.is_some() {
            prop_assert_eq!(found.schedule.order(0).count(), instance.tasks.len());
            prop_assert_eq!(found.counts, Counts::default());
        }
    }

    #[test]
    fn splitting_bins_never_ends_later(seed: u64) {
        let instance = draw(&Shape::default(), seed);
        let (whole, split) = (Optimum::WholeBins, Optimum::SplitBins);
        prop_assert!(best(&instance, split) <= best(&instance, whole));
        prop_assert!(best(&instance, whole) <= greedy(&instance));
    }
}
