//! Laws that are played in the lab.

mod kernels;
mod numbers;
mod predictions;
mod red;

use warmq_experiment::laws::{self, Playing};
use warmq_experiment::{Engine, NotDone};
use warmq_law::{Cell, Column, Found};

/// The cells of all `laws` in all `columns`.
fn judged<'l>(laws: &'l [Found], columns: &'l [Column]) -> Vec<Cell<'l>> {
    let mut sink = |_: &Cell<'l>| Ok::<(), NotDone>(());
    let cells = laws::judged(
        Engine::default(),
        laws,
        columns,
        &Playing::default(),
        &mut sink,
    );
    cells.unwrap_or_else(|why| panic!("{why:?}"))
}
