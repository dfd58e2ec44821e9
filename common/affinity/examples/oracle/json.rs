//! Answers as data: one object. Times are in units, as in the file.

use serde_json::{Value, json};
use warmq_affinity::{Best, Doing, Figure, Gap, Gaps, Instance, Schedule, Span, TooLarge};

use super::{Answer, Drawn};

/// All about one instance.
pub fn answer(answer: &Answer) -> Value {
    let instance = &answer.instance;
    let counts = answer.online.counts;
    let orders = answer.orders.iter().map(
        |(name, schedule)| json!({ "name": name, "schedule": self::schedule(instance, schedule) }),
    );
    json!({
        "title": instance.title,
        "cpus": instance.cpus,
        "orders": orders.collect::<Vec<Value>>(),
        "online": {
            "balance_every": answer.policy.balance_every,
            "split_after": answer.policy.balancing.split_after,
            "groups_moved": counts.groups_moved,
            "unmanaged_moved": counts.unmanaged_moved,
            "splits": counts.splits,
            "changes": counts.changes,
            "schedule": schedule(instance, &answer.online.schedule),
        },
        "whole_bins": best(instance, &answer.whole_bins),
        "optimum": best(instance, &answer.optimum),
    })
}

/// `exact` says whether some schedule ends then; `end` is never above the true optimum.
fn best(instance: &Instance, best: &Result<Best, TooLarge>) -> Value {
    match best {
        Ok(best) => json!({
            "end": best.end,
            "exact": best.schedule.is_some(),
            "schedule": best.schedule.as_ref().map(|found| schedule(instance, found)),
        }),
        Err(error) => json!({ "end": null, "exact": false, "why": error.to_string() }),
    }
}

fn schedule(instance: &Instance, schedule: &Schedule) -> Value {
    let cpus = schedule.cpus.iter().map(|spans| {
        let spans = spans.iter().map(|ran| span(instance, ran));
        spans.collect::<Vec<Value>>()
    });
    json!({
        "end": schedule.end(),
        "last_busy_unit": schedule.end().saturating_sub(1),
        "penalty": schedule.penalty(),
        "cpus": cpus.collect::<Vec<Vec<Value>>>(),
    })
}

fn span(instance: &Instance, span: &Span) -> Value {
    let (what, task) = match span.doing {
        Doing::Fill => ("fill", None),
        Doing::WriteBack => ("write-back", None),
        Doing::Run(task) => ("run", Some(instance.task(task).name.as_str())),
    };
    json!({ "from": span.from, "to": span.to, "what": what, "task": task })
}

/// The gaps of many instances.
pub fn gaps(drawn: &Drawn, gaps: &Gaps) -> Value {
    let worst = gaps.worst();
    json!({
        "instances": gaps.all.len(),
        "seed": drawn.seed,
        "online": figures(gaps, Gap::online_permille),
        "whole_bins": figures(gaps, Gap::whole_bins_permille),
        "worst": gap(worst),
        "worst_command": drawn.command(worst.seed),
        "gaps": gaps.all.iter().map(gap).collect::<Vec<Value>>(),
    })
}

/// How much later than the optimum, in tenths of a percent.
fn figures(gaps: &Gaps, figure: Figure) -> Value {
    json!({
        "optimal": gaps.at_most(figure, 0),
        "mean_permille": gaps.mean(figure),
        "p50_permille": gaps.percentile(figure, 50),
        "p90_permille": gaps.percentile(figure, 90),
        "p99_permille": gaps.percentile(figure, 99),
        "worst_permille": gaps.percentile(figure, 100),
    })
}

fn gap(gap: &Gap) -> Value {
    json!({
        "seed": gap.seed,
        "online": gap.online,
        "whole_bins": gap.whole_bins,
        "optimum": gap.optimum,
        "split": gap.split,
    })
}
