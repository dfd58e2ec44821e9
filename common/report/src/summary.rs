//! The summary of a report: claims that hold, cells that agree, and the largest deviation.

use serde::Serialize;

use crate::{Agreement, Report, Row, Section};

/// The summary of a report.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// One entry a section, in the report's order.
    pub sections: Vec<SectionSummary>,
    /// The cells outside their tolerance, the largest deviation first.
    pub worst: Vec<WorstCell>,
    /// How far off the middle one of the compared cells is, as a factor of at least 1 (2: double or
    /// half). Cells whose ratio is no positive number are not in it; none without others.
    pub typical_factor: Option<f64>,
}

/// The summary of a section.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SectionSummary {
    /// The id of the section.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Where in the paper; empty for an experiment of ours.
    pub paper: String,
    /// Claims that hold.
    pub held: usize,
    /// Claims that fail.
    pub failed: usize,
    /// Cells that the model was calibrated on.
    pub calibration: Cells,
    /// Cells with a published figure that the model was not calibrated on.
    pub prediction: Cells,
    /// Rows without a published figure to compare with.
    pub unpublished: usize,
}

/// How many cells were compared with a published figure, and how many agreed.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, derive_more::Add, derive_more::Sum,
)]
pub struct Cells {
    /// Cells within their tolerance; at most `compared`.
    pub within: usize,
    /// Cells that have a published figure.
    pub compared: usize,
}

/// A cell outside its tolerance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorstCell {
    /// The id of its section.
    pub section: String,
    /// The cell.
    pub row: Row,
    /// How far it deviates.
    pub agreement: Agreement,
}

impl Report {
    /// Counts claims and cells over all sections.
    pub fn summary(&self) -> Summary {
        let sections = self.sections.iter().map(Section::summary).collect();
        let mut worst: Vec<WorstCell> = self.sections.iter().flat_map(Section::outside).collect();
        worst.sort_by(|a, b| b.agreement.distance.total_cmp(&a.agreement.distance));
        let rows = self.sections.iter().flat_map(|section| &section.rows);
        Summary {
            sections,
            worst,
            typical_factor: typical_factor(rows),
        }
    }
}

/// The median of the ratios of `rows`, each turned so that it is at least 1.
fn typical_factor<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<f64> {
    let ratios = rows.filter_map(Row::ratio).filter(|ratio| *ratio > 0.0);
    let mut factors: Vec<f64> = ratios.map(|ratio| ratio.max(1.0 / ratio)).collect();
    factors.sort_by(f64::total_cmp);
    factors.get(factors.len() / 2).copied()
}

impl Section {
    /// Counts the claims and cells of this section.
    pub fn summary(&self) -> SectionSummary {
        let held = self.verdicts.iter().filter(|verdict| verdict.holds).count();
        let mut summary = SectionSummary {
            id: self.id.clone(),
            title: self.title.clone(),
            paper: self.paper.clone(),
            held,
            failed: self.verdicts.len() - held,
            ..SectionSummary::default()
        };
        for row in &self.rows {
            match (self.agreement(row), row.calibration) {
                (Some(agreement), true) => summary.calibration.count(agreement),
                (Some(agreement), false) => summary.prediction.count(agreement),
                (None, _) => summary.unpublished += 1,
            }
        }
        summary
    }

    /// Ours against published for a row of this section, under the tolerance of its metric.
    pub fn agreement(&self, row: &Row) -> Option<Agreement> {
        row.agreement(self.tolerance(&row.metric, &row.unit))
    }

    /// The cells outside their tolerance.
    fn outside(&self) -> impl Iterator<Item = WorstCell> + '_ {
        self.rows.iter().filter_map(|row| {
            let agreement = self.agreement(row).filter(|agreement| !agreement.within)?;
            Some(WorstCell {
                section: self.id.clone(),
                row: row.clone(),
                agreement,
            })
        })
    }
}

impl Summary {
    /// Claims that hold, and claims in all.
    pub fn claims(&self) -> (usize, usize) {
        let held = self.sections.iter().map(|section| section.held).sum();
        let failed: usize = self.sections.iter().map(|section| section.failed).sum();
        (held, held + failed)
    }

    /// Cells that the model was calibrated on, over all sections.
    pub fn calibration(&self) -> Cells {
        self.sections
            .iter()
            .map(|section| section.calibration)
            .sum()
    }

    /// Published cells that the model was not calibrated on, over all sections.
    pub fn prediction(&self) -> Cells {
        self.sections.iter().map(|section| section.prediction).sum()
    }

    /// Cells compared, calibration and prediction together.
    pub fn compared(&self) -> usize {
        (self.calibration() + self.prediction()).compared
    }
}

impl Cells {
    fn count(&mut self, agreement: Agreement) {
        self.compared += 1;
        self.within += usize::from(agreement.within);
    }
}
