//! Who waited while CPUs idled, where nobody recorded which CPUs tasks may use: neither `affinity`
//! nor `idle-beside` can be given then, and one of them is true.

use serde::Serialize;
use warmq_units::{CpuId, CpuSet, Duration, TaskId};

use crate::facts::Facts;
use crate::words::{list, span, thousandths};
use crate::{About, Need};

/// Less waiting beside idle CPUs is not mentioned.
const LEAST: Duration = Duration::from_ms(500);
/// Of what a task wanted, it waited for so much, in thousandths; and of that, a CPU idled for so
/// much: as for the verdicts.
const LEAST_WAITED: u64 = 400;
const LEAST_IDLE: u64 = 500;
/// So many tasks are named.
const MOST_NAMED: usize = 5;

/// Tasks that waited while CPUs idled, of which nobody knows whether they may use these.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unbound {
    /// Who; whoever waited longest beside idle CPUs comes first.
    pub tasks: Vec<About>,
    /// The CPUs that idled, each for half of that time and more.
    pub cpus: Vec<u16>,
    /// How long the first of the tasks waited, in ns.
    pub waited_ns: u64,
    /// For how much of that some CPU idled, in ns.
    pub idle_ns: u64,
}

impl Unbound {
    pub(crate) fn of(facts: &Facts<'_>) -> Option<Unbound> {
        let idled = |id: TaskId| facts.tally(id).idle.inside;
        let is_one = |id: &TaskId| {
            let (tally, idled) = (facts.tally(*id), idled(*id));
            idled >= LEAST
                && thousandths(tally.waited, tally.ran + tally.waited) >= LEAST_WAITED
                && thousandths(idled, tally.waited) >= LEAST_IDLE
                && !facts.is_kernel(*id)
        };
        let mut tasks: Vec<TaskId> = facts.ids().filter(is_one).collect();
        tasks.sort_by_key(|id| (std::cmp::Reverse(idled(*id)), *id));
        let worst = *tasks.first()?;
        let known = !facts.watcher.lacks.contains(&Need::Affinities);
        (!known).then(|| Unbound {
            cpus: facts.watcher.idle_for(idled(worst) / 2).collect(),
            waited_ns: facts.tally(worst).waited.as_ns(),
            idle_ns: idled(worst).as_ns(),
            tasks: tasks.iter().map(|id| facts.about(*id)).collect(),
        })
    }
}

/// In a sentence.
pub(crate) fn sentence(unbound: &Unbound) -> String {
    let mut names = unbound.tasks.iter().map(About::shown);
    let first = names.next().unwrap_or_default();
    let others = match list(&names.collect::<Vec<String>>(), MOST_NAMED) {
        none if none.is_empty() => none,
        others => format!("; so did {others}"),
    };
    let cpus: CpuSet = unbound.cpus.iter().map(|cpu| CpuId(*cpu)).collect();
    let cpus = match unbound.cpus.len() {
        0 => "other CPUs".to_owned(),
        1 => format!("CPU {cpus}"),
        _ => format!("CPUs {cpus}"),
    };
    let time = |ns| span(Duration::from_ns(ns));
    format!(
        "{cpus} idled for {} of the {} for which {first} waited{others}. The recording does not say \
         which CPUs tasks may use: either affinity keeps them from these, or balancing leaves them \
         where they are.",
        time(unbound.idle_ns),
        time(unbound.waited_ns)
    )
}
