//! Runs the command in a folder of its own, with nothing of ours in its surroundings.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A compiled scheduler of our own, with one queue.
pub const FAULTS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../lab/sched-ext/tests/programs/faults.bpf.o"
);

/// Another one, with races that can be cured.
pub const RACES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../lab/race/tests/programs/races.bpf.o"
);

/// A folder for one test.
pub struct Folder(pub PathBuf);

impl Folder {
    /// An empty folder called `name`; no two tests share a name.
    pub fn new(name: &str) -> Folder {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// With a file in it.
    pub fn with(self, name: &str, text: &str) -> Folder {
        fs::write(self.0.join(name), text).unwrap();
        self
    }

    /// The text of a file in it.
    pub fn text(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }

    /// The names of all files in it, in order.
    pub fn names(&self) -> Vec<String> {
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<String> = fs::read_dir(&self.0)
            .unwrap()
            .map(|entry| name(entry).into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// `warmq` in it, to be given arguments split at spaces.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warmq"));
        command
            .args(arguments.split_whitespace())
            .current_dir(&self.0)
            .env_remove("COLUMNS")
            .env_remove("CLICOLOR_FORCE")
            .env("NO_COLOR", "1");
        command
    }

    /// `warmq` run in it.
    pub fn run(&self, arguments: &str) -> Ran {
        Ran::of(self.command(arguments).output().unwrap())
    }
}

/// What came of a command.
pub struct Ran {
    /// The exit code.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Ran {
    /// As the system reports it.
    pub fn of(output: Output) -> Ran {
        Ran {
            code: output.status.code().expect("no signal ended it"),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Standard output of a command that went well.
    pub fn fine(self) -> String {
        assert_eq!(self.code, 0, "{}", self.err);
        self.out
    }
}

/// An experiment of two points on a small machine that runs in no time. Its first claim holds, its
/// second does not.
pub const TRIAL: &str = r#"title = "A trial"
machine = "tiny-1cpu"
scheduler = "linux24"
workload = "spin"
seeds = [1, 2]

[run]
warmup = "10ms"
time = "500ms"

[sweep]
tasks = [2, 4]

[quick.sweep]
tasks = [2]

[[measure]]
metric = ["cpu_busy_share", "walk_length"]

[[published]]
metric = "walk_length"
at = { tasks = 2 }
value = 2
calibration = true

[[claim]]
says = "The CPU is busy"
metric = "cpu_busy_share"
at_least = 50

[[claim]]
says = "The CPU is idle"
metric = "cpu_busy_share"
at_most = 10

[[plot]]
x = "tasks"
y = "walk_length"
"#;
