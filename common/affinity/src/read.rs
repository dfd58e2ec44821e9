//! A file of the oracle: an instance, orders to compare, and what the online algorithm may do.

use warmq_config::{Document, Fields, Item, Problems};
use warmq_units::TaskId;

use crate::model::{Costs, Fragment, FragmentId, Instance, Penalty, Run, Task};
use crate::online::Policy;
use crate::order::Order;
use crate::rules::Reference;

/// The longest time that a file may say, in units: so that whatever is asked for ends soon.
const LONGEST: u64 = 10_000;
/// The most lines of a cache.
const MOST_LINES: u64 = 10_000;
/// The most CPUs; more than three or four are too many for an exact answer, but not for the rest.
const MOST_CPUS: u64 = 8;
/// The most runs of all tasks.
const MOST_RUNS: usize = 500;

/// What a file of the oracle says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The instance.
    pub instance: Instance,
    /// Orders of execution by name, each an entry a CPU without the first task.
    pub orders: Vec<(String, Order)>,
    /// What the online algorithm does where the paper leaves it open.
    pub policy: Policy,
}

impl Plan {
    /// `instance` without orders, under the usual policy.
    pub fn usual(instance: Instance) -> Plan {
        Plan {
            policy: Policy::usual(&instance),
            orders: Vec::new(),
            instance,
        }
    }

    /// Reads `text`; messages call the file `file`.
    ///
    /// # Errors
    /// Everything that is wrong with it, each with its place and a fix.
    ///
    /// ```
    /// let text = r#"
    ///     title = "Two tasks on one fragment"
    ///     cpus = 2
    ///     cache = { lines = 1, fill = 4, write_back = 4 }
    ///     fragment.rows = 1
    ///     task.reader = { fragment = "rows", run = 2, writes = false }
    ///     task.writer = { fragment = "rows", run = 3 }
    /// "#;
    /// let plan = warmq_affinity::Plan::read("two.toml", text).unwrap();
    /// assert_eq!(plan.instance.tasks.len(), 2);
    /// ```
    pub fn read(file: &str, text: &str) -> Result<Plan, Problems> {
        Document::parse(file, text)?.read(plan)
    }
}

fn plan(fields: &Fields<'_>) -> Option<Plan> {
    let instance = instance(fields);
    let orders = fields.tables("order");
    let online = fields.table("online");
    fields.finish();
    let instance = instance?;
    let orders = orders.iter().filter_map(|table| order(table, &instance));
    let orders: Vec<_> = orders.collect();
    let usual = Policy::usual(&instance);
    let policy = online.map_or(Some(usual), |table| policy(&table, usual));
    Some(Plan {
        instance,
        orders,
        policy: policy?,
    })
}

fn instance(fields: &Fields<'_>) -> Option<Instance> {
    let title = fields.required("title", "say what it is: title = \"...\"");
    let cpus = fields.required("cpus", "say how many: cpus = 2");
    let cache = fields.required(
        "cache",
        "say what it costs: cache = { lines = 1, fill = 4, write_back = 4 }",
    );
    let penalties = [
        ("lines", Penalty::Lines),
        ("whole-cache", Penalty::WholeCache),
    ];
    let penalty = fields.or("penalty", Penalty::Lines, |item| item.choice(&penalties));
    let fragments = fields.item("fragment");
    let tasks = fields.required(
        "task",
        "say who runs: task.v1 = { fragment = \"DF1\", run = 1 }",
    );
    let first = fields.item("first");

    let costs = cache.and_then(|item| costs(&item.table()?));
    let fragments = fragments.map_or(Some(Vec::new()), |item| {
        self::fragments(&item.table()?, costs?.lines)
    });
    let (costs, fragments) = (costs?, fragments?);
    let tasks = self::tasks(&tasks?.table()?, &fragments)?;
    let first = match first {
        Some(item) => Some(self::first(&item, &tasks)?),
        None => None,
    };
    Some(Instance {
        title: title?.text()?,
        cpus: cpus?.integer(1..=MOST_CPUS)? as usize,
        costs,
        penalty: penalty?,
        fragments,
        tasks,
        first,
    })
}

