//! Makes plans shorter.

use warmq_kernel::BootError;

use crate::plan::{Hold, Plan};

/// The shortest plan that still leads to the fault: steps are left out, many at first, then
/// interruptions, then what comes in is made less.
pub(crate) fn shortest(
    plan: Plan,
    mut leads: impl FnMut(&Plan) -> Result<bool, BootError>,
) -> Result<Plan, BootError> {
    let mut best = plan;
    loop {
        let before = best.clone();
        let mut many = best.steps.len().div_ceil(2);
        while many > 0 {
            best = without_steps(best, many, &mut leads)?;
            many /= 2;
        }
        best = without_pairs(best, &mut leads)?;
        best = simpler(best, &mut leads)?;
        if best == before {
            return Ok(best);
        }
    }
}

/// Leaves out `many` neighbouring steps wherever that can be, from the end.
fn without_steps(
    plan: Plan,
    many: usize,
    leads: &mut impl FnMut(&Plan) -> Result<bool, BootError>,
) -> Result<Plan, BootError> {
    let (mut best, mut end) = (plan.clone(), plan.steps.len());
    while end > 0 {
        let from = end.saturating_sub(many);
        let mut shorter = best.clone();
        shorter.steps.drain(from..end.min(best.steps.len()));
        if leads(&shorter)? {
            best = shorter;
        }
        end = from;
    }
    Ok(best)
}

/// Of plans with more steps than this, no pairs are tried.
const MOST_OF_PAIRS: usize = 24;

/// Leaves out two steps at once, such as a wakeup and the sleep that it needs.
fn without_pairs(
    plan: Plan,
    leads: &mut impl FnMut(&Plan) -> Result<bool, BootError>,
) -> Result<Plan, BootError> {
    let mut best = plan;
    let mut later = best.steps.len();
    while later > 0 && best.steps.len() <= MOST_OF_PAIRS {
        later -= 1;
        for earlier in (0..later).rev() {
            let mut shorter = best.clone();
            shorter.steps.remove(later);
            shorter.steps.remove(earlier);
            if leads(&shorter)? {
                (best, later) = (shorter, later - 1);
                break;
            }
        }
    }
    Ok(best)
}

/// Leaves out interruptions, and makes those that are left short.
fn simpler(
    plan: Plan,
    leads: &mut impl FnMut(&Plan) -> Result<bool, BootError>,
) -> Result<Plan, BootError> {
    let mut best = plan;
    for at in 0..best.steps.len() {
        for simple in with_less(&best, at) {
            if leads(&simple)? {
                best = simple;
                break;
            }
        }
    }
    Ok(best)
}

/// Plans in which a step is interrupted less: not at all, where it begins or where it goes on; or
/// by fewer others.
fn with_less(plan: &Plan, at: usize) -> Vec<Plan> {
    let Some(hold) = plan.steps[at].hold else {
        return Vec::new();
    };
    let with = |hold: Option<Hold>| {
        let mut plan = plan.clone();
        plan.steps[at].hold = hold;
        plan
    };
    let mut late = with(None);
    let end = (at + usize::from(hold.steps) + 1).min(plan.steps.len());
    late.steps[at..end].rotate_left(1);
    let shorter = (1..hold.steps).map(|steps| with(Some(Hold { steps, ..hold })));
    [with(None), late].into_iter().chain(shorter).collect()
}
