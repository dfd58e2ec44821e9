//! What is wrong only with certain values of the settings, or on certain machines, is refused when
//! a scenario is bound to them; the same mistakes without settings when it is read.

use std::collections::BTreeMap;

use warmq_config::{Chosen, Value};
use warmq_scenario::{Scenario, Site};

/// Settings that are fine by default.
const SETTINGS: &str = "[settings]\nn = { default = 1, most = 1000000 }\nsize = \"4KB\"\n\
                        mode = { default = \"fine\", choices = [\"fine\", \"bad\"] }\n";

fn scenario(text: &str) -> Scenario {
    let read = Scenario::read("s.toml", &format!("{SETTINGS}{text}"));
    read.unwrap_or_else(|problems| panic!("{text}\n{problems}"))
}

/// What is said against `text` with a value for one setting.
fn told(text: &str, (name, value): (&str, Value)) -> String {
    let scenario = scenario(text);
    let values = BTreeMap::from([(name.to_owned(), value)]);
    let chosen = Chosen::new(scenario.settings(), values).expect("an allowed value");
    match scenario.bind(&chosen, &Site::default()) {
        Ok(_) => panic!("this is accepted:\n{text}"),
        Err(problems) => problems.to_string(),
    }
}

fn bad() -> (&'static str, Value) {
    ("mode", Value::Text("bad".to_owned()))
}

fn number(n: i64) -> (&'static str, Value) {
    ("n", Value::Integer(n))
}

#[test]
fn what_the_values_of_settings_make_impossible_is_refused_with_its_place() {
    let raiser = "[semaphore.s]\n[task.waiter]\nbody = [{ lower = \"s\" }]\n[task.raiser]\n";
    let table = [
        // A task that waits for nobody.
        (format!("{raiser}count = \"n\"\nbody = [{{ run = \"1ms\" }}, {{ raise = \"s\" }}]"), number(0)),
        (format!("{raiser}body = [{{ run = \"1ms\" }}, {{ raise = \"s\", when = \"mode = fine\" }}]"), bad()),
        (format!("{raiser}body = [{{ run = \"1ms\" }}, {{ repeat = \"n\", body = [{{ raise = \"s\" }}] }}]"), number(0)),
        ("[datagram.d]\n[source.s]\ncount = \"n\"\nto = \"d\"\nbytes = \"64B\"\nrate = \"1 per s\"\n\
          [task.t]\nbody = [{ receive = \"d\" }]".to_owned(), number(0)),
        ("[pipe.p]\n[task.t]\ncount = \"n + 1\"\nbody = [{ receive = \"p\", bytes = \"1B\" }, \
          { send = \"p\", bytes = \"1B\" }]".to_owned(), number(0)),
        ("[barrier.b]\ntasks = 2\n[task.t]\ncount = \"n + 1\"\nbody = [{ barrier = \"b\" }]".to_owned(), number(0)),
        // A region that is too large.
        ("[region.r]\nbytes = \"n * 1GB\"\n[task.t]\nbody = [{ touch = \"r\" }]".to_owned(), number(65)),
        // Tasks that start one another without end.
        ("[task.root]\ntimes = 1\nbody = [{ spawn = \"node\" }]\n\
          [task.node]\nspawned = true\ntimes = \"n - 1\"\nbody = [{ run = \"1ms\" }, { spawn = \"node\" }]".to_owned(), number(2)),
        // Tasks of one process that are not in one session.
        ("[group.g]\ncount = 2\nautogroup = true\n[process.p]\n[task.t]\ncount = \"n\"\nprocess = \"p\"\n\
          group = \"g[n / 2]\"\nbody = [{ run = \"1ms\" }]\n\
          [task.u]\nprocess = \"p\"\ngroup = \"g[0]\"\nbody = [{ run = \"1ms\" }]".to_owned(), number(2)),
        ("[group.g]\nautogroup = true\nnice = \"n\"\n[task.t]\ngroup = \"g\"\nbody = [{ run = \"1ms\" }]".to_owned(), number(20)),
        // An object that is not there.
        ("[mutex.m]\ncount = 3\n[task.t]\nbody = [{ lock = \"m[n]\" }, { run = \"1ms\" }, { unlock = \"m[n]\" }]".to_owned(), number(3)),
        ("[task.t]\nbody = [{ run = \"1ms / n\" }]".to_owned(), number(0)),
    ];
    let told = table.map(|(text, value)| {
        let set = format!("{} = {}", value.0, value.1);
        format!("{text}\n{set}\n=> {}", told(&text, value))
    });
    insta::assert_snapshot!(told.join("\n\n"));
}

#[test]
fn the_same_is_refused_when_it_is_read() {
    let table = [
        "[semaphore.s]\n[task.waiter]\nbody = [{ lower = \"s\" }]",
        "[condition.c]\n[mutex.m]\n[task.t]\n\
         body = [{ signal = \"c\" }, { lock = \"m\" }, { wait = \"c\", mutex = \"m\" }, { unlock = \"m\" }]",
        "[queue.q]\nholds = 3\n[task.t]\nbody = [{ take = \"q\" }, { put = \"q\" }]",
        "[region.r]\nbytes = \"65GB\"\n[task.t]\nbody = [{ touch = \"r\" }]",
        "[task.t]\nbody = [{ run = \"1ms\" }, { fork = \"t\" }]",
        "[task.t]\nbody = [{ lock = \"m\" }, { run = \"1ms\" }]",
        "[group.inner]\nparent = \"outer\"\n[group.outer]\n[task.t]\ngroup = \"inner\"\nbody = [{ run = \"1ms\" }]",
        "[group.a]\nparent = \"a\"\n[task.t]\nbody = [{ run = \"1ms\" }]",
    ];
    let told = table.map(|text| match Scenario::read("s.toml", text) {
        Ok(_) => panic!("this is accepted:\n{text}"),
        Err(problems) => format!("{text}\n=> {problems}"),
    });
    insta::assert_snapshot!(told.join("\n\n"));
}

#[test]
fn who_feeds_what_it_waits_for_first_is_fine() {
    let fine = [
        "[queue.q]\nholds = 3\n[task.t]\nbody = [{ put = \"q\" }, { take = \"q\" }]",
        "[semaphore.s]\ninitial = 1\n[task.t]\nbody = [{ lower = \"s\" }, { raise = \"s\" }]",
        "[semaphore.s]\n[task.t]\ncount = 2\nsetup = [{ raise = \"s\" }]\nbody = [{ lower = \"s\" }, { raise = \"s\" }]",
        "[semaphore.s]\n[task.t]\ntimes = 1\nbody = [{ run = \"1ms\" }, { exit = true }, { lower = \"s\" }]",
        "[group.outer]\n[group.inner]\nparent = \"outer\"\n[task.t]\ngroup = \"inner\"\nbody = [{ run = \"1ms\" }]",
    ];
    fine.into_iter().map(scenario).for_each(drop);
}
