//! Which threads send for which sources, and on which CPUs.

use warmq_scenario::program::{Cpus, Planned, SourceProgram, SourceSpec, To, Whom};
use warmq_scenario::{Bound, EvalError, ObjectId, Set, TaskKindId};
use warmq_units::CpuSet;

use crate::error::PlayError;
use crate::sys::memory::event_fd;

/// A thread that sends.
#[derive(Clone, Debug, Default)]
pub struct SenderThread {
    /// Its sources: the place of their table among all tables of sources, and their number.
    pub sources: Vec<(usize, u64)>,
    /// The CPUs that it may use; none: all of the run.
    pub cpus: Option<CpuSet>,
    /// Whether it spins between datagrams: nobody else may use its CPUs.
    pub spins: bool,
    /// Whether it hears answers.
    pub echoes: bool,
    /// Whether changes of the scenario are about its sources.
    pub changes: bool,
    /// Readable when there are new orders.
    pub news_fd: i32,
}

/// What sources of one thread have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Common {
    /// They name no CPUs.
    Anywhere,
    /// They name these CPUs, and stay there.
    At(CpuSet),
    /// A single one, which a change moves.
    Moving(ObjectId, u64, Option<CpuSet>),
}

/// The threads for all sources.
///
/// # Errors
/// A source whose CPUs this machine lacks; a number that cannot be computed; no descriptor is left.
pub fn plan(
    bound: &Bound,
    cpus: &Cpus,
    sources: &[SourceProgram],
    changes: &[Planned],
) -> Result<Vec<SenderThread>, PlayError> {
    let mut shared: Vec<(Common, SenderThread)> = Vec::new();
    for (place, of) in sources.iter().enumerate() {
        for number in 0..bound.objects(of.id) {
            let spec = of.spec(number, bound, (cpus, changes))?;
            let common = common(bound, cpus, (of, number), &spec)?;
            let found = shared.iter().position(|(known, _)| *known == common);
            let at = match found {
                Some(at) => at,
                None => {
                    shared.push((common, thread(spec.cpus)?));
                    shared.len() - 1
                }
            };
            let thread = &mut shared[at].1;
            thread.sources.push((place, number));
            thread.echoes |= of.source.echo.is_some();
            thread.changes |= !spec.changes.is_empty();
        }
    }
    give_cpus(&mut shared, &cpus.all(), &busy(bound, cpus, changes)?);
    Ok(shared.into_iter().map(|(_, thread)| thread).collect())
}

fn thread(cpus: Option<CpuSet>) -> Result<SenderThread, PlayError> {
    let news_fd = event_fd().map_err(|error| {
        let fix = "allow more descriptors (ulimit -n)";
        PlayError::refused("a descriptor for a source", &error, fix)
    })?;
    Ok(SenderThread {
        cpus,
        news_fd,
        ..SenderThread::default()
    })
}

/// Lets a thread spin whose CPUs nobody else may use. Where no CPUs are named, it is given the last
/// one that is left, if there is one.
fn give_cpus(threads: &mut [(Common, SenderThread)], all: &CpuSet, busy: &CpuSet) {
    let claims: Vec<CpuSet> = threads
        .iter()
        .map(|(_, claim)| claim.cpus.clone().unwrap_or_default())
        .collect();
    // Where a source moves to is not known before: it may be anywhere.
    let moves = |common: &Common| matches!(common, Common::Moving(..));
    let any_moves = threads.iter().any(|(common, _)| moves(common));
    for (index, (common, thread)) in threads.iter_mut().enumerate() {
        let mut others = busy.clone();
        for (_, claim) in claims
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != index)
        {
            claim.iter().for_each(|cpu| others.insert(cpu));
        }
        let free = |cpus: &CpuSet| cpus.iter().all(|cpu| !others.contains(cpu));
        match common {
            _ if any_moves => {}
            Common::Anywhere => {
                let last = all.iter().filter(|cpu| !others.contains(*cpu)).last();
                thread.cpus = last.map(|cpu| [cpu].into_iter().collect());
                thread.spins = last.is_some();
            }
            Common::At(cpus) => thread.spins = free(cpus),
            Common::Moving(..) => {}
        }
    }
}

fn common(
    bound: &Bound,
    cpus: &Cpus,
    (of, number): (&SourceProgram, u64),
    spec: &SourceSpec,
) -> Result<Common, PlayError> {
    if spec.cpus.as_ref().is_some_and(CpuSet::is_empty) {
        let name = &bound.scenario().object(of.id).name;
        return Err(PlayError::Refused {
            what: format!("datagrams of source `{name}` arrive on CPUs that this machine lacks"),
            why: format!("it has {} CPUs that may be used", cpus.all().len()),
            fix: "name another `cpu`".to_owned(),
        });
    }
    Ok(match (spec.moves, spec.cpus.clone()) {
        (true, named) => Common::Moving(of.id, number, named),
        (false, Some(named)) => Common::At(named),
        (false, None) => Common::Anywhere,
    })
}

