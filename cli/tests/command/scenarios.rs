//! Scenarios on the command line: checked, played in the lab and on this machine, drawn, refused.

use std::path::Path;

use serde_json::Value;

use super::support::{FAULTS, Folder};

const KEYS: &str = r#"
title = "Keys beside a build"

[task.editor]
every = "10ms"
body = [{ begin = "key" }, { run = "1ms" }, { end = "key" }]

[task.build]
count = "2 per cpu"
body = [{ run = "10ms" }]
"#;

const SHORT: &str = "--seeds 1 --time 50ms --warmup 10ms";

fn folder(name: &str) -> Folder {
    Folder::new(&format!("scenario-{name}")).with("keys.toml", KEYS)
}

/// The figures that `lines` of JSON have for `world`.
fn figures(lines: &str, world: &str) -> Vec<(String, f64)> {
    let rows = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let of_world = rows.filter(|row: &Value| row["point"]["world"] == world);
    of_world
        .map(|row| {
            let metric = row["metric"].as_str().unwrap().to_owned();
            (metric, row["value"].as_f64().unwrap())
        })
        .collect()
}

fn figure(figures: &[(String, f64)], name: &str) -> f64 {
    let found = figures.iter().find(|(metric, _)| metric == name);
    found.map_or(f64::NAN, |(_, value)| *value)
}

#[test]
fn a_scenario_is_played_in_the_lab_without_more_ado() {
    let folder = folder("lab");
    let ran = folder.run(&format!("run keys.toml {SHORT} --machine tiny-2cpu --json"));
    let found = figures(&ran.fine(), "lab");
    assert_eq!(figure(&found, "key_spans_per_second"), 100.0);
    assert!(figure(&found, "key_p99") >= 1_000.0);
    assert!(
        (195.0..=200.0).contains(&(figure(&found, "build_share") + figure(&found, "editor_share")))
    );
    assert!(found.iter().all(|(_, value)| value.is_finite()));
}

/// A round of 3 ms each 1 ms: the fourth is due at 3 ms, and done at 12.
#[test]
fn a_span_that_begins_when_its_round_is_due_has_what_the_rounds_before_took() {
    let body = "[{ begin = \"key\", due = true }, { run = \"3ms\" }, { end = \"key\" }]";
    let text = format!("[task.editor]\ntimes = 4\nevery = \"1ms\"\nbody = {body}\n");
    let folder = folder("due").with("due.toml", &text);
    let ran = folder
        .run("run due.toml --seeds 1 --time 50ms --warmup 0ms --machine tiny-2cpu --json --all");
    let longest = figure(&figures(&ran.fine(), "lab"), "key_max");
    assert!((9_000.0..9_100.0).contains(&longest), "{longest}");
}

/// 1 ms of work counts 1. One phase goes on, another one ends while it is measured.
#[test]
fn what_is_counted_in_the_warm_up_is_of_no_phase() {
    let task = "work = \"done\"\n[task.hog]\nbody = [{ run = \"1ms\" }, { count = \"done\" }]\n";
    let phases =
        ["50ms", "150ms"].map(|at| format!("[[phase]]\nname = \"p{at}\"\nat = \"{at}\"\n"));
    let [one, two] = [&phases[..1], &phases].map(|phases| format!("{task}{}", phases.concat()));
    let folder = folder("phases")
        .with("one.toml", &one)
        .with("two.toml", &two);
    for (file, phase) in [("one", "p50ms"), ("two", "p50ms"), ("two", "p150ms")] {
        let ran = folder.run(&format!(
            "run {file}.toml --seeds 1 --time 100ms --warmup 100ms --machine tiny-1cpu --json --all"
        ));
        let rate = figure(
            &figures(&ran.fine(), "lab"),
            &format!("{phase}.work_per_second"),
        );
        assert!((940.0..=1_000.0).contains(&rate), "{file}, {phase}: {rate}");
    }
}

/// docs/starvation-today.md
#[test]
fn requests_that_interrupt_both_cpus_starve_a_container_under_6_18_and_not_under_7_2() {
    let share = |kernel: &str| {
        let ran = folder("containers").run(&format!(
            "run containers --kernel {kernel} --machine small-4llc --set cpus=2 --seeds 1 --warmup 500ms \
             --time 1s --json"
        ));
        figure(&figures(&ran.fine(), "lab"), "batch_share")
    };
    let (starved, fair) = (share("6.18"), share("7.2"));
    assert!(starved <= 2.0 && fair >= 90.0, "{starved} and {fair}");
}

