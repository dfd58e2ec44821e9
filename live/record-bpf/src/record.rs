//! Recording, from the first event to the last byte written.

use std::cell::RefCell;
use std::io::{self, BufWriter, Write};
use std::mem::MaybeUninit;

use warmq_output::{Access, Output, Refused};
use warmq_record::{Gatherer, Recording, Wanted, cpu_time_ns, prefer_this_thread};
use warmq_units::printable;

use crate::libbpf;
use crate::options::Options;
use crate::program::Program;
use crate::refusal::Refusal;
use crate::rings::{self, Rings};
use crate::wait::Waiter;

/// Records until it is time to stop, and writes the recording.
///
/// # Errors
/// A kernel or a process that may not record, and a file that cannot be written.
pub fn run(options: &Options) -> Result<(), Refusal> {
    if options.out.is_none() && rustix::termios::isatty(io::stdout()) {
        return Err(Refusal::Terminal);
    }
    libbpf::keep();
    let (recording, cpu_ns) = record(options)?;
    written(&recording, options)?;
    // For `warmq watch`: what the recording itself does not say.
    eprintln!(
        "warmq-record: stopped: cpu_ns={cpu_ns} most_bytes={} full={}",
        recording.most_size(),
        u8::from(recording.was_full()),
    );
    Ok(())
}

/// Records, and says what CPU time that took meanwhile, in ns.
fn record(options: &Options) -> Result<(Recording, u64), Refusal> {
    let wanted = Wanted::default();
    let names: Vec<&str> = wanted.events().collect();
    let bytes = rings::size(options.buffer);
    let mut object = MaybeUninit::uninit();
    let (mut program, lacking) = Program::load(&mut object, &names, bytes.ilog2() - 3)?;
    let gatherer = RefCell::new(Gatherer::start(&wanted, program.formats(), lacking));
    let rings = Rings::make(&program.skel.maps.rings, bytes, &gatherer)?;
    let waiter = Waiter::new(rings.waits()).map_err(Refusal::system("wait for events"))?;
    program.attach()?;
    prefer_this_thread();
    program.record(true)?;
    eprintln!("warmq-record: ready");
    let began_ns = cpu_time_ns();
    let mut more = false;
    while waiter
        .goes_on(more)
        .map_err(Refusal::system("wait for events"))?
    {
        more = rings.take(false);
    }
    let cpu_ns = cpu_time_ns() - began_ns;
    program.record(false)?;
    // This takes longer than the programs that are still running on other CPUs.
    gatherer.borrow_mut().note_end();
    while rings.take(true) {}
    let most = rings.bytes();
    drop(rings);
    let recording = finish(gatherer.into_inner(), &program, most)?;
    Ok((recording, cpu_ns))
}

/// Adds what was lost without a place.
fn finish(
    mut gatherer: Gatherer,
    program: &Program<'_>,
    buffers: usize,
) -> Result<Recording, Refusal> {
    let (lost, nested) = program.lost()?;
    for (cpu, events) in (0..).zip(lost) {
        if events > 0 {
            gatherer.lost(cpu, events);
        }
    }
    nested.into_iter().for_each(|what| gatherer.missing(what));
    Ok(gatherer.finish(buffers)?)
}

fn written(recording: &Recording, options: &Options) -> Result<(), Refusal> {
    let Some(path) = &options.out else {
        let task = "write the recording to standard output";
        return send(recording, io::stdout().lock()).map_err(Refusal::system(task));
    };
    let refused = |why: Refused| Refusal::Output {
        name: printable(path).to_string(),
        why,
    };
    let (output, file) = Output::begin(path, Access::Private).map_err(refused)?;
    send(recording, &file).map_err(|error| refused(error.into()))?;
    output.finish(&file).map_err(refused)
}

fn send(recording: &Recording, to: impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(to);
    recording.write_to(&mut out)?;
    out.flush()
}
