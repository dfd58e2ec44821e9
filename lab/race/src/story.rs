//! Tells what happens in a plan.

use warmq_bpf::Image;
use warmq_kernel::BootError;
use warmq_sched_ext::interleaved::{At, Note, What};

use crate::plan::{Act, Plan, Step};
use crate::play::Play;
use crate::{Found, Race};

/// Tells the plan that was found, step by step.
pub(crate) fn tell(race: &Race<'_>, found: &Found) -> Result<String, BootError> {
    let plan = &found.plan;
    let mut play = Play::new(race, &plan.setup)?;
    play.stage.kernel.take_notes();
    let mut lines = head(race, plan);
    for (number, step) in (1..).zip(&plan.steps) {
        play.step(step);
        lines.push(format!("  {number}. {}", what(step)));
        lines.extend(noted(&mut play));
    }
    let fault = play.end();
    let rest = noted(&mut play);
    if !rest.is_empty() {
        lines.push("  Then all comes to its end:".to_owned());
        lines.extend(rest.into_iter().take(MOST_LINES));
    }
    lines.push(fault.map_or_else(|| "No fault.".to_owned(), |fault| format!("{fault}.")));
    Ok(lines.join("\n"))
}

/// Of what follows the last step, as much as is shown.
const MOST_LINES: usize = 24;

fn head(race: &Race<'_>, plan: &Plan) -> Vec<String> {
    let (cpus, tasks) = (race.cpus, plan.setup.groups_of.len());
    let groups = match plan.setup.groups {
        0 => String::new(),
        groups => format!(", {groups} groups"),
    };
    vec![format!("{cpus} CPUs, {tasks} tasks, which sleep{groups}:")]
}

/// A CPU looks although nobody has kicked it.
const LOOKS: &str = "     Nothing is left to be done. If a CPU looks all the same:";

/// What has happened since the last call.
fn noted(play: &mut Play) -> Vec<String> {
    let before = std::mem::take(&mut play.before_look);
    let notes = play.stage.kernel.notes();
    let looks = (!before.is_empty() && !notes.is_empty()).then(|| LOOKS.to_owned());
    let image = play.stage.kernel.image();
    let lines = |notes: &[Note]| -> Vec<String> {
        let lines = notes.iter().filter_map(|note| one(image, note));
        let lines = lines.map(|line| format!("       {line}"));
        shorter(lines.collect())
    };
    let mut all = lines(&before);
    all.extend(looks);
    all.extend(lines(&notes));
    all
}

/// The longest group of lines whose repetitions are not shown.
const MOST_REPEATED: usize = 4;

/// The same lines, where groups of them that come again and again stand once.
fn shorter(mut left: Vec<String>) -> Vec<String> {
    let mut all = Vec::new();
    while !left.is_empty() {
        let times = |lines: usize| {
            let first = &left[..lines.min(left.len())];
            left.chunks(lines)
                .take_while(|chunk| *chunk == first)
                .count()
        };
        let repeated = (1..=MOST_REPEATED).find(|lines| times(*lines) > 2);
        let (lines, times) = repeated.map_or((1, 1), |lines| (lines, times(lines)));
        all.extend(left.drain(..lines * times).take(lines));
        if times > 1 {
            all.push(format!("       ({times} times)"));
        }
    }
    all
}

fn one(image: &Image, note: &Note) -> Option<String> {
    let function = |which: u32| {
        image
            .functions
            .get(which as usize)
            .map(|known| known.name.as_str())
    };
    let cpu = note.cpu;
    Some(match note.what {
        What::Begins(which) => format!("{cpu} calls {}", function(which)?),
        What::Held(place) => format!("{cpu} is interrupted {}", at(image, place)),
        What::GoesOn => format!("{cpu} goes on"),
        What::Runs(Some(task)) => format!("{cpu} runs {task}"),
        What::Runs(None) => format!("{cpu} idles"),
        What::Queued(task, queue) => format!("{task} comes into queue {queue:#x}"),
        What::Kicks(target) => format!("{cpu} kicks {target}"),
        What::Returns(_) | What::Calls(..) => return None,
    })
}

fn at(image: &Image, place: At) -> String {
    let At::Before(instruction) = place else {
        return "while it has no run queue's lock".to_owned();
    };
    let function = image.function_at(instruction);
    let name = function.map_or("", |function| function.name.as_str());
    match image.line_at(instruction) {
        Some(line) => format!("before {}, in {name}: {}", line.place(), line.text.trim()),
        None => format!("in {name}"),
    }
}

/// What a step is.
fn what(step: &Step) -> String {
    let cpu = step.cpu;
    match step.act {
        Act::Wake(task) => format!("{cpu} wakes task{task}"),
        Act::Sleep => format!("the task of {cpu} sleeps"),
        Act::Tick => format!("{cpu} has a tick"),
        Act::Yield => format!("the task of {cpu} yields"),
        Act::Nice(task, nice) => format!("{cpu} gives task{task} nice {nice}"),
        Act::Affinity(task, cpus) => format!("{cpu} lets task{task} run on CPUs {}", list(cpus)),
        Act::Move(task, group) => format!("{cpu} moves task{task} to group {group}"),
        Act::Weigh(group, weight) => format!("{cpu} gives group {group} weight {weight}"),
        Act::Idle(group, true) => format!("{cpu} makes group {group} idle"),
        Act::Idle(group, false) => format!("{cpu} makes group {group} an ordinary one"),
        Act::Hint(value) => format!("the task of {cpu} names data {value}"),
        Act::Pass(us) => format!("{us} us pass"),
    }
}

fn list(cpus: u8) -> String {
    let set = (0..8).filter(|cpu| cpus >> cpu & 1 != 0);
    set.map(|cpu| cpu.to_string())
        .collect::<Vec<_>>()
        .join(", ")
}