/// A task that never runs has a row: 0 is the answer there.
#[test]
fn what_a_scenario_names_is_shown_where_it_is_nothing() {
    let late = format!(
        "{KEYS}\n[task.late]\nstart = \"10s\"\nbody = [{{ run = \"1ms\" }}, {{ count = \"done\" }}]\n"
    );
    let folder = Folder::new("scenario-late").with("late.toml", &late);
    let shown = folder
        .run(&format!("run late.toml {SHORT} --machine tiny-2cpu"))
        .fine();
    let row = |name: &str| {
        let line = shown.lines().find(|line| line.contains(name));
        line.unwrap_or_else(|| panic!("{name} in\n{shown}"))
            .to_owned()
    };
    assert!(row("late_share").contains(" 0"), "{}", row("late_share"));
    assert!(
        row("done_per_second").contains(" 0"),
        "{}",
        row("done_per_second")
    );
    assert!(!shown.contains("walks_per_second"), "{shown}");
}

#[test]
fn work_that_is_over_before_the_measurement_is_said_and_has_no_figures() {
    let once = "[task.once]\ntimes = 1\nbody = [{ run = \"1ms\" }]\n";
    let folder = Folder::new("scenario-once").with("once.toml", once);
    let ran = folder.run(&format!("run once.toml {SHORT} --machine tiny-2cpu --json"));
    assert_eq!(ran.out, "");
    assert!(
        ran.err.contains("nothing is left to measure"),
        "{}",
        ran.err
    );
}

#[test]
fn this_machine_gives_the_same_figures_by_name() {
    let player = Path::new(env!("CARGO_BIN_EXE_warmq")).with_file_name("warmq-player");
    if !player.exists() {
        println!("skipped: warmq-player is not built (cargo build -p warmq-player)");
        return;
    }
    let folder = folder("host");
    // Long enough for every task to get a CPU of a machine that runs other tests meanwhile.
    let ran = folder.run("run keys.toml --seeds 1 --time 800ms --world lab,host --json");
    let said = ran.err.clone();
    let lines = ran.fine();
    let (lab, host) = (figures(&lines, "lab"), figures(&lines, "host"));
    for name in [
        "work_per_second",
        "key_p99",
        "key_mean",
        "editor_share",
        "build_share",
    ] {
        assert!(figure(&lab, name) > 0.0, "lab: {name}");
        assert!(figure(&host, name) > 0.0, "host: {name}");
    }
    assert!(
        said.contains("note: In the host, `run` is approximate"),
        "{}",
        said
    );
}

#[test]
fn this_machine_leaves_recording_out_where_it_is_asked_to() {
    let player = Path::new(env!("CARGO_BIN_EXE_warmq")).with_file_name("warmq-player");
    if !player.exists() {
        println!("skipped: warmq-player is not built (cargo build -p warmq-player)");
        return;
    }
    let folder = folder("silent");
    let ran =
        folder.run("run keys.toml --seeds 1 --time 800ms --world host --set record=false --json");
    let found = figures(&ran.fine(), "host");
    assert!(figure(&found, "key_p99") > 0.0 && figure(&found, "build_share") > 0.0);
    for of_switches in [
        "switches_per_second",
        "wakeups_per_second",
        "build_delay_max",
        "build_preemptions",
    ] {
        assert!(
            found.iter().all(|(name, _)| name != of_switches),
            "{of_switches}"
        );
    }
    let ran = folder.run("run keys.toml --world host --set record=maybe");
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("write true or false"), "{}", ran.err);
}

const ECHO: &str = r#"
title = "A server on one CPU, whose interrupts another one takes"

[datagram.requests]

[source.clients]
to = "requests"
bytes = "64B"
rate = "1000 per s"
cpu = "cpu 1"
echo = true
span = "trip"

[task.server]
cpus = "cpu 0"
body = [{ receive = "requests" }, { run = "100us" }, { reply = "requests", bytes = "64B" }]
"#;