fn costs(table: &Fields<'_>) -> Option<Costs> {
    let lines = table.or("lines", 1, |item| item.integer(1..=MOST_LINES));
    let fill = table.required("fill", "say how long it takes to fill a line: fill = 4");
    let help = "say how long it takes to write a line back: write_back = 4";
    let write_back = table.required("write_back", help);
    table.finish();
    let costs = Costs {
        lines: lines?,
        fill: fill?.integer(0..=LONGEST)?,
        write_back: write_back?.integer(0..=LONGEST)?,
    };
    if costs.g() > LONGEST {
        let what = format!(
            "to fill and to write back the whole cache takes {} units",
            costs.g()
        );
        table.report(
            what,
            format!("let it be at most {LONGEST}: count time in larger units"),
        );
        return None;
    }
    Some(costs)
}

fn fragments(table: &Fields<'_>, lines: u64) -> Option<Vec<Fragment>> {
    let fragment = |(entry, item): (&warmq_config::Entry, Item<'_>)| {
        let size = item.count()?;
        if size == 0 || size > lines {
            let what = format!("a fragment of {size} lines");
            item.report(
                what,
                format!("write 1 to {lines}: a run's data fits into the cache"),
            );
            return None;
        }
        Some(Fragment {
            name: entry.key.clone(),
            lines: size,
        })
    };
    // All of them, so that every mistake is reported.
    let read: Vec<Option<Fragment>> = table.entries().map(fragment).collect();
    read.into_iter().collect()
}

fn tasks(table: &Fields<'_>, fragments: &[Fragment]) -> Option<Vec<Task>> {
    let task = |(entry, item): (&warmq_config::Entry, Item<'_>)| {
        let runs = runs_of(&item.table()?, fragments)?;
        let name = entry.key.clone();
        Some(Task { name, runs })
    };
    let read: Vec<Option<Task>> = table.entries().map(task).collect();
    let tasks: Vec<Task> = read.into_iter().collect::<Option<_>>()?;
    let runs: usize = tasks.iter().map(|task| task.runs.len()).sum();
    if tasks.is_empty() || runs > MOST_RUNS {
        table.report(
            format!("the tasks have {runs} runs"),
            format!("write 1 to {MOST_RUNS}"),
        );
        return None;
    }
    Some(tasks)
}

/// One run, or several one after another.
fn runs_of(table: &Fields<'_>, fragments: &[Fragment]) -> Option<Vec<Run>> {
    if table.find("runs").is_none() {
        return Some(vec![run_of(table, fragments)?]);
    }
    let runs = table.tables("runs");
    table.finish();
    if runs.is_empty() {
        table.report(
            "the task has no run",
            "write runs = [{ fragment = \"DF1\", run = 1 }, ...]",
        );
        return None;
    }
    let read: Vec<Option<Run>> = runs.iter().map(|run| run_of(run, fragments)).collect();
    read.into_iter().collect()
}

fn run_of(table: &Fields<'_>, fragments: &[Fragment]) -> Option<Run> {
    let fragment = table.item("fragment");
    let length = table.required("run", "say for how many units it runs: run = 1");
    let writes = table.item("writes");
    table.finish();
    if let (None, Some(writes)) = (&fragment, &writes) {
        writes.report(
            "nothing says what it writes",
            "name a fragment, or leave `writes` out",
        );
        return None;
    }
    let managed = fragment.is_some();
    let fragment = match fragment {
        Some(item) => Some(fragment_of(&item, fragments)?),
        None => None,
    };
    Some(Run {
        fragment,
        length: length?.integer(1..=LONGEST)?,
        writes: writes.map_or(Some(managed), |item| item.flag())?,
    })
}

fn fragment_of(item: &Item<'_>, fragments: &[Fragment]) -> Option<FragmentId> {
    let name = item.text()?;
    let names = || fragments.iter().map(|fragment| fragment.name.as_str());
    let index = names().position(|known| known == name);
    if index.is_none() && fragments.is_empty() {
        let help = format!("say how many lines it has: fragment.{name} = 1");
        item.report(format!("no fragment is called {name}"), help);
    } else if index.is_none() {
        item.unknown(format!("no fragment is called {name}"), &name, names());
    }
    index.map(|index| FragmentId(index as u32))
}

