//! What is far too much of something: it is refused or cut short in a sentence, and nothing else is
//! lost with it.

use std::fs::{self, File};
use std::io::BufWriter;

use warmq_trace::file::Writer;
use warmq_trace::{Comm, Header, Observer, Record};
use warmq_units::{CpuId, Instant, TaskId};

use super::support::{FAULTS, Folder, Ran};

const HOG: &str = "[task.hog]\nbody = [{ run = \"1ms\" }]\n";
/// Options of a short run.
const SHORT: &str = "--machine tiny-1cpu --seeds 1 --time 1ms --warmup 0ms";

/// The command within `limits` of the shell's `ulimit`.
fn limited(folder: &Folder, limits: &str, arguments: &str) -> Ran {
    let warmq = folder.command(arguments);
    let mut shell = std::process::Command::new("/bin/sh");
    shell
        .args(["-c", &format!("ulimit {limits} && exec \"$0\" \"$@\"")])
        .arg(warmq.get_program())
        .args(warmq.get_args())
        .current_dir(&folder.0)
        .env("NO_COLOR", "1");
    Ran::of(shell.output().unwrap())
}

#[test]
fn a_mistake_far_to_the_right_is_shown_at_its_column() {
    let wide = format!("[task.a]\nbody = [\"{}\", 3]\n", "y".repeat(70_000));
    let blank = " ".repeat(70_000);
    let json = format!("{{\"tasks\": {{}}, \"global\": {blank}{{\"duration\": \"long\"}}}}");
    let folder = Folder::new("bounds-wide")
        .with("wide.toml", &wide)
        .with("wide.json", &json);
    for (file, place) in [
        ("wide.toml", "wide.toml:2:70013"),
        ("wide.json", "duration"),
    ] {
        let ran = folder.run(&format!("check {file}"));
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains(place), "{}", ran.err);
    }
}

#[test]
fn results_of_before_are_read_up_to_a_size() {
    let folder = Folder::new("bounds-results").with("laws.jsonl", "");
    let file = File::options()
        .write(true)
        .open(folder.0.join("laws.jsonl"));
    file.unwrap().set_len(1 << 40).unwrap();
    for option in ["--against laws.jsonl", "--out . --resume"] {
        let ran = folder.run(&format!("laws nice --scheduler linux24 {option}"));
        assert_eq!(ran.code, 2, "{}", ran.err);
        let what = "laws.jsonl: cannot read it: it has more than 64 MB";
        assert!(ran.err.contains(what), "{}", ran.err);
    }
}

#[test]
fn of_ten_thousand_mistakes_a_hundred_are_shown() {
    let keys: String = (0..10_000).map(|key| format!("k{key} = 1\n")).collect();
    let folder = Folder::new("bounds-keys").with("keys.toml", &format!("{HOG}{keys}"));
    let ran = folder.run("check keys.toml");
    assert_eq!(ran.code, 2);
    assert_eq!(ran.err.matches("unknown key").count(), 100);
    assert!(ran.err.trim_end().ends_with("… and 9900 more mistakes"));
}

#[test]
fn objects_are_counted_over_all_tables() {
    let table = |number: usize| format!("[mutex.m{number}]\ncount = 600000\n");
    let tables: String = (0..300).map(table).collect();
    let folder = Folder::new("bounds-objects").with("many.toml", &format!("{tables}{HOG}"));
    let ran = folder.run("check many.toml");
    assert_eq!(ran.code, 2);
    let what = "with these there are 1200000 objects, and 1000000 are the most";
    assert!(ran.err.contains(what), "{}", ran.err);
    assert!(ran.err.contains("many.toml:3"), "{}", ran.err);
}

#[test]
fn a_body_that_takes_no_time_is_found_out_with_its_name() {
    let counts = "[{ count = \"c\" }]";
    let repeated = format!(
        "[task.idle]\nbody = [{{ repeat = 1000000000000, body = {counts} }}, {{ run = \"1ms\" }}]\n"
    );
    let rounds = format!("[task.idle]\ntimes = 1000000000000\nbody = {counts}\n");
    let folder = Folder::new("bounds-count")
        .with("loop.toml", &repeated)
        .with("rounds.toml", &rounds);
    for file in ["loop.toml", "rounds.toml"] {
        let ran = folder.run(&format!("run {file} {SHORT}"));
        assert_eq!(ran.code, 4, "{}", ran.err);
        let what = "idle works without end while time stands still";
        assert!(ran.err.contains(what), "{}", ran.err);
    }
}

