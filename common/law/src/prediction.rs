//! The lab beside guests, figure by figure: what it predicts and what real kernels do.

use warmq_scenario::{Object, ObjectKind, WorldKind};

use crate::beside::{Kind, Spread};
use crate::cell::Cell;
use crate::column::Column;

/// A figure of a law in the lab and in a guest of the same kernel.
pub struct Prediction<'c> {
    /// The law's name.
    pub law: &'c str,
    /// The figure's.
    pub figure: &'c str,
    /// The guest's.
    pub column: &'c Column,
    /// What the figure is a figure of.
    pub kind: Kind,
    /// What the lab predicts.
    pub lab: f64,
    /// What the guest did.
    pub guest: Spread,
    /// False where the guest is no measure: several CPUs that take turns, or one of its tasks sends
    /// what comes from outside in the lab.
    pub is_measure: bool,
}

impl Prediction<'_> {
    /// Whether they are within the bounds of a prediction.
    pub fn agrees(&self) -> bool {
        self.kind.agrees(self.lab, self.guest.value)
    }

    /// Whether the guest's own repetitions differ by more than a prediction may.
    pub fn is_unsteady(&self) -> bool {
        !self.kind.agrees(self.guest.low, self.guest.high)
    }
}

/// Every figure that both the lab and a guest of the same kernel and scheduler have.
pub fn predictions<'c>(labs: &'c [Cell<'_>], guests: &'c [Cell<'_>]) -> Vec<Prediction<'c>> {
    let of = |cells: &'c [_], world| {
        let cells = cells.iter();
        cells.filter(move |cell: &&Cell<'_>| cell.column.world == world)
    };
    let pairs = of(guests, WorldKind::Guest).filter_map(|guest| {
        let is_same = |lab: &&Cell<'_>| {
            // A guest of one CPU is played alike in any case.
            let of_lab = Column {
                world: WorldKind::Guest,
                alike: guest.column.alike,
                ..lab.column.clone()
            };
            lab.law.name == guest.law.name && of_lab == *guest.column
        };
        Some((of(labs, WorldKind::Lab).find(is_same)?, guest))
    });
    pairs.flat_map(|(lab, guest)| figures(lab, guest)).collect()
}

fn figures<'c>(lab: &'c Cell<'_>, guest: &'c Cell<'_>) -> Vec<Prediction<'c>> {
    let figures = guest.judged.compared.iter();
    let counted_once = figures.filter(|(figure, _)| !is_counted_again(lab, guest, figure));
    let both = counted_once.filter_map(|(figure, spread)| {
        let of_lab = lab.judged.compared.get(figure)?;
        Some(Prediction {
            law: &guest.law.name,
            figure,
            column: guest.column,
            kind: Kind::of(figure),
            lab: of_lab.value,
            guest: *spread,
            is_measure: is_measure(guest),
        })
    });
    both.collect()
}

/// Whether the lab can be compared with this guest.
fn is_measure(guest: &Cell<'_>) -> bool {
    let objects = guest.law.scenario.objects();
    let from_outside = |object: &Object| matches!(object.kind, ObjectKind::Source(_));
    let keeps_time = guest.law.cpus == 1 || guest.column.is_by_the_clock(guest.law);
    keeps_time && !objects.iter().any(from_outside)
}

/// Whether `figure` is a p99 of waits that says what the median says, in the lab and in the guest:
/// both are of one wait, as of a task that wakes once. It would count one deviation, or one
/// agreement, twice.
fn is_counted_again(lab: &Cell<'_>, guest: &Cell<'_>, figure: &str) -> bool {
    let Some(waits) = figure.strip_suffix("_wait_p99") else {
        return false;
    };
    let median = format!("{waits}_wait_p50");
    [lab, guest].iter().all(|cell| {
        let compared = &cell.judged.compared;
        compared.contains_key(&median) && compared.get(&median) == compared.get(figure)
    })
}