fn task_of(item: &Item<'_>, tasks: &[Task]) -> Option<TaskId> {
    let name = item.text()?;
    let names = || tasks.iter().map(|task| task.name.as_str());
    let index = names().position(|known| known == name);
    if index.is_none() {
        item.unknown(format!("no task is called {name}"), &name, names());
    }
    index.map(|index| TaskId(index as u32))
}

fn first(item: &Item<'_>, tasks: &[Task]) -> Option<TaskId> {
    let id = task_of(item, tasks)?;
    if tasks[id.index()].runs.len() > 1 {
        item.report(
            "the first task runs more than once",
            "give it one run, and others the rest",
        );
        return None;
    }
    Some(id)
}

fn order(table: &Fields<'_>, instance: &Instance) -> Option<(String, Order)> {
    let name = table.required("name", "say what it is: name = \"by CPU affinity\"");
    let help = "list the tasks of each CPU: cpus = [[\"v1\", \"v2\"], [\"v3\"]]";
    let cpus = table.required("cpus", help);
    table.finish();
    let (name, cpus) = (name?.text()?, cpus?);
    if instance.has_changes() {
        let what = "tasks with several runs cannot be put into an order by hand";
        cpus.report(what, "give every task one run, or leave the order out");
        return None;
    }
    let lists = cpus.list()?;
    if lists.len() > instance.cpus {
        let what = format!(
            "these are {} CPUs, and there are {}",
            lists.len(),
            instance.cpus
        );
        cpus.report(what, "write a list for each CPU");
        return None;
    }
    let named = lists.iter().map(|list| named(list, &instance.tasks));
    let named: Vec<Vec<TaskId>> = named.collect::<Option<_>>()?;
    complete(&cpus, &named, instance)?;
    let runs = |id: &TaskId| (*id, instance.task(*id).runs[0]);
    let ready = |ids: &Vec<TaskId>| {
        let ready = ids.iter().filter(|id| Some(**id) != instance.first);
        ready.map(runs).collect()
    };
    let mut order: Order = named.iter().map(ready).collect();
    order.resize(instance.cpus, Vec::new());
    Some((name, order))
}

fn named(list: &Item<'_>, tasks: &[Task]) -> Option<Vec<TaskId>> {
    list.list()?
        .iter()
        .map(|item| task_of(item, tasks))
        .collect()
}

/// Reports tasks that are not there once, and a first task that is not first.
fn complete(cpus: &Item<'_>, order: &[Vec<TaskId>], instance: &Instance) -> Option<()> {
    for (index, task) in instance.tasks.iter().enumerate() {
        let id = TaskId(index as u32);
        let times = order.iter().flatten().filter(|task| **task == id).count();
        if times != 1 {
            let what = format!("{} is in it {times} times", task.name);
            cpus.report(what, "put every task on one CPU, once");
            return None;
        }
    }
    let begins = order.first().and_then(|tasks| tasks.first());
    if let Some(first) = instance.first
        && begins != Some(&first)
    {
        let name = &instance.task(first).name;
        let what = format!("{name} runs first, and does not begin the first CPU's list");
        cpus.report(what, format!("write cpus = [[\"{name}\", ...], ...]"));
        return None;
    }
    Some(())
}

