//! The kernel that the lab plays: whose scheduler `kernel` is, and where it can be preempted.

use std::collections::BTreeMap;

use warmq_config::{Chosen, Setting, Value, settings};
use warmq_kernel::Preemption;
use warmq_sched::{COMPILED, Entry, backports, of_kernel};
use warmq_units::Release;

use super::compiled::SERIES;
use super::setting;
use crate::plan::{KERNEL, Plan};
use crate::simulator::RunError;

/// The preemption model that a kernel has if nothing else is set.
const DEFAULT: &str = "default";

/// The work begins anywhere in a period of the ticks.
const DRAWN: &str = "drawn";

/// What can be set in the lab.
pub(super) fn settings() -> Vec<Setting> {
    settings! {
        KERNEL, text("6.18"),
            "with the scheduler `kernel`: which kernel's, from 6.6 on",
            "the series of which most is known";
        "preempt", choice(&[DEFAULT, "none", "voluntary", "full", "lazy"]),
            "the preemption model of the scheduler's kernel",
            "preempt= of its command line; which there are depends on the kernel";
        "ticks", choice(&["at-start", DRAWN]),
            "where in a period of the ticks the work begins: as one does, or where the seed says",
            "a real start may be anywhere; what hangs on it differs from seed to seed if it is drawn";
    }
}

fn text<'p>(plan: &'p Plan, name: &str) -> Option<&'p str> {
    match plan.world.settings.get(name) {
        Some(Value::Text(text)) => Some(text),
        _ => None,
    }
}

/// Whether the seed of `plan` says where in a period of the ticks the work begins.
pub(super) fn drawn_ticks(plan: &Plan) -> bool {
    text(plan, "ticks") == Some(DRAWN)
}

/// The scheduler that `plan` names.
pub(super) fn entry(plan: &Plan, is_compiled: bool) -> Result<&'static Entry, RunError> {
    let name = &plan.scheduler.name;
    if is_compiled {
        return Ok(&COMPILED);
    }
    if name != KERNEL {
        let known = warmq_sched::scheduler(name);
        return known.ok_or_else(|| setting(format!("no scheduler is called {name}")));
    }
    let release = text(plan, KERNEL).unwrap_or("6.18");
    of_kernel(release).ok_or_else(|| {
        setting(format!(
            "the lab has no scheduler of kernel {release}: name a series from 6.6 on, or a scheduler \
             of the lab"
        ))
    })
}

/// That the kernel of `plan` is played as one of another series, if so.
pub(super) fn played_as(plan: &Plan, entry: &Entry, chosen: &Chosen) -> Option<String> {
    let release = text(plan, KERNEL)?;
    let series = Release::at_start_of(release).map(Release::series);
    let is_of = |known: &str| series == Release::at_start_of(known);
    let name = &plan.scheduler.name;
    if entry.name == COMPILED.name {
        let series = chosen.choice(SERIES);
        return (!is_of(series)).then(|| {
            format!(
                "{name} is run by kernel {series}, as its setting `{SERIES}` says, not {release}."
            )
        });
    }
    let known = entry.name.strip_prefix("eevdf-")?;
    (name == KERNEL && !is_of(known)).then(|| {
        let name = entry.name;
        format!("The lab does not know kernel {release}, and plays it as {name}.")
    })
}

/// The numbers of the series of a release.
/// The settings of the scheduler of `plan`; those of a kernel's own follow from its release.
pub(super) fn scheduler_settings(plan: &Plan) -> BTreeMap<String, Value> {
    let is_own = plan.scheduler.name == KERNEL;
    let release = text(plan, KERNEL).filter(|_| is_own);
    let mut settings = release.map(backports).unwrap_or_default();
    settings.extend(plan.scheduler.settings.clone());
    settings
}

/// Whether its kernel counts what deadline servers have reserved where deadline tasks are admitted.
pub(super) fn counts_servers(entry: &Entry, chosen: &Chosen) -> bool {
    const NAME: &str = "fair_server_counts";
    let known = entry.settings();
    let says = known.iter().any(|setting| setting.name == NAME);
    !says || chosen.flag(NAME)
}

/// Where the kernel of `entry` is preempted in `plan`; `None`: as it is by default.
pub(super) fn preemption(plan: &Plan, entry: &Entry) -> Result<Option<Preemption>, RunError> {
    let Some(wanted) = text(plan, "preempt").filter(|wanted| *wanted != DEFAULT) else {
        return Ok(None);
    };
    let found = entry.models.iter().find(|model| model.name() == wanted);
    let names: Vec<&str> = entry.models.iter().map(|model| model.name()).collect();
    match found {
        Some(model) => Ok(Some(*model)),
        None => Err(setting(format!(
            "the kernel of {} has no preempt={wanted}: write {}",
            entry.name,
            names.join(" or ")
        ))),
    }
}
