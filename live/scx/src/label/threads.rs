//! Which threads a label is for: by number, process, name or cgroup, read from /proc and
//! /sys/fs/cgroup under a root.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use warmq_units::printable;

use crate::options::Label;

const CGROUPS: &str = "sys/fs/cgroup";

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Thread {
    /// Its number.
    pub tid: i32,
    /// Its process.
    pub pid: i32,
    /// Its name.
    pub name: String,
}

impl fmt::Display for Thread {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({})", self.tid, printable(&self.name))
    }
}

/// A path that is no cgroup.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} is no cgroup (version 2): it has no file cgroup.threads; list the cgroups with systemd-cgls, \
     or ls /sys/fs/cgroup",
    printable(.0)
)]
pub struct NoCgroup(PathBuf);

/// A choice of threads.
pub struct Select<'a>(&'a Label);

impl<'a> Select<'a> {
    /// The choice on the command line.
    pub fn new(asked: &'a Label) -> Select<'a> {
        Select(asked)
    }

    /// In words, after "no thread".
    pub fn words(&self) -> String {
        let asked = self.0;
        match (&asked.name, &asked.cgroup) {
            (Some(name), _) => format!("is called {name}"),
            (_, Some(cgroup)) => format!("is in the cgroup {}", printable(cgroup)),
            _ if !asked.tid.is_empty() => format!("has the number {:?}", asked.tid),
            _ if !asked.pid.is_empty() => format!("is of process {:?}", asked.pid),
            _ => "was found".to_owned(),
        }
    }

    /// The chosen threads that exist now.
    pub fn find(&self, root: &Path) -> Result<BTreeSet<Thread>, NoCgroup> {
        let asked = self.0;
        if let Some(pattern) = &asked.name {
            let fits =
                |thread: &Thread| pattern.matches(&thread.name) && !is_of_kernel(root, thread.pid);
            return Ok(everybody(root).into_iter().filter(fits).collect());
        }
        if let Some(cgroup) = &asked.cgroup {
            return of_cgroup(root, cgroup);
        }
        if asked.all {
            return Ok(everybody(root));
        }
        let of_processes = asked.pid.iter().flat_map(|pid| of_process(root, *pid));
        Ok(asked
            .tid
            .iter()
            .filter_map(|tid| thread(root, *tid))
            .chain(of_processes)
            .collect())
    }
}

/// All threads of the machine.
pub fn everybody(root: &Path) -> BTreeSet<Thread> {
    numbers(&root.join("proc"))
        .into_iter()
        .flat_map(|pid| of_process(root, pid))
        .collect()
}

fn of_process(root: &Path, pid: i32) -> Vec<Thread> {
    let threads = numbers(&root.join(format!("proc/{pid}/task"))).into_iter();
    let with_name = |tid| {
        // It may have any bytes.
        let name = fs::read(root.join(format!("proc/{pid}/task/{tid}/comm"))).ok()?;
        let name = String::from_utf8_lossy(&name);
        Some(Thread {
            tid,
            pid,
            name: name.trim_end_matches('\n').to_owned(),
        })
    };
    threads.filter_map(with_name).collect()
}

/// A thread of any process.
fn thread(root: &Path, tid: i32) -> Option<Thread> {
    let pid = status(root, tid, "Tgid:")?.parse().ok()?;
    of_process(root, pid)
        .into_iter()
        .find(|thread| thread.tid == tid)
}

/// Whether a process is a kernel thread. A pattern of names does not apply to those.
fn is_of_kernel(root: &Path, pid: i32) -> bool {
    status(root, pid, "Kthread:").is_some_and(|value| value == "1")
}

fn status(root: &Path, tid: i32, field: &str) -> Option<String> {
    let text = fs::read_to_string(root.join(format!("proc/{tid}/status"))).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(field))?;
    Some(value.trim().to_owned())
}

