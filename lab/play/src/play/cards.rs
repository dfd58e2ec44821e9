//! The cards by which sources reach the machine.
//!
//! All sources that do not say which CPUs take their interrupts share a card; so do those that name
//! the same CPUs, if they name the same model. One that a change moves has a card of its own, so
//! that it moves no other.

use warmq_kernel::{Boot, Nic};
use warmq_machine::CardModel;
use warmq_scenario::program::{SourceProgram, SourceSpec};
use warmq_scenario::{Card, Object, ObjectKind};
use warmq_units::{CpuSet, Duration};

use super::Trouble;
use super::stage::Stage;

/// The link of each card: 1 Gbit/s unless its model says otherwise, and 50 us for each packet. A
/// source that names no model has that of the machine, if it is known.
const LINK: (u64, Duration) = (1_000_000_000, Duration::from_us(50));

/// What is wrong with a source whose interrupts no CPU could take.
pub(super) const NO_CPU: &str = "a source whose `cpu` the machine lacks";

/// What sources have in common that share a card: the CPUs that take its interrupts (`None`: all of
/// them), and its model, if it has one.
type Kind = (Option<CpuSet>, Option<Card>);

/// The cards that sources share.
pub(super) struct Cards(Vec<(Kind, Nic)>);

impl Cards {
    /// The card of those that name neither CPUs nor a model, if there are any. It is the first, so
    /// that its interrupts go to the same CPUs wherever those of other sources go.
    pub(super) fn new(stage: &Stage, boot: &mut Boot<'_>) -> Cards {
        let anywhere = |object: &Object| match &object.kind {
            ObjectKind::Source(source) => source.cpu.is_none() && source.card.is_none(),
            _ => false,
        };
        let any = stage.scenario().objects().iter().any(anywhere);
        let kind = (None, None);
        let first = any.then(|| card(&kind, boot));
        Cards(first.map(|nic| (kind, nic)).into_iter().collect())
    }

    /// The card of a source.
    ///
    /// # Errors
    /// The machine has none of the CPUs that it names.
    pub(super) fn of(
        &mut self,
        of: &SourceProgram,
        spec: &SourceSpec,
        boot: &mut Boot<'_>,
    ) -> Result<Nic, Trouble> {
        if spec.cpus.as_ref().is_some_and(CpuSet::is_empty) {
            return Err(Trouble::Lacking(NO_CPU.to_owned()));
        }
        let kind = (spec.cpus.clone(), of.source.card);
        if spec.moves {
            return Ok(card(&kind, boot));
        }
        if let Some((_, shared)) = self.0.iter().find(|(known, _)| *known == kind) {
            return Ok(*shared);
        }
        let nic = card(&kind, boot);
        self.0.push((kind, nic));
        Ok(nic)
    }
}

fn card((cpus, model): &Kind, boot: &mut Boot<'_>) -> Nic {
    let named = model.and_then(|card| CardModel::named(card.name()));
    let nic = match named.copied().or(boot.card()) {
        Some(model) => boot.nic_of(&model, LINK.1),
        None => boot.nic(LINK.0, LINK.1),
    };
    if let Some(cpus) = cpus {
        boot.steer(nic, cpus);
    }
    nic
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_card_that_a_scenario_can_name_has_a_model() {
        let modelled: Vec<_> = warmq_machine::CARD_MODELS
            .iter()
            .map(|model| model.name)
            .collect();
        assert_eq!(Card::NAMES.map(|(name, _)| name).to_vec(), modelled);
        for (name, card) in Card::NAMES {
            assert_eq!(card.name(), name);
        }
    }
}