#[test]
fn a_source_that_sends_without_measure_fails_its_run_and_no_other() {
    let source = "[settings.rate]\ndefault = 1000\nleast = 1\nmost = 10000000000\nwhat = \"datagrams a second\"\n\
                  [datagram.d]\n[source.s]\nto = \"d\"\nbytes = \"100B\"\nrate = \"rate per s\"\n\
                  [task.receiver]\nbody = [{ receive = \"d\" }]\n";
    let sweep = "title = \"rates\"\nworkload = \"source.toml\"\nmachine = \"tiny-1cpu\"\nscheduler = \"eevdf-6.18\"\nseeds = [1]\n\
                 [run]\nwarmup = \"0ms\"\ntime = \"10ms\"\n[sweep]\nrate = [1000, 10000000000]\n\
                 [[measure]]\nmetric = \"switches_per_second\"\n";
    let folder = Folder::new("bounds-source")
        .with("source.toml", source)
        .with("sweep.toml", sweep);
    let ran = folder.run("run sweep.toml --json");
    assert_eq!(ran.code, 4, "{}", ran.err);
    assert!(ran.err.contains("events are to come"), "{}", ran.err);
    let other = "\"point\":{\"rate\":1000},\"metric\":\"switches_per_second\",\"value\":2200.0";
    assert!(ran.out.contains(other), "{}", ran.out);
}

#[test]
fn changes_have_a_shortest_period() {
    let change = "[[change]]\nevery = \"1ps\"\ntask = \"hog\"\nset = { nice = 5 }\n";
    let folder = Folder::new("bounds-change").with("change.toml", &format!("{HOG}{change}"));
    let ran = folder.run("check change.toml");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("once a microsecond"), "{}", ran.err);
}

#[test]
fn without_threads_the_command_says_so() {
    let folder = Folder::new("bounds-threads").with("hog.toml", HOG);
    let mut command = folder.command(&format!("run hog.toml {SHORT}"));
    // No system has room for such a stack, so that no thread can be started.
    let ran = Ran::of(
        command
            .env("RUST_MIN_STACK", (1_u64 << 46).to_string())
            .output()
            .unwrap(),
    );
    assert_eq!(ran.code, 6, "{}", ran.err);
    assert!(ran.err.contains("cannot start 1 threads"), "{}", ran.err);
}

#[test]
fn inputs_without_end_are_read_up_to_a_size() {
    let folder = Folder::new("bounds-endless").with("hog.toml", HOG);
    for arguments in [
        "check /dev/zero",
        "run /dev/zero",
        "plan /dev/zero",
        "laws --alike /dev/zero",
        "run hog.toml --collect /dev/zero",
        "compare /dev/zero /dev/zero",
        "diagnose /dev/zero",
        "replay /dev/zero",
    ] {
        let ran = limited(&folder, "-v 4000000", arguments);
        assert_eq!(ran.code, 2, "{arguments}: {}", ran.err);
    }
}

#[test]
fn a_trace_with_a_high_cpu_and_many_forks_takes_little_memory() {
    let folder = Folder::new("bounds-affinity");
    let file = File::create(folder.0.join("forks.warmq")).unwrap();
    let mut writer = Writer::new(BufWriter::new(file), &Header::default());
    let (comm, from) = (Comm::new("forks"), CpuId(65_472));
    let bound = Record::Affinity {
        task: TaskId(1),
        from,
        cpus: 1,
    };
    writer.see(Instant(0), &bound);
    for number in 2..200_000 {
        let (parent, child) = (TaskId(1), TaskId(number));
        writer.see(
            Instant(u64::from(number)),
            &Record::Fork {
                parent: Some(parent),
                child,
                comm,
            },
        );
    }
    writer.finish().unwrap();
    // A word for every 64 CPUs below would be 1.6 GB for these tasks.
    let ran = limited(&folder, "-v 1500000", "diagnose forks.warmq");
    assert_eq!(ran.code, 0, "{}", ran.err);
}

#[test]
fn a_title_of_any_letters_is_checked_and_run() {
    for (name, letter) in [
        ("hyphen", '\u{ad}'),
        ("joiner", '\u{200d}'),
        ("mark", '\u{feff}'),
    ] {
        let text = format!("title = \"a{letter}b\"\n{HOG}");
        let folder = Folder::new(&format!("bounds-title-{name}")).with("it.toml", &text);
        let (check, run) = (
            folder.run("check it.toml"),
            folder.run(&format!("run it.toml {SHORT}")),
        );
        assert_eq!((check.code, run.code), (0, 0), "{}{}", check.err, run.err);
        let shown = format!("a\\u{:04x}b", u32::from(letter));
        assert!(run.out.contains(&shown), "{}", run.out);
    }
}

#[test]
fn what_a_file_is_is_decided_by_its_content_for_all_commands() {
    let script = "{\"tasks\": {\"a\": {\"run\": 1000}}, \"global\": {\"duration\": 1}}";
    let title = "title = '''\n[task.none]\n'''\nworkload = \"chat\"\nmachine = \"tiny-1cpu\"\nscheduler = \"eevdf-6.18\"\n\
                 [[measure]]\nmetric = \"*\"\n";
    let folder = Folder::new("bounds-content")
        .with("script", script)
        .with(
            "spaced.toml",
            "[ task . hog ]\nbody = [{ run = \"1ms\" }]\n",
        )
        .with("experiment.toml", title);
    for file in ["script", "spaced.toml"] {
        for command in [format!("check {file}"), format!("run {file} {SHORT}")] {
            let ran = folder.run(&command);
            assert_eq!(ran.code, 0, "{command}: {}", ran.err);
        }
    }
    let ran = folder.run("check experiment.toml");
    assert!(ran.out.contains("1 points"), "{}{}", ran.out, ran.err);
}

