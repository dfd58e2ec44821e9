//! `warmq laws`: laws by name, and the matrix on a terminal and on a page.

pub mod beside;
pub mod matrix;
pub mod page;
pub mod shipped;

use std::path::Path;

use warmq_experiment::laws::{self, Playing, Trace};
use warmq_law::{Cell, Column, Found};
use warmq_scenario::WorldKind;
use warmq_trace::{Observer, Perfetto};

use crate::failure::Failure;
use crate::files::{Unfinished, refused};
use crate::progress::OfRuns;
use crate::{machines, typed};

/// The option of a comparison, as it is typed.
pub const ALIKE: &str = "--alike";

/// Plays `laws` in `columns` as [`laws::judged`] does; shows how many runs are done, and keeps
/// traces of what does not hold in `folder`.
///
/// # Errors
/// A law, a scheduler or a kernel that cannot be used; what `sink` refuses.
pub fn judged<'l>(
    laws: &'l [Found],
    columns: &'l [Column],
    playing: &Playing<'_>,
    folder: Option<&Path>,
    sink: &mut dyn FnMut(&Cell<'l>) -> Result<(), Failure>,
) -> Result<Vec<Cell<'l>>, Failure> {
    let on_host = |column: &Column| column.world == WorldKind::Host;
    let of_host = |found: &Found| found.law.machine == machines::HOST;
    let engine = machines::engine_of(columns.iter().any(on_host) || laws.iter().any(of_host))?;
    let watch = OfRuns::default();
    let keep = |trace: &Trace<'_>| {
        let path = folder?.join(format!("{}.perfetto", trace.name));
        written(&path, trace).ok().map(|()| path)
    };
    let playing = Playing {
        keep: Some(&keep),
        again: Some(&again),
        progress: Some(&|progress| watch.see(progress)),
        ..*playing
    };
    laws::judged(engine, laws, columns, &playing, sink)
}

/// The command that judges a law in `column` alone.
pub fn again(found: &Found, column: &Column) -> String {
    let chosen = column.chosen().into_iter();
    let options = chosen.flat_map(|(name, value)| typed::option(name, value));
    let alike = column.alike.then(|| ALIKE.to_owned());
    let options: Vec<String> = options.chain(alike).collect();
    typed::line("laws", &[&found.argument], &options)
}

fn written(path: &Path, trace: &Trace<'_>) -> Result<(), Failure> {
    let (unfinished, out) = Unfinished::begin(path)?;
    let mut perfetto = Perfetto::new(out, trace.machine).named(trace.names.clone());
    for (at, record) in trace.records {
        perfetto.see(*at, record);
    }
    let out = perfetto.finish().map_err(|error| refused(path, &error))?;
    unfinished.finish(out)
}
