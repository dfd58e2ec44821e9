//! Boots the kernel named first and runs the rest in it.
use std::io::{stderr, stdout};
use warmq_vm::{Guest, Kernel, Streams};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args_os().skip(1);
    let kernel = Kernel::from_file(words.next().ok_or("no kernel")?.as_ref(), None)?;
    let (mut out, mut err) = (stdout(), stderr());
    let streams = Streams {
        stdout: &mut out,
        stderr: &mut err,
    };
    let outcome = Guest::new(kernel).stream(words, streams, &mut |stage| eprintln!("{stage:?}"))?;
    eprintln!(
        "{:?} {:?} {:?}\n{}",
        outcome.ending, outcome.boot, outcome.total, outcome.console
    );
    Ok(())
}