/// Threads of a cgroup and those below it.
fn of_cgroup(root: &Path, path: &Path) -> Result<BTreeSet<Thread>, NoCgroup> {
    let folder = cgroup_folder(root, path);
    let own = fs::read_to_string(folder.join("cgroup.threads"));
    let own = own.map_err(|_| NoCgroup(folder.clone()))?;
    let mut threads: BTreeSet<Thread> = own
        .lines()
        .filter_map(|tid| thread(root, tid.parse().ok()?))
        .collect();
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            // A cgroup that was removed meanwhile has no threads.
            threads.extend(of_cgroup(root, &entry.path()).unwrap_or_default());
        }
    }
    Ok(threads)
}

/// `/sys/fs/cgroup/a`, `/a` (as in /proc/PID/cgroup) and `a` are the same cgroup.
fn cgroup_folder(root: &Path, path: &Path) -> PathBuf {
    let all = root.join(CGROUPS);
    let inside = path.strip_prefix("/").unwrap_or(path);
    match inside.strip_prefix(CGROUPS) {
        Ok(inside) => all.join(inside),
        Err(_) if path.starts_with(&all) => path.to_owned(),
        Err(_) => all.join(inside),
    }
}

/// The entries of a folder that are numbers.
fn numbers(folder: &Path) -> Vec<i32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::options::{Command, Options};

    /// Process 10 (db: threads 10 db, 11 db-1, 12 db-2), process 20 (web), kernel thread 30
    /// (db-kernel).
    fn machine() -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        let threads = [
            (10, 10, "db"),
            (10, 11, "db-1"),
            (10, 12, "db-2"),
            (20, 20, "web"),
            (30, 30, "db-kernel"),
        ];
        for (pid, tid, name) in threads {
            put(
                &root,
                &format!("proc/{pid}/task/{tid}/comm"),
                &format!("{name}\n"),
            );
            let kernel = u8::from(pid == 30);
            put(
                &root,
                &format!("proc/{tid}/status"),
                &format!("Name:\t{name}\nTgid:\t{pid}\nKthread:\t{kernel}\n"),
            );
        }
        put(&root, "proc/uptime", "1 1");
        put(&root, "sys/fs/cgroup/cgroup.threads", "20\n");
        put(&root, "sys/fs/cgroup/a/cgroup.threads", "11\n");
        put(&root, "sys/fs/cgroup/a/b/cgroup.threads", "12\n99\n");
        root
    }

    fn put(root: &tempfile::TempDir, path: &str, text: &str) {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn found(arguments: &str) -> Result<Vec<i32>, NoCgroup> {
        let line = format!("scx_warmq label {arguments} 7");
        let Some(Command::Label(asked)) = Options::parse_from(line.split(' ')).command else {
            panic!("it is a label");
        };
        let threads = Select::new(&asked).find(machine().path())?;
        Ok(threads.into_iter().map(|thread| thread.tid).collect())
    }

    #[test]
    fn threads_are_found_by_number_process_and_pattern() {
        let cases: &[(&str, &[i32])] = &[
            ("--tid 11", &[11]),
            ("--tid 11 --tid 20", &[11, 20]),
            ("--tid 99", &[]),
            ("--pid 10", &[10, 11, 12]),
            ("--name db", &[10]),
            ("--name db*", &[10, 11, 12]),
            ("--name db-?", &[11, 12]),
            ("--name db-[2-9]", &[12]),
            ("--name DB", &[]),
        ];
        for (arguments, threads) in cases {
            assert_eq!(
                found(arguments).expect("they are looked for"),
                *threads,
                "{arguments}"
            );
        }
    }

    #[test]
    fn a_cgroup_has_the_threads_of_those_below() {
        for path in ["/sys/fs/cgroup/a", "sys/fs/cgroup/a", "a", "/a", "a/"] {
            assert_eq!(
                found(&format!("--cgroup {path}")).expect("it is one"),
                [11, 12],
                "{path}"
            );
        }
        assert_eq!(found("--cgroup /").expect("it is one"), [11, 12, 20]);
        assert!(found("--cgroup nowhere").is_err());
    }
}
