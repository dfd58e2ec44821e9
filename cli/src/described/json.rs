//! A machine as JSON. Units stand in the names of the keys.

use serde_json::{Value, json};
use warmq_machine::{CacheDescription, Coherence, CpuPlace, MachineDescription, Steal};
use warmq_units::{Duration, Hertz};

/// The whole of `machine`.
pub fn json(machine: &MachineDescription) -> Value {
    let cpu = |(number, place): (usize, &CpuPlace)| json!({"cpu": number, "socket": place.socket, "llc": place.llc, "core": place.core});
    let memory = machine.memory;
    json!({
        "name": machine.name,
        "title": machine.title,
        "clock_hz": hertz(machine.clock),
        "sockets": machine.sockets(),
        "llcs": machine.llcs(),
        "cores": machine.cores(),
        "cpus": machine.cpus.iter().enumerate().map(cpu).collect::<Vec<Value>>(),
        "distances": machine.node_distances,
        "priorities": machine.priorities,
        "capacities": machine.capacities,
        "caches": machine.caches.iter().map(cache).collect::<Vec<Value>>(),
        "coherence": coherence(machine.coherence),
        "memory": {
            "size_bytes": memory.size.0,
            "page_bytes": memory.page.0,
            "huge_page_bytes": memory.huge_page.0,
            "latency_ns": ns(memory.latency),
            "dma_into_llc": memory.dma_into_llc,
        },
        "miss_overlap": machine.miss_overlap,
        "smt_speed_permille": machine.smt_speed,
        "steals": machine.steals.iter().map(steal).collect::<Vec<Value>>(),
        "costs": costs(machine),
        "sources": machine.sources,
        "left_out": machine.left_out,
    })
}

/// A frequency in hertz.
pub fn hertz(clock: Hertz) -> f64 {
    clock.khz() as f64 * 1000.0
}

fn cache(cache: &CacheDescription) -> Value {
    json!({
        "level": cache.level,
        "size_bytes": cache.size.0,
        "ways": cache.ways,
        "line_bytes": cache.line.0,
        "latency_cycles": cache.latency.0,
        "replacement": cache.replacement.name(),
        "inclusion": cache.inclusion.name(),
        "cpus": cache.cpus.iter().map(|cpu| cpu.0).collect::<Vec<u16>>(),
    })
}

fn steal(steal: &Steal) -> Value {
    json!({ "every_ns": ns(steal.every), "span_ns": ns(steal.span) })
}

fn coherence(coherence: Coherence) -> Value {
    let kind = match coherence {
        Coherence::Bus { .. } => "bus",
        Coherence::Directory { .. } => "directory",
    };
    let times = coherence.times().into_iter();
    let times = times.map(|(name, time)| (format!("{name}_ns"), json!(time.map(ns))));
    let kind = ("kind".to_owned(), json!(kind));
    Value::Object(std::iter::once(kind).chain(times).collect())
}

fn costs(machine: &MachineDescription) -> Value {
    let mut kernels = serde_json::Map::new();
    for (kernel, costs) in &machine.costs {
        let cost = |(name, cost): (&String, &warmq_machine::Cost)| {
            (
                name.clone(),
                json!({"cycles": cost.cycles.0, "source": cost.source}),
            )
        };
        kernels.insert(
            kernel.clone(),
            Value::Object(costs.iter().map(cost).collect()),
        );
    }
    Value::Object(kernels)
}

fn ns(time: Duration) -> f64 {
    time.0 as f64 / 1000.0
}
