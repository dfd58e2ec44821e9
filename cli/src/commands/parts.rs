//! `warmq schedulers` and `warmq workloads`: list them, and what can be set on one.

use clap::Args;
use serde_json::{Value, json};
use warmq_experiment::{Compiled, Engine, Part as Kind, Setting, Simulator, shown_value};
use warmq_play::workloads as all_workloads;
use warmq_sched::{COMPILED, SCHEDULERS};

use crate::failure::Failure;
use crate::{listing, output, worlds};

/// List the schedulers, or what can be set on one.
#[derive(Args, Debug)]
pub struct SchedulersArguments {
    /// A scheduler, or a compiled one: its program on PATH, or the path of that or of an object.
    name: Option<String>,
    /// Print JSON: one object per line.
    #[arg(long)]
    json: bool,
}

/// List the workloads, or what can be set on one.
#[derive(Args, Debug)]
pub struct WorkloadsArguments {
    /// A workload.
    name: Option<String>,
    /// Print JSON: one object per line.
    #[arg(long)]
    json: bool,
}

/// A scheduler or workload as it is listed.
struct Part {
    name: String,
    what: String,
    /// What is to be known beside its settings: a key, its value, and a sentence.
    fact: (&'static str, String, String),
    settings: Vec<Setting>,
}

/// Lists the schedulers, or describes one.
pub fn schedulers(arguments: &SchedulersArguments) -> Result<(), Failure> {
    let parts = SCHEDULERS.iter().map(|entry| Part {
        name: entry.name.to_owned(),
        what: entry.what.to_owned(),
        fact: of_costs(entry.kernel),
        settings: entry.settings(),
    });
    let SchedulersArguments { name, json } = arguments;
    let engine = worlds::add(Engine::new(None));
    let compiled = name
        .as_deref()
        .and_then(|name| Some((name, engine.compiled(name)?)));
    if let Some((file, described)) = compiled {
        let help = "name an object of BPF (scx_mine.bpf.o), or the program that has it inside";
        let described = described.map_err(|why| Failure::usage(why, help))?;
        return match json {
            true => output::print_json(&json_of(file, &described)),
            false => output::print(&about(file, &described)),
        };
    }
    let programs = engine.programs().into_iter().map(|(name, what)| Part {
        settings: engine.settings(Kind::Scheduler, &name).unwrap_or_default(),
        name,
        what,
        fact: of_costs(COMPILED.kernel),
    });
    let all = parts.chain(programs).collect();
    show("scheduler", name.as_deref(), *json, all)
}

/// Whose costs a scheduler has.
fn of_costs(kernel: &str) -> (&'static str, String, String) {
    let says = format!("Its costs are those of {kernel} on the machine.");
    ("costs", kernel.to_owned(), says)
}

/// What a compiled scheduler is, whether the lab can run it, and what can be set on it.
fn about(file: &str, compiled: &Compiled) -> String {
    let mut lines = vec![
        format!(
            "{}: a compiled scheduler of sched_ext, in {file}",
            compiled.name
        ),
        format!("It defines {}.", compiled.callbacks.join(", ")),
    ];
    match &compiled.profile {
        None => lines.push("The lab does nothing of what its loader does.".to_owned()),
        Some((source, lacks)) => {
            lines.push(format!("The lab does what its loader does: {source}."));
            if !lacks.is_empty() {
                lines.push(format!("It leaves out: {lacks}."));
            }
        }
    }
    for (events, what) in [
        (&compiled.left_out, "do not run in the lab"),
        (
            &compiled.never,
            "never run in the lab, where these do not happen",
        ),
    ] {
        if !events.is_empty() {
            let events = events.join(", ");
            lines.push(format!("Its programs at these events {what}: {events}."));
        }
    }
    for (series, why) in &compiled.refused {
        match why.is_empty() {
            true => lines.push(format!("The lab can run it as on Linux {series}.")),
            false => lines.push(format!("The lab cannot run it as on Linux {series}:")),
        }
        lines.extend(why.iter().map(|why| format!("  {why}")));
    }
    let settings = listing::settings(&compiled.settings);
    format!("{}\n\n{settings}", lines.join("\n"))
}

fn json_of(file: &str, compiled: &Compiled) -> Value {
    let refused = compiled.refused.iter();
    let refused: serde_json::Map<String, Value> = refused
        .map(|(series, why)| (series.clone(), json!(why)))
        .collect();
    let profile = compiled.profile.as_ref();
    json!({
        "name": compiled.name,
        "file": file,
        "callbacks": compiled.callbacks,
        "profile": profile.map(|(source, _)| source),
        "lacks": profile.map(|(_, lacks)| lacks),
        "left_out": compiled.left_out,
        "never": compiled.never,
        "refused": refused,
        "settings": compiled.settings.iter().map(setting).collect::<Vec<Value>>(),
    })
}

/// Lists the workloads, or describes one.
pub fn workloads(arguments: &WorkloadsArguments) -> Result<(), Failure> {
    let parts = all_workloads().iter().map(|entry| Part {
        name: entry.name.clone(),
        what: entry.what.clone(),
        fact: (
            "work",
            entry.work.clone(),
            format!("Its work is counted in {}.", entry.work),
        ),
        settings: entry.settings().to_vec(),
    });
    let WorkloadsArguments { name, json } = arguments;
    show("workload", name.as_deref(), *json, parts.collect())
}

/// Prints the part called `wanted`, or a line for each.
fn show(kind: &str, wanted: Option<&str>, json: bool, parts: Vec<Part>) -> Result<(), Failure> {
    let Some(wanted) = wanted else {
        if json {
            return parts
                .iter()
                .try_for_each(|part| output::print_json(&part.json()));
        }
        let lines = parts.iter().map(|part| (&*part.name, part.what.clone()));
        return output::print(&listing::names(lines));
    };
    let found = parts.iter().find(|part| part.name == wanted);
    let part = found.ok_or_else(|| {
        let known = itertools::join(parts.iter().map(|part| &part.name), ", ");
        let help = format!("use one of {known}");
        Failure::usage(format!("no {kind} is called {wanted}"), help)
    })?;
    if json {
        return output::print_json(&part.json());
    }
    let Part {
        name, what, fact, ..
    } = part;
    let fact = &fact.2;
    let settings = listing::settings(&part.settings);
    output::print(&format!("{name}: {what}\n{fact}\n\n{settings}"))
}

impl Part {
    fn json(&self) -> Value {
        let (key, fact, _) = &self.fact;
        json!({
            "name": self.name,
            "what": self.what,
            *key: fact,
            "settings": self.settings.iter().map(setting).collect::<Vec<Value>>(),
        })
    }
}

fn setting(setting: &Setting) -> Value {
    let default = shown_value(&setting.default);
    json!({
        "name": setting.name,
        "default": default,
        "allowed": setting.kind.allowed(),
        "unit": setting.unit,
        "what": setting.what,
        "source": setting.source,
    })
}