#[test]
fn the_lab_measures_round_trips_and_has_no_note_about_them() {
    let folder = folder("echo").with("echo.toml", ECHO);
    let ran = folder.run(&format!("run echo.toml {SHORT} --machine tiny-2cpu --json"));
    assert!(!ran.err.contains("note"), "{}", ran.err);
    let found = figures(&ran.fine(), "lab");
    assert_eq!(figure(&found, "trip_spans_per_second"), 1_000.0);
    // Both ways take 50 us each, and the server 100.
    assert!(figure(&found, "trip_p50") > 200.0);
    assert!(figure(&found, "trip_max") < 1_000.0);
    // Files are what the lab lacks.
    let writes = "[file.f]\npath = \"f\"\n[task.t]\nbody = [{ write = \"f\", bytes = \"1B\" }]\n";
    let checked = folder
        .with("writes.toml", writes)
        .run("check echo.toml writes.toml");
    let text = checked.fine();
    let remarks: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("In the lab"))
        .collect();
    assert_eq!(remarks.len(), 1, "{text}");
    assert!(remarks[0].contains("`write` is refused"), "{text}");
}

/// Who ran on the first CPU in so long a time, a letter for each ms.
fn charted(time: &str, warmup: &str) -> String {
    let ran = folder("chart").run(&format!(
        "run keys.toml --machine tiny-2cpu --time {time} --warmup {warmup} --chart 1ms --seeds 1 --set cpus=1",
    ));
    let text = ran.fine();
    let line = text.lines().find(|line| line.contains("cpu0")).unwrap();
    line.trim_start()
        .trim_start_matches("cpu0")
        .trim()
        .to_owned()
}

#[test]
fn a_chart_shows_who_ran_from_where_measuring_begins() {
    let letters = charted("40ms", "0ms");
    assert_eq!(letters.len(), 40, "{letters}");
    assert_eq!(letters.matches('e').count(), 4, "{letters}");
    assert_eq!(letters.matches('b').count(), 36, "{letters}");
    assert_eq!(charted("15ms", "25ms"), letters[25..]);
}

#[test]
fn check_says_what_a_scenario_is_and_where_it_is_wrong() {
    let folder = folder("check").with(
        "wrong.toml",
        "[task.a]\nbody = [{ lock = \"m\" }, { run = \"1ms\" }]\n",
    );
    let fine = folder.run("check keys.toml ping-pong").fine();
    assert!(
        fine.contains("keys.toml: fine; a scenario of 9 tasks in 2 tables"),
        "{fine}"
    );
    assert!(fine.contains("ping-pong: fine"), "{fine}");
    let ran = folder.run("check wrong.toml");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("wrong.toml:2"), "{}", ran.err);
}

#[test]
fn what_cannot_be_played_is_refused() {
    let folder = folder("refused");
    for (options, part) in [
        ("--world moon", "moon"),
        (
            "--world lab --scheduler scx_nobodys",
            "there is no scheduler",
        ),
        (
            "--world lab --scheduler ./nosuch.bpf.o",
            "there is no such file",
        ),
        ("--world host --scheduler linux24", "no scheduler linux24"),
        ("--world host --machine tiny-2cpu", "this machine"),
        ("--set knights=3", "knights"),
        ("--chart never", "--chart"),
        ("--time soon", "soon"),
    ] {
        let ran = folder.run(&format!("run keys.toml {options}"));
        assert_eq!(ran.code, 2, "{options}: {}", ran.err);
        assert!(ran.err.contains(part), "{options}: {}", ran.err);
    }
    // What was mistyped is shown where it was typed, not in an experiment that nobody wrote.
    for (option, value) in [
        ("world", "lab,hots"),
        ("scheduler", "eevdf-6.18,none"),
        ("preempt", "ful"),
        ("time", "soon"),
        ("warmup", "1"),
    ] {
        let ran = folder.run(&format!("run keys.toml --{option} {value}"));
        assert!(
            ran.err.contains(&format!("--{option}:")) && ran.err.contains(value),
            "{}",
            ran.err
        );
        assert!(!ran.err.contains("keys.toml:"), "{}", ran.err);
    }
    let ran = folder.run("run web --world host");
    assert_eq!(ran.code, 2);
    let ran = folder.run("run table6-lock --world host");
    assert_eq!(
        ran.code, 2,
        "an experiment says itself where it is run: {}",
        ran.err
    );
}

/// The children of all threads of `pid`.
fn children(pid: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let of = |thread: std::fs::DirEntry| {
        std::fs::read_to_string(thread.path().join("children")).unwrap_or_default()
    };
    let lists: Vec<String> = threads.map(of).collect();
    let words = lists.iter().flat_map(|list| list.split_whitespace());
    words.map(|word| word.parse().unwrap()).collect()
}

fn within_seconds(mut condition: impl FnMut() -> bool) -> bool {
    (0..1_000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        condition()
    })
}

