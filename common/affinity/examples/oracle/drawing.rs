//! A schedule as text: a row a CPU, a letter a unit of time.

use warmq_affinity::{Doing, Instance, Schedule};
use warmq_units::TaskId;

/// The letters of tasks, in their order; those of later tasks are `+`.
const LETTERS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
/// Columns before the first unit.
const MARGIN: usize = 8;

/// The letter of a task.
pub fn letter(task: TaskId) -> char {
    LETTERS.get(task.index()).copied().map_or('+', char::from)
}

/// The schedule, in at most `width` columns up to `end`: with a scale above, and as many units in a
/// column as it takes.
pub fn of(schedule: &Schedule, end: u64, width: usize) -> String {
    let units = units_a_column(end, width);
    let columns = end.div_ceil(units);
    let mut text = scale(columns, units);
    for (cpu, _) in schedule.cpus.iter().enumerate() {
        let letters = (0..columns).map(|column| at(schedule, cpu, column * units));
        let letters: String = letters.collect();
        let name = format!("  cpu{cpu}");
        text.push_str(&format!("\n{name:MARGIN$}{letters}"));
    }
    text
}

/// How many units of time a column stands for.
pub fn units_a_column(end: u64, width: usize) -> u64 {
    let columns = width.saturating_sub(MARGIN).max(1) as u64;
    end.div_ceil(columns).max(1)
}

/// What the letters mean.
pub fn legend(instance: &Instance, units: u64) -> String {
    let named = instance.tasks.iter().zip(0..).map(|(task, index)| {
        let used = task.runs.iter().map(|run| match run.fragment {
            Some(id) => instance.fragments[id.index()].name.as_str(),
            None => "unmanaged",
        });
        let used: Vec<&str> = used.collect();
        format!(
            "{} {} ({})",
            letter(TaskId(index)),
            task.name,
            used.join(", ")
        )
    });
    let named: Vec<String> = named.collect();
    let column = match units {
        1 => "a unit".to_owned(),
        units => format!("{units} units"),
    };
    format!(
        "A letter is {column}: < fills, > writes back, . is idle; {}",
        named.join(", ")
    )
}

fn at(schedule: &Schedule, cpu: usize, unit: u64) -> char {
    let spans = &schedule.cpus[cpu];
    let mut spans = spans.iter();
    let span = spans.find(|span| span.from <= unit && unit < span.to);
    match span.map(|span| span.doing) {
        None => '.',
        Some(Doing::Fill) => '<',
        Some(Doing::WriteBack) => '>',
        Some(Doing::Run(task)) => letter(task),
    }
}

/// The number of every tenth column's unit.
fn scale(columns: u64, units: u64) -> String {
    let mut text = " ".repeat(MARGIN);
    for column in (0..columns).step_by(10) {
        text.push_str(&format!("{:<10}", column * units));
    }
    text.trim_end().to_owned()
}
