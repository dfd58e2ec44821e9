//! Plays a scenario and reads its trace.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use warmq_trace::file::Reader;
use warmq_trace::{Header, Record};
use warmq_units::{Instant, TaskId};

/// A run that is over.
pub struct Played {
    /// The exit code.
    pub code: Option<i32>,
    /// Standard error.
    pub said: String,
    pub header: Header,
    pub records: Vec<(Instant, Record)>,
}

/// Among the options of [`command`]: with a recorder, which tests have only where they say so.
const RECORD: &str = "--record";

/// The program with a scenario of this text, and options.
pub fn command(scenario: &str, options: &str) -> (Command, tempfile::TempPath) {
    let file = tempfile::Builder::new()
        .suffix(".toml")
        .tempfile()
        .expect("a file");
    std::fs::write(file.path(), scenario).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_warmq-player"));
    command.arg("--scenario").arg(file.path());
    command.args(["--log", "4MB"]);
    let options: Vec<&str> = options.split_whitespace().collect();
    let records = options.contains(&RECORD);
    command.args(options.iter().filter(|option| **option != RECORD));
    if !records {
        command.arg("--no-record");
    }
    command.stdin(Stdio::null());
    (command, file.into_temp_path())
}

/// Plays `scenario`; a run that says why it is not played has no records.
pub fn play(scenario: &str, options: &str) -> Played {
    let (mut command, _file) = command(scenario, options);
    read(command.output().expect("the program"))
}

/// Plays `scenario` for at most so many milliseconds, without a warm-up, to an exit code of 0.
pub fn play_ms(scenario: &str, ms: u64) -> Played {
    let played = play(scenario, &format!("--warmup 0s --time {ms}ms"));
    assert_eq!(played.code, Some(0), "{}", played.said);
    played
}

/// What a run has written.
pub fn read(output: Output) -> Played {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let (mut header, mut records) = (Header::default(), Vec::new());
    if !output.stdout.is_empty() {
        let mut reader = Reader::new(&output.stdout[..]).expect("a trace");
        records = reader
            .by_ref()
            .map(|entry| entry.expect("a whole trace"))
            .collect();
        header = reader.header().clone();
    }
    Played {
        code: output.status.code(),
        said,
        header,
        records,
    }
}

impl Played {
    /// The records without their times.
    pub fn all(&self) -> impl Iterator<Item = &Record> {
        self.records.iter().map(|(_, record)| record)
    }

    /// The last total of a counter.
    pub fn counted(&self, counter: &str) -> u64 {
        *self.counts(counter).last().expect("a count")
    }

    /// All totals of a counter.
    pub fn counts(&self, counter: &str) -> Vec<u64> {
        let names = &self.header.names.counters;
        let wanted = names
            .iter()
            .position(|known| known == counter)
            .expect(counter) as u32;
        let total = |record: &Record| match *record {
            Record::Count { counter, total } if counter == wanted => Some(total),
            _ => None,
        };
        self.all().filter_map(total).collect()
    }

    /// The tasks of a table in the order of their numbers.
    pub fn tasks(&self, table: &str) -> Vec<TaskId> {
        let names = &self.header.names.tasks;
        let wanted = names.iter().position(|known| known == table).expect(table) as u32;
        let role = |record: &Record| match *record {
            Record::Role {
                task,
                table,
                number,
            } if table == wanted => Some((number, task)),
            _ => None,
        };
        let mut tasks: Vec<_> = self.all().filter_map(role).collect();
        tasks.sort_unstable();
        tasks.into_iter().map(|(_, task)| task).collect()
    }

    /// Begin and end of each span of a name that has both, in the order of their ends.
    pub fn spans(&self, name: &str) -> Vec<(Instant, Instant)> {
        let names = &self.header.names.spans;
        let wanted = names.iter().position(|known| known == name).expect(name) as u32;
        let (mut open, mut spans) = (std::collections::BTreeMap::new(), Vec::new());
        for (at, record) in &self.records {
            match record {
                Record::SpanBegin { span, number, .. } if *span == wanted => {
                    open.insert(*number, *at);
                }
                Record::SpanBegan {
                    span, number, ago, ..
                } if *span == wanted => {
                    open.insert(*number, at.before(*ago));
                }
                Record::SpanEnd { span, number, .. } if *span == wanted => {
                    spans.extend(open.remove(number).map(|begun| (begun, *at)));
                }
                _ => {}
            }
        }
        spans
    }

    /// Thread and process of a task.
    pub fn ids(&self, wanted: TaskId) -> (u32, u32) {
        self.ids_of(wanted).expect("ids")
    }

    /// Thread and process of a task, if they are known.
    pub fn ids_of(&self, wanted: TaskId) -> Option<(u32, u32)> {
        let ids = |record: &Record| match *record {
            Record::Ids { task, tid, tgid } if task == wanted => Some((tid, tgid)),
            _ => None,
        };
        self.all().find_map(ids)
    }
}

/// Milliseconds as the time of a record.
pub fn ms(count: u64) -> Instant {
    Instant(count * 1_000_000_000)
}

/// True if process or thread `id` is there, and not only its remains.
pub fn lives(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(')')
        .map_or("", |(_, rest)| rest.trim_start());
    !state.is_empty() && !state.starts_with(['Z', 'X'])
}

/// The folders of runs in all hierarchies of cgroups.
pub fn cgroups_of(pid: u32) -> Vec<PathBuf> {
    let name = format!("warmq-{pid}");
    let (mut found, mut left) = (Vec::new(), vec![(PathBuf::from("/sys/fs/cgroup"), 0)]);
    while let Some((folder, depth)) = left.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_name().to_string_lossy().starts_with(&name) {
                found.push(path.clone());
            }
            if depth < 6 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                left.push((path, depth + 1));
            }
        }
    }
    found
}

/// True if this is root, who can give up its rights.
pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").expect("/proc").uid() == 0
}

/// The program with a scenario of this text and options, as the user nobody; root alone can do
/// that. Both are copied to `folder`: that of the build may be closed to others.
pub fn nobodys(folder: &Path, text: &str, options: &str) -> Command {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let (program, scenario) = (folder.join("player"), folder.join("scenario.toml"));
    // By another process: what this one has open for writing, its other threads' children have
    // open, too, and a program that is open for writing cannot be run.
    let copied = Command::new("cp")
        .arg(env!("CARGO_BIN_EXE_warmq-player"))
        .arg(&program)
        .status();
    assert!(copied.expect("cp").success());
    std::fs::write(&scenario, text).expect("written");
    for (path, mode) in [(folder, 0o755), (&program, 0o755), (&scenario, 0o644)] {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(path, permissions).expect("permissions");
    }
    let mut command = Command::new(&program);
    command.arg("--scenario").arg(&scenario);
    command.args(["--no-record", "--log", "4MB"]);
    command.args(options.split_whitespace());
    command.stdin(Stdio::null());
    command.uid(65_534).gid(65_534);
    command
}