#[test]
fn who_kills_the_command_ends_what_it_plays_on_this_machine() {
    let folder = folder("killed");
    let mut command = folder.command("run keys.toml --world host --time 60s");
    let command = command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    let mut command = command.spawn().unwrap();
    let mut players = Vec::new();
    assert!(within_seconds(|| {
        players = children(command.id());
        !players.is_empty()
    }));
    let crews = || {
        players
            .iter()
            .flat_map(|player| children(*player))
            .collect::<Vec<u32>>()
    };
    let mut crew = Vec::new();
    assert!(within_seconds(|| {
        crew = crews();
        !crew.is_empty()
    }));
    command.kill().unwrap();
    command.wait().unwrap();
    let lives = |pid: &u32| std::path::Path::new(&format!("/proc/{pid}")).exists();
    assert!(within_seconds(|| !players.iter().chain(&crew).any(lives)));
}

#[test]
fn figures_of_one_name_are_refused_wherever_the_scenario_is_read() {
    let text = "[task.a]\nevery = \"1ms\"\nbody = [{ begin = \"a_wait\" }, { run = \"10us\" }, \
        { end = \"a_wait\" }]\n";
    let folder = Folder::new("scenarios-one-name").with("s.toml", text);
    for command in ["run s.toml --machine tiny-2cpu", "check s.toml"] {
        let ran = folder.run(command);
        assert_eq!(ran.code, 2, "{command}: {}", ran.err);
        let said = "two figures are called a_wait_mean: the mean length of the span a_wait";
        assert!(ran.err.contains(said), "{command}: {}", ran.err);
    }
}

#[test]
fn two_phases_have_two_names() {
    let text = "[task.a]\nbody = [{ run = \"10us\" }]\n[[phase]]\nname = \"p\"\nat = \"0s\"\n\
        [[phase]]\nname = \"p\"\nat = \"1s\"\n";
    let ran = Folder::new("scenarios-two-phases")
        .with("s.toml", text)
        .run("check s.toml");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("two phases are called p"), "{}", ran.err);
}

#[test]
fn check_reads_all_files_whatever_is_wrong_with_one() {
    let fine = "[task.a]\nbody = [{ run = \"10us\" }]\n";
    let folder = Folder::new("scenarios-check-all").with("fine.toml", fine);
    let folder = folder.with("wrong.toml", "[task.a]\nbody = [{ rum = \"10us\" }]\n");
    let ran = folder.run("check missing.toml wrong.toml fine.toml gone.warmq");
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(
        ran.out.starts_with("fine.toml: fine; a scenario"),
        "{}",
        ran.out
    );
    for said in ["missing.toml", "wrong.toml", "gone.warmq"] {
        assert!(ran.err.contains(said), "{said}: {}", ran.err);
    }
}

#[test]
fn a_kernel_that_is_played_as_another_is_said() {
    let text = "[task.a]\nbody = [{ run = \"10us\" }]\n";
    let folder = Folder::new("scenarios-kernel").with("s.toml", text);
    let run = |kernel: &str| {
        let options = "--machine tiny-1cpu --time 10ms --seeds 1";
        let ran = folder.run(&format!("run s.toml {options} --kernel {kernel}"));
        ran.fine()
    };
    let said = "The lab does not know kernel 9.9, and plays it as eevdf-7.3.";
    assert!(run("9.9").contains(said), "{}", run("9.9"));
    assert!(!run("7.3.4").contains("does not know"));
    let of_compiled = run(&format!("6.6 --scheduler {FAULTS}"));
    assert!(
        of_compiled.contains("is run by kernel 7.3"),
        "{of_compiled}"
    );
}

#[test]
fn the_readmes_figure_is_what_comes_out() {
    let readme = include_str!("../../../README.md");
    let (_, rest) = readme.split_once("Save this one as `keys.toml`").unwrap();
    let (_, rest) = rest.split_once("```toml\n").unwrap();
    let (scenario, rest) = rest.split_once("```").unwrap();
    let shown = rest.lines().find(|line| line.contains("key_p99 (us)"));
    let shown: Vec<&str> = shown.unwrap().split_whitespace().collect();
    let folder = Folder::new("scenarios-readme").with("keys.toml", scenario);
    let ran = folder.run("run keys.toml --machine small-4llc --scheduler kernel");
    let out = ran.fine();
    let found = out
        .lines()
        .find(|line| line.contains("key_p99 (us)"))
        .unwrap();
    assert_eq!(found.split_whitespace().nth(2), Some(shown[2]), "{out}");
}