fn policy(table: &Fields<'_>, usual: Policy) -> Option<Policy> {
    let every = table.item("balance_every");
    let split_after = table.item("split_after");
    let words = [("busiest", Reference::Busiest), ("own", Reference::Own)];
    let reference = table.choice("imbalance_of", &words);
    table.finish();
    let mut policy = usual;
    if let Some(item) = every {
        policy.balance_every = item.integer(1..=LONGEST)?;
    }
    if let Some(item) = split_after {
        policy.balancing.split_after = match item.is_text("never") {
            true => None,
            false => Some(item.integer(0..=LONGEST)? as u32),
        };
    }
    policy.balancing.reference = reference.unwrap_or(policy.balancing.reference);
    Some(policy)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"title = "t"
cpus = 2
first = "v0"
cache = { lines = 2, fill = 4, write_back = 3 }
[fragment]
A = 1
B = 2
[task]
v0 = { fragment = "A", run = 1, writes = false }
v1 = { fragment = "B", run = 2 }
v2 = { run = 3 }
[[order]]
name = "one"
cpus = [["v0", "v2"], ["v1"]]
[online]
balance_every = 7
split_after = "never"
imbalance_of = "own"
"#;

    fn error(from: &str, to: &str) -> String {
        let text = TEXT.replacen(from, to, 1);
        assert_ne!(text, TEXT, "{from} is not in it");
        let problems = Plan::read("t.toml", &text).unwrap_err();
        problems.to_string()
    }

    #[test]
    fn everything_that_a_file_can_say_is_read() {
        let plan = Plan::read("t.toml", TEXT).unwrap();
        let instance = &plan.instance;
        assert_eq!((instance.cpus, instance.first), (2, Some(TaskId(0))));
        assert_eq!(instance.lines_of(FragmentId(1)), 2);
        let writes: Vec<bool> = instance
            .tasks
            .iter()
            .map(|task| task.runs[0].writes)
            .collect();
        assert_eq!(writes, [false, true, false]);
        let (name, order) = &plan.orders[0];
        let tasks = |cpu: usize| order[cpu].iter().map(|(id, _)| id.0).collect::<Vec<u32>>();
        assert_eq!(
            (name.as_str(), tasks(0), tasks(1)),
            ("one", vec![2], vec![1])
        );
        assert_eq!(plan.policy.balance_every, 7);
        assert_eq!(plan.policy.balancing.split_after, None);
        assert_eq!(plan.policy.balancing.reference, Reference::Own);
    }

    #[test]
    fn a_task_may_have_several_runs() {
        let runs = "v2 = { runs = [{ run = 1 }, { fragment = \"A\", run = 2 }] }";
        let text = TEXT.replace("v2 = { run = 3 }", runs);
        let (text, _) = text.split_once("[[order]]").unwrap();
        let plan = Plan::read("t.toml", text).unwrap();
        let lengths = plan.instance.tasks[2].runs.iter().map(|run| run.length);
        assert_eq!(lengths.collect::<Vec<u64>>(), [1, 2]);
        assert!(plan.instance.has_changes());
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_line_and_a_fix() {
        let table = [
            ("title", "titel", "did you mean `title`"),
            ("cpus = 2", "cpus = 0", "1 to 8"),
            ("first = \"v0\"", "first = \"v9\"", "did you mean `v0`"),
            ("lines = 2, ", "", "write 1 to 1"),
            ("fill = 4, ", "", "`fill` is missing"),
            ("write_back = 3", "write_back = 9000", "larger units"),
            ("B = 2", "B = 3", "fits into the cache"),
            ("B = 2", "B = 0", "write 1 to 2"),
            ("B = 2", "C = 2", "no fragment is called B"),
            ("run = 2", "run = 0", "1 to 10000"),
            ("run = 2", "length = 2", "`run` is missing"),
            ("run = 3", "run = 3, writes = true", "name a fragment"),
            ("v2 = { run = 3 }", "v2 = { runs = [] }", "no run"),
            (
                "v2 = { run = 3 }",
                "v2 = { runs = [{ run = 1 }] }\nv3 = { run = 1 }",
                "v3 is in it 0 times",
            ),
            (
                "v2 = { run = 3 }",
                "v2 = { runs = [{ run = 1 }, { run = 1 }] }",
                "by hand",
            ),
            (
                "v0 = {",
                "v0 = { runs = [{ run = 1 }, { run = 1 }] }\nu = {",
                "more than once",
            ),
            ("[\"v0\", \"v2\"]", "[\"v2\", \"v0\"]", "does not begin"),
            (
                "[\"v0\", \"v2\"]",
                "[\"v0\", \"v2\", \"v1\"]",
                "v1 is in it 2 times",
            ),
            ("[\"v1\"]]", "[\"v1\"], []]", "these are 3 CPUs"),
            ("[\"v1\"]]", "[\"w1\"]]", "did you mean `v1`"),
            ("balance_every = 7", "balance_every = 0", "1 to 10000"),
            ("\"never\"", "\"always\"", "0 to 10000"),
            ("\"own\"", "\"mine\"", "use one of busiest, own"),
            (
                "cpus = 2",
                "cpus = 2\npenalty = \"h\"",
                "use one of lines, whole-cache",
            ),
        ];
        for (from, to, said) in table {
            let error = error(from, to);
            assert!(error.contains(said), "{to}: {error}");
            assert!(error.contains("t.toml:"), "{error}");
        }
    }
}
