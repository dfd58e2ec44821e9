//! Prints a trace: its header, and a line for each record with its time in microseconds.

use std::fs::File;
use std::io::{self, BufReader, Write};

use warmq_trace::file::Reader;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("name the file of a trace")?;
    let reader = Reader::new(BufReader::new(File::open(file)?))?;
    let mut out = io::stdout().lock();
    writeln!(out, "{:#?}", reader.header())?;
    for entry in reader {
        let (at, record) = entry?;
        writeln!(out, "{:>12} {record:?}", at.0 / 1_000_000)?;
    }
    Ok(())
}
