//! `[[phase]]`: parts of a run that get metrics of their own.

use std::rc::Rc;

use warmq_kernel::Boot;
use warmq_scenario::EvalError;
use warmq_units::Instant;

use super::stage::Stage;

/// Sees to it that each phase is recorded when it begins, after what the counters have counted
/// until then.
pub(super) fn start(stage: &Rc<Stage>, boot: &mut Boot<'_>) -> Result<(), EvalError> {
    for (number, phase) in (0..).zip(stage.scenario().phases()) {
        let at = Instant(stage.bound.eval(&phase.at, &[])?);
        let stage = stage.clone();
        boot.operator(at, move |operator| async move {
            for (counter, total) in stage.counts() {
                operator.count(counter, total).await;
            }
            operator.phase(number).await;
        });
    }
    Ok(())
}
