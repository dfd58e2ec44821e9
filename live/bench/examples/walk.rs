//! The walk by hand: `cargo run --release -p warmq-bench --example walk`.

use warmq_bench::{Geometry, WalkSettings, measure};
use warmq_units::Bytes;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cache = Geometry { level: 2, size: Bytes::from_mb(2), ways: 16, line: Bytes(64) };
    let report = measure(&WalkSettings::default(), cache, &mut |_| ())?;
    println!("{:#?}", report.facts);
    for row in &report.rows {
        let s = row.ns_per_visit;
        println!(
            "{:5} blocks {:3} colors (needs {:2}): {:6.2} ns ({:.2}..{:.2}, {:.2}..{:.2}) disturbed {}",
            row.blocks, row.colors, row.needed_colors, s.median, s.low, s.high, s.min, s.max, row.disturbed
        );
    }
    Ok(())
}
