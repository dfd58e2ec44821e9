//! The walk by hand, measured and simulated: `cargo run --release -p warmq-walk --example walk`.

use std::path::Path;

use warmq_units::CpuId;
use warmq_walk::{Geometry, WalkSettings, measure, measure_latencies, simulate_walk};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let settings = WalkSettings::default();
    let mut machine = warmq_host::read(Path::new("/"))?;
    let latencies = measure_latencies(&machine, settings.cpu, settings.block_size)?;
    for level in &latencies.levels {
        println!(
            "level {}: {:.2} ns ({})",
            level.level, level.ns, level.buffer
        );
    }
    println!("translation: {:.1?}", latencies.translation.table);
    let measured = latencies.for_machine(&machine);
    warmq_host::set_latencies(&mut machine, &measured, "measured")?;
    let cpu = CpuId(latencies.cpu);
    let cache = Geometry::to_color(&machine, cpu).ok_or("no cache")?;
    let report = measure(&settings, cache, &latencies, &mut |_| ())?;
    println!("{:#?}", report.facts);
    println!("blocks colors needed   measured (quartiles)  simulated  ratio  misses");
    for row in &report.rows {
        let ns = row.ns_per_visit;
        let (facts, sets) = (&report.facts, &report.placement);
        let translation = Some(&latencies.translation);
        for simulated in simulate_walk(&machine, cpu, facts, sets, row, translation) {
            println!(
                "{:6} {:6} {:6} {:8.2} ({:6.2}..{:6.2}) {:10.2} {:6.2} {:6.1} %",
                row.blocks,
                row.colors,
                row.needed_colors,
                ns.median,
                ns.low,
                ns.high,
                simulated.ns_per_visit,
                simulated.ns_per_visit / ns.median,
                simulated.miss_ratio * 100.0,
            );
        }
    }
    Ok(())
}
