//! What is in a recording, and how fast it is read: `cargo run --example contents FILE`.

use std::fs::File;
use std::time::Instant;

use warmq_recordings::{Kind, Recorded};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for name in std::env::args().skip(1) {
        let began = Instant::now();
        let recorded = Recorded::of(File::open(&name)?)?;
        let mut records = recorded.records()?;
        let count = records.by_ref().take_while(Result::is_ok).count();
        println!("{name}: {count} records in {:?}", began.elapsed());
        println!("  {:?}", records.header());
        if let Some(contents) = records.contents() {
            let counts = Kind::ALL.map(|kind| format!("{} {}", contents.count(kind), kind.name()));
            println!("  {}", counts.join(", "));
            println!("  {:?}", contents);
        }
    }
    Ok(())
}
