//! A comparison as data: one object.

use serde_json::{Map, Value, json};
use warmq_metrics::compare::{Agreement, Decision, Difference, LeftOut, Side};
use warmq_trace::Header;
use warmq_units::CpuId;

use super::text::{waker, word};
use super::{Compared, figures};

/// The object. Times and spans are in nanoseconds.
pub fn json(compared: &Compared<'_>) -> Value {
    let comparison = compared.comparison;
    let cpus: Vec<Value> = comparison.cpus.iter().map(cpu).collect();
    json!({
        "identical": comparison.identical,
        "agrees": comparison.agrees(),
        "cpus": cpus,
        "first_difference": comparison.first.as_ref().map(first),
        "a": side(compared, 0),
        "b": side(compared, 1),
    })
}

fn cpu((cpu, agreement): (&CpuId, &Agreement)) -> Value {
    let [a, b] = agreement.decisions;
    json!({
        "cpu": cpu.0,
        "switches_a": a,
        "switches_b": b,
        "first_same": agreement.same,
        "same_in_order": agreement.in_order,
        "time_difference_ns": agreement.time_difference.as_ns(),
        "late_from": agreement.late.map(|late| late + 1),
    })
}

fn side(compared: &Compared<'_>, index: usize) -> Value {
    let LeftOut { others, idle, lost } = compared.comparison.left_out[index];
    let found = &compared.comparison.figures[index];
    let shown: Map<String, Value> = figures(compared)
        .into_iter()
        .filter_map(|(name, _)| found.get(&name).map(|value| (name.clone(), json!(value))))
        .collect();
    json!({
        "file": compared.names[index],
        "about": about(&compared.both[index].header),
        "left_out": { "others": others, "idle": idle },
        "lost_events": lost,
        "figures": shown,
    })
}

/// What a recording says of itself.
pub fn about(header: &Header) -> Value {
    json!({
        "world": header.world,
        "machine": header.machine,
        "kernel": header.kernel,
        "scheduler": header.scheduler,
        "clock": header.clock,
        "hz": header.hz,
        "preemption": header.preemption,
    })
}

fn first(difference: &Difference) -> Value {
    let [a, b] = difference.sides.each_ref();
    let [before_a, before_b] = difference.before.each_ref().map(|decisions| {
        let decisions = decisions.iter();
        decisions.map(decision).collect::<Vec<Value>>()
    });
    json!({
        "cpu": difference.cpu.0,
        "switch": difference.place + 1,
        "a": a.as_ref().map(at_difference),
        "b": b.as_ref().map(at_difference),
        "before_a": before_a,
        "before_b": before_b,
    })
}

fn decision(decision: &Decision) -> Value {
    let prev = decision.prev.as_ref();
    json!({
        "at_ns": decision.at.0 / 1_000,
        "prev": prev.map(|(who, _)| who.to_string()),
        "left": prev.map(|(_, left)| word(*left)),
        "next": decision.next.to_string(),
    })
}

fn at_difference(side: &Side) -> Value {
    let waiting = side.waiting.iter().map(|wait| {
        json!({
            "task": wait.who.to_string(),
            "cpu": wait.cpu.0,
            "for_ns": wait.span.as_ns(),
        })
    });
    let woken = side.wakeups.iter().map(|wakeup| {
        json!({
            "at_ns": wakeup.at.0 / 1_000,
            "task": wakeup.who.to_string(),
            "by": waker(wakeup),
        })
    });
    json!({
        "decision": decision(&side.decision),
        "could_run": waiting.collect::<Vec<Value>>(),
        "woken_before": woken.collect::<Vec<Value>>(),
    })
}
