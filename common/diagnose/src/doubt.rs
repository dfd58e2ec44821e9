//! Where the kernel's own accounts contradict a trace, and why a trace may not be fit to judge by.
//!
//! A kernel counts how long each thread waits for a CPU, whatever its tracepoints report. A
//! recorder that misses switches makes waits of nothing; the account shows which.

use warmq_trace::{Account, Header, players};
use warmq_units::{Duration, TaskId};

use crate::facts::Facts;
use crate::words::{list, part, share, span, thousandths};

/// A trace may have so much more than an account, since the two do not begin and end at the same
/// instants: a part in thousandths, and a span.
const MORE: u64 = 1_100;
const APART: Duration = Duration::from_ms(20);
/// So many tasks are named.
const MOST_NAMED: usize = 5;
/// Of the CPUs' time, in thousandths: if others than a scenario's tasks, or a hypervisor, had so
/// much, times say as much of them as of what is judged.
const LEAST_OTHERS: u64 = 100;

/// What the kernel counted of a thread, if that is known.
pub(crate) fn account(header: &Header, tid: u32) -> Option<&Account> {
    // The watcher has sorted them.
    let accounts = &header.accounts;
    let place = accounts.binary_search_by_key(&tid, |account| account.tid);
    place.ok().map(|place| &accounts[place])
}

fn is_beyond(waited: Duration, counted: Duration) -> bool {
    waited > part(counted, MORE) + APART
}

/// Whether the kernel counted much less of waiting than the trace has of a task: how much.
pub(crate) fn contradicted(facts: &Facts<'_>, id: TaskId) -> Option<Duration> {
    let account = account(facts.header, facts.task(id).who.tid?)?;
    // It counts a wait when it ends.
    let unfinished = match account.runnable {
        true => facts.task(id).unfinished,
        false => Duration::ZERO,
    };
    let waited = facts.tally(id).waited.saturating_sub(unfinished);
    is_beyond(waited, account.waited).then_some(account.waited)
}

/// Where accounts contradict the trace, a sentence each.
pub(crate) fn contradictions(facts: &Facts<'_>) -> Vec<String> {
    let mut said = Vec::new();
    let waited_longer = |id: TaskId| {
        let counted = contradicted(facts, id)?;
        let waited = span(facts.tally(id).waited);
        Some(format!(
            "{} {waited}, and not {}",
            facts.name(id),
            span(counted)
        ))
    };
    let tasks: Vec<String> = facts.ids().filter_map(waited_longer).collect();
    if !tasks.is_empty() {
        said.push(format!(
            "The kernel's own account (schedstat) contradicts the trace, by which these waited longer; no verdict \
             rests on them: {}.",
            list(&tasks, MOST_NAMED)
        ));
    }
    let longest = facts.ids().map(|id| facts.tally(id).waited).max();
    if let (Some(pressure), Some(longest)) = (facts.header.pressure, longest)
        && is_beyond(longest, pressure)
    {
        said.push(format!(
            "The kernel's own account (pressure) contradicts the trace: some task waited for a CPU for {} in all, \
             and by the trace one waited for {}.",
            span(pressure),
            span(longest)
        ));
    }
    said
}

/// Why what was recorded is not fit to judge a scheduler by, a sentence each.
pub(crate) fn unfit(facts: &Facts<'_>) -> Vec<String> {
    let cpus = facts.watcher.cpu_count() as u64;
    let all = Duration(facts.period.0.saturating_mul(cpus));
    let mut why = Vec::new();
    let mut say = |who: &str, had: Duration| {
        if thousandths(had, all) >= LEAST_OTHERS {
            let had = share(thousandths(had, facts.period));
            why.push(format!("{who} had {had} of {cpus} CPUs"));
        }
    };
    say("the hypervisor", facts.watcher.stolen);
    if facts.header.world != "lab" {
        say("other programs than those of the scenario", others(facts));
    }
    why
}

/// How long others ran than the tasks of a scenario, if it is a recording of one.
fn others(facts: &Facts<'_>) -> Duration {
    let is_role = |id: &TaskId| facts.task(*id).who.role.is_some();
    if !facts.ids().any(|id| is_role(&id)) {
        return Duration::ZERO;
    }
    let of_player = |id: &TaskId| players::is_one(facts.task(*id).who.comm);
    let others = facts
        .ids()
        .filter(|id| !is_role(id) && !of_player(id) && !facts.is_kernel(*id));
    others.map(|id| facts.tally(id).ran).sum()
}
