//! Reads an [`Experiment`] from a file: parses it, then checks it against what the simulator knows.
//! One pass finds as many problems as possible.

mod claims;
mod measures;
mod parts;
mod published;
mod shown;
mod sweep;

use std::path::Path;

use warmq_config::{Document, Fields, Item, Problems};
use warmq_units::{Duration, printable};

use crate::experiment::{Experiment, Extent, How};
use crate::request::Trial;
use crate::simulator::Simulator;
use parts::Scope;

impl Experiment {
    /// Reads the text of the file named `file` and checks all of it against `simulator`.
    ///
    /// # Errors
    /// Everything that is wrong with the text, each with place and fix.
    pub fn read(file: &str, text: &str, simulator: &dyn Simulator) -> Result<Experiment, Problems> {
        Experiment::of(&Document::parse(file, text)?, simulator)
    }

    /// Checks all of `document` against `simulator`.
    ///
    /// # Errors
    /// Everything that is wrong with the document, each with place and fix.
    pub fn of(document: &Document, simulator: &dyn Simulator) -> Result<Experiment, Problems> {
        document.read(|fields| read(document.name(), fields, simulator, false))
    }

    /// The same, for planning: the sweep may have very many points, which are then not listed but
    /// made one by one ([`Experiment::job_list`]). What must see all points at once (measures over
    /// others, published figures, claims, plots) is refused in so large a sweep.
    ///
    /// # Errors
    /// Everything that is wrong with the document, each with place and fix.
    pub fn planned(document: &Document, simulator: &dyn Simulator) -> Result<Experiment, Problems> {
        document.read(|fields| read(document.name(), fields, simulator, true))
    }
}

/// Reads parts and sweep first. Nothing else has a meaning without them, so if they have problems
/// only those are reported.
fn read(
    file: &str,
    fields: &Fields,
    simulator: &dyn Simulator,
    is_planned: bool,
) -> Option<Experiment> {
    let (full, quick) = extents(fields);
    let mut experiment = header(file, fields, full, quick);
    let mut scope = Scope::new(simulator, is_planned);
    let ready = parts::read(fields, &mut scope) && sweep::read(fields, &mut scope, &mut experiment);
    if !ready {
        fields.know(&["measure"]);
        fields.know(&OF_RESULTS);
        fields.finish();
        return None;
    }
    experiment.parts = scope.parts;
    measures::read(fields, simulator, &mut experiment);
    if experiment.grid.is_some() {
        refuse_judgement(fields, &experiment);
        return Some(experiment);
    }
    published::read(fields, &mut experiment);
    claims::read(fields, &mut experiment);
    shown::read(fields, simulator, &mut experiment);
    fields.finish();
    Some(experiment)
}

/// The keys of what becomes of measures.
const OF_RESULTS: [&str; 7] = [
    "published",
    "claim",
    "plot",
    "labels",
    "tolerance",
    "columns",
    "shown",
];

/// A large sweep is queried, not judged. (`labels`, `columns` and `tolerance` do no harm.)
fn refuse_judgement(fields: &Fields, experiment: &Experiment) {
    let help = "leave it out, and query the rows of the sweep (docs/sweeps.md)";
    let of_run = |how: &How| matches!(how, How::Figure | How::Histogram { .. });
    let mut measures = experiment.measures.iter();
    if let Some(over) = measures.find(|measure| !of_run(&measure.how)) {
        let what = format!(
            "`{}` compares points, of which a sweep this large has too many",
            over.name
        );
        fields.report(what, help);
    }
    for key in ["published", "claim", "plot"] {
        if let Some(item) = fields.item(key) {
            item.report("the sweep is too large for it", help);
        }
    }
    fields.know(&OF_RESULTS);
    fields.finish();
}

/// Reads the parts, the sweep and the times of `trial`; what else it says is right.
pub(crate) fn trial(
    trial: &Trial,
    fields: &Fields,
    simulator: &dyn Simulator,
) -> Option<Experiment> {
    let (full, quick) = extents(fields);
    let mut experiment = Experiment {
        title: printable(&trial.title).to_string(),
        about: trial.about.trim().to_owned(),
        everything: true,
        shown: trial.shown.clone(),
        ..named(&trial.file, full, quick)
    };
    let mut scope = Scope::new(simulator, false);
    let ready = parts::read(fields, &mut scope) && sweep::read(fields, &mut scope, &mut experiment);
    if !ready {
        return None;
    }
    experiment.parts = scope.parts;
    measures::everything(simulator, &mut experiment);
    let drawn = trial.bars.iter().filter_map(|bar| experiment.measure(bar));
    experiment.plots = drawn
        .map(|measure| shown::bars(measure, &trial.series))
        .collect();
    Some(experiment)
}

fn header(file: &str, fields: &Fields, full: Extent, quick: Extent) -> Experiment {
    let title = fields.required("title", "say in a few words what the experiment shows");
    let notes = fields
        .item("notes")
        .map(|item| item.one_or_more())
        .unwrap_or_default();
    Experiment {
        title: title.and_then(|item| item.line()).unwrap_or_default(),
        paper: fields.text("paper").unwrap_or_default(),
        figure: fields.text("figure").unwrap_or_default(),
        about: fields.text("about").unwrap_or_default().trim().to_owned(),
        notes: notes.iter().filter_map(Item::text).collect(),
        ..named(file, full, quick)
    }
}

/// An experiment of which no more is known.
fn named(file: &str, full: Extent, quick: Extent) -> Experiment {
    let stem = Path::new(file).file_stem().unwrap_or_default();
    Experiment {
        id: stem.to_string_lossy().into_owned(),
        file: file.to_owned(),
        full,
        quick,
        ..Experiment::default()
    }
}

/// Seeds and times: `seeds` and `[run]`; `[quick]` says what differs in a quick run.
fn extents(fields: &Fields) -> (Extent, Extent) {
    let usual = Extent {
        seeds: vec![1, 2, 3],
        warmup: Duration::from_ms(200),
        time: Duration::from_ms(500),
    };
    let mut full = Extent {
        seeds: seeds(fields).unwrap_or(usual.seeds.clone()),
        ..usual
    };
    if let Some(run) = fields.table("run") {
        times(&run, &mut full);
        run.finish();
    }
    let mut quick = Extent {
        seeds: full.seeds[..1].to_vec(),
        ..full.clone()
    };
    if let Some(table) = fields.table("quick") {
        quick.seeds = seeds(&table).unwrap_or(quick.seeds);
        times(&table, &mut quick);
        table.item("sweep");
        table.finish();
    }
    (full, quick)
}

fn times(fields: &Fields, extent: &mut Extent) {
    if let Some(warmup) = fields.item("warmup").and_then(|item| item.duration()) {
        extent.warmup = warmup;
    }
    let Some(item) = fields.item("time") else {
        return;
    };
    match item.duration() {
        Some(Duration::ZERO) => item.report(
            "the measured time must be longer than zero",
            "write \"500ms\"",
        ),
        Some(time) => extent.time = time,
        None => {}
    }
}

fn seeds(fields: &Fields) -> Option<Vec<u64>> {
    let item = fields.item("seeds")?;
    let mut seeds: Vec<u64> = item.list()?.iter().filter_map(Item::count).collect();
    let named = seeds.len();
    seeds.sort_unstable();
    seeds.dedup();
    if named == 0 || named != seeds.len() {
        item.report(
            "seeds must be one or more different numbers",
            "write [1, 2, 3]",
        );
        return None;
    }
    Some(seeds)
}