#[test]
fn scenarios_that_are_not_trusted_write_no_file_and_start_no_program() {
    let evil = format!(
        "{HOG}[file.log]\npath = \"log\"\n[task.writer]\nbody = [{{ write = \"log\", bytes = \"1B\" }}]\n\
         [[change]]\nat = \"1ms\"\nscheduler = \"evil\"\n"
    );
    let law = format!("[law]\nsays = \"s\"\nbecause = \"b\"\nfamily = \"fairness\"\n{evil}");
    let folder = Folder::new("bounds-untrusted")
        .with("evil.toml", &evil)
        .with("law.toml", &law)
        .with("hog.toml", HOG);
    for command in [
        "check --untrusted evil.toml".to_owned(),
        format!("run --untrusted evil.toml --world host {SHORT}"),
        "laws --untrusted --alike evil.toml".to_owned(),
    ] {
        let ran = folder.run(&command);
        assert_eq!(ran.code, 2, "{command}: {}", ran.err);
        for what in [
            "evil.toml:3",
            "it writes to the file \"log\"",
            "it starts the program \"evil\"",
        ] {
            assert!(ran.err.contains(what), "{command}: {}", ran.err);
        }
    }
    let started = "run --untrusted hog.toml --world host --scheduler ./evil";
    let file = "title = \"t\"\npaper = \"p\"\nworld = \"host\"\nmachine = \"host\"\nscheduler = \"./evil\"\n\
                workload = \"./hog.toml\"\nseeds = [1]\n[run]\ntime = \"1ms\"\n";
    let folder = folder.with("theirs.toml", file);
    fs::copy(FAULTS, folder.0.join("evil")).unwrap();
    for command in [started, "run --untrusted theirs.toml"] {
        let ran = folder.run(command);
        let refused = ran
            .err
            .contains("--untrusted starts no program on this machine");
        assert!(ran.code == 2 && refused, "{command}: {}", ran.err);
    }
    for command in [
        "check --untrusted hog.toml".to_owned(),
        format!("run --untrusted hog.toml {SHORT}"),
    ] {
        assert_eq!(folder.run(&command).code, 0, "{command}");
    }
}

#[test]
fn amounts_near_the_most_that_can_be_written_are_no_panic() {
    let bodies = [
        "[task.a]\nbody = [{ run = \"1000000s\" }]\n",
        "[task.a]\nbody = [{ run = { pareto = \"1000000s\", shape = 1.001 } }]\n",
        "[task.a]\nbody = [{ run = \"1000000000000000 cycles\" }]\n",
        "[task.a]\nbody = [{ recorded = \"1000000s ~1000000s @1000000s\" }]\n",
        "[task.a]\nbody = [{ count = \"c\", by = 9223372036854775807 }, { run = \"1us\" }]\n",
        "[region.r]\nbytes = \"64KB\"\n[task.a]\nbody = [{ touch = \"r\", first = 9223372036854775807, \
         lines = 9223372036854775807, pattern = \"stride 9223372036854775807\", write = \"50%\" }]\n",
    ];
    let folder = Folder::new("bounds-amounts");
    for (number, body) in bodies.iter().enumerate() {
        let name = format!("{number}.toml");
        std::fs::write(folder.0.join(&name), body).unwrap();
        // On cores with siblings a step is stretched.
        let ran = folder.run(&format!(
            "run {name} --machine small-smt --seeds 1 --time 1ms --warmup 0ms"
        ));
        assert_eq!(ran.code, 0, "{body}: {}", ran.err);
    }
}

#[test]
fn amounts_beyond_the_most_are_refused_at_their_place() {
    for (amount, most) in [
        ("run = \"1000001s\"", "1000000s"),
        (
            "run = \"1000000000000001 cycles\"",
            "1000000000000000 cycles",
        ),
        ("send = \"p\", bytes = \"65537GB\"", "65536GB"),
    ] {
        let text = format!(
            "[pipe.p]\n[task.a]\nbody = [{{ {amount} }}, {{ send = \"p\", bytes = \"1B\" }}]\n\
             [task.b]\nbody = [{{ receive = \"p\", bytes = \"1B\" }}]\n"
        );
        let folder = Folder::new("bounds-beyond").with("beyond.toml", &text);
        let ran = folder.run("check beyond.toml");
        let what = format!("the result is more than {most}");
        assert_eq!(ran.code, 2, "{amount}");
        assert!(
            ran.err.contains(&what) && ran.err.contains("beyond.toml:3"),
            "{}",
            ran.err
        );
    }
    let folder = Folder::new("bounds-time").with("hog.toml", HOG);
    let ran = folder.run("run hog.toml --machine tiny-1cpu --time 18000000s --warmup 18000000s");
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("a time of at most"), "{}", ran.err);
}
