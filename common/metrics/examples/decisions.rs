//! Prints the first decisions of a recording from 8 ms on, as `experiments/decisions/recorded`
//! keeps them.
//!
//! ```sh
//! cargo run -p warmq-metrics --example decisions -- guest.trace > experiments/decisions/recorded/timer-6.18.txt
//! ```

use std::error::Error;
use std::fs::File;

use warmq_metrics::compare::{Decision, Extent, Recording, WINDOW, decisions, letters};
use warmq_trace::file::Reader;
use warmq_units::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let name = std::env::args().nth(1).ok_or("name a recording")?;
    let reader = Reader::new(File::open(name)?)?;
    let header = reader.header().clone();
    let records = reader.collect::<Result<_, _>>()?;
    let recording = Recording { header, records };
    let extent = Extent {
        cpu: None,
        from: Instant::START + Duration::from_ms(8),
    };
    let all = decisions(&recording, extent).into_values().flatten();
    let kept: Vec<Decision> = all.take(WINDOW).collect();
    print!("{}", letters(&recording.header.kernel, &kept));
    Ok(())
}
