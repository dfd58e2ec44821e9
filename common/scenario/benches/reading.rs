//! How long reading and checking takes.

use divan::Bencher;
use warmq_config::Document;
use warmq_scenario::Scenario;

fn main() {
    divan::main();
}

/// A scenario with `tasks` tables of tasks, each with a connection and a body of ten steps.
fn generated(tasks: usize) -> String {
    let mut text = String::from("[settings]\nwork = \"2000 cycles\"\nusers = 3\n");
    for task in 0..tasks {
        text += &format!(
            "[stream.link{task}]\nfor = {{ user = \"users\" }}\n[mutex.lock{task}]\n\
             [task.task{task}]\nfor = {{ user = \"users\" }}\nnice = 5\ncpus = \"llc (user % 2)\"\nbody = [\n\
             {{ begin = \"trip\" }}, {{ send = \"link{task}[user].near\", bytes = \"100B\" }},\n\
             {{ repeat = \"users * 2\", as = \"round\", body = [\n\
             {{ run = \"work * (round + 1)\" }}, {{ sleep = {{ exponential = \"2ms\" }} }},\n\
             {{ lock = \"lock{task}\" }}, {{ unlock = \"lock{task}\" }} ] }},\n\
             {{ receive = \"link{task}[user].far\", bytes = \"100B\" }}, {{ end = \"trip\" }},\n\
             {{ count = \"trips\" }} ]\n"
        );
    }
    text
}

#[divan::bench(args = [100, 1_000])]
fn read_and_check(bencher: Bencher<'_, '_>, tasks: usize) {
    let text = generated(tasks);
    bencher.bench(|| Scenario::read("generated.toml", &text).expect("a scenario"));
}

/// The part of it that is TOML.
#[divan::bench(args = [100, 1_000])]
fn parse_alone(bencher: Bencher<'_, '_>, tasks: usize) {
    let text = generated(tasks);
    bencher.bench(|| Document::parse("generated.toml", &text).expect("a document"));
}