/// The CPUs that tasks may use, now or later.
fn busy(bound: &Bound, cpus: &Cpus, changes: &[Planned]) -> Result<CpuSet, EvalError> {
    let mut busy = CpuSet::default();
    let mut add = |those: &CpuSet| those.iter().for_each(|cpu| busy.insert(cpu));
    let kinds = 0..bound.scenario().tasks().len() as u32;
    for id in kinds.map(TaskKindId) {
        for number in 0..bound.tasks(id) {
            let spec = bound.spec(cpus, id, number)?;
            add(&spec.cpus.unwrap_or_else(|| cpus.all()));
        }
    }
    for set in bound.scenario().set_by_steps() {
        if let Set::Cpus(place) = set {
            add(&cpus.reach(bound, place));
        }
    }
    let of_tasks = changes
        .iter()
        .filter(|change| matches!(change.whom, Whom::Tasks(..)));
    for to in of_tasks.flat_map(|change| &change.set) {
        if let To::Cpus(those) = to {
            add(those);
        }
    }
    Ok(busy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::places;
    use crate::testing::bound;
    use warmq_units::CpuId;

    /// The threads of a machine of four CPUs, which share nothing.
    fn threads(text: &str) -> Result<Vec<SenderThread>, PlayError> {
        let root = tempfile::tempdir().expect("a folder");
        let all: CpuSet = (0..4).map(CpuId).collect();
        let bound = bound(text);
        let sources = bound.compile().sources;
        let cpus = places::cpus(root.path(), &all);
        let changes = bound.planned(&cpus).expect("numbers");
        plan(&bound, &cpus, &sources, &changes)
    }

    fn told(text: &str) -> Vec<(Option<String>, usize, bool)> {
        let threads = threads(text).unwrap_or_else(|error| panic!("{error}"));
        let told = threads.iter().map(|thread| {
            let cpus = thread.cpus.as_ref().map(ToString::to_string);
            (cpus, thread.sources.len(), thread.spins)
        });
        told.collect()
    }

    fn scenario(task: &str, sources: &[&str], rest: &str) -> String {
        let mut text = format!("[datagram.d]\n[task.t]\n{task}\nbody = [{{ receive = \"d\" }}]\n");
        for (number, source) in sources.iter().enumerate() {
            text += &format!(
                "[source.s{number}]\nto = \"d\"\nbytes = \"64B\"\nrate = \"9 per s\"\n{source}\n"
            );
        }
        text + rest
    }

    #[test]
    fn a_thread_spins_only_where_nobody_else_may_run() {
        let on = |cpu: &str| Some(cpu.to_owned());
        let free = scenario("cpus = \"cpus 0-1\"", &["", ""], "");
        assert_eq!(told(&free), [(on("3"), 2, true)]);
        let none = scenario("", &["", ""], "");
        assert_eq!(told(&none), [(None, 2, false)]);
        let named = scenario(
            "cpus = \"cpu 0\"",
            &["cpu = \"cpu 3\"", "", "cpu = \"cpu 0\"", "cpu = \"cpu 3\""],
            "",
        );
        let wanted = [(on("3"), 2, true), (on("2"), 1, true), (on("0"), 1, false)];
        assert_eq!(told(&named), wanted);
        let overlapping = scenario(
            "cpus = \"cpu 0\"",
            &["cpu = \"cpu 3\"", "cpu = \"cpus 2-3\""],
            "",
        );
        let wanted = [(on("3"), 1, false), (on("2-3"), 1, false)];
        assert_eq!(told(&overlapping), wanted);
    }

    #[test]
    fn a_change_that_may_bring_somebody_keeps_threads_from_spinning() {
        let comes = "[[change]]\nat = \"1s\"\ntask = \"t\"\nset = { cpus = \"cpu 3\" }";
        let text = scenario("cpus = \"cpu 0\"", &["cpu = \"cpu 3\""], comes);
        assert_eq!(told(&text), [(Some("3".to_owned()), 1, false)]);
        let moves = "[[change]]\nat = \"1s\"\nsource = \"s0\"\nset = { cpu = \"cpu 1\" }";
        let text = scenario("cpus = \"cpu 0\"", &["", "cpu = \"cpu 3\""], moves);
        assert_eq!(
            told(&text),
            [(None, 1, false), (Some("3".to_owned()), 1, false)]
        );
    }

    #[test]
    fn a_source_on_cpus_that_the_machine_lacks_is_refused() {
        let error = threads(&scenario("", &["cpu = \"cpu 9\""], "")).expect_err("refused");
        assert_eq!(error.exit_code(), 4);
        assert!(error.to_string().contains("source `s0`"), "{error}");
    }
}
