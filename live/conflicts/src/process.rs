//! A process as /proc shows it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use crate::error::{ConflictsError, is_gone};
use crate::layout::{Kind, Layout};
use crate::maps::{self, Mapping};
use crate::memory::Memory;
use crate::unguarded;

/// How often a thread that runs is looked at again, and how long after each time.
const LOOKS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(1);

/// Mappings alike that are taken for stacks, at least: fewer conflict nowhere.
const FEWEST_STACKS: usize = 8;

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its number.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Its stack pointer in user space; `None` if it ran each time that it was looked at.
    pub stack_pointer: Option<u64>,
}

/// Threads and mappings of a process at about one time.
#[derive(Debug)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Its threads.
    pub threads: Vec<Thread>,
    /// Its mappings, ascending.
    pub mappings: Vec<Mapping>,
    folder: PathBuf,
}

impl Process {
    /// Looks at process `pid` in `root`/proc. It is neither stopped nor traced.
    ///
    /// # Errors
    /// A process that has ended, or that may not be looked at.
    pub fn look(root: &Path, pid: u32) -> Result<Process, ConflictsError> {
        let folder = root.join("proc").join(pid.to_string());
        let read = |file: &str| {
            let text = fs::read(folder.join(file));
            text.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
                .map_err(|error| ConflictsError::of_process(pid, file, error))
        };
        let name = read("comm")?.trim_end().to_owned();
        let mappings = Mapping::all(&read("maps")?);
        if mappings.is_empty() {
            return Err(ConflictsError::NoMemory { pid });
        }
        let mut threads = Vec::new();
        for tid in tids(&folder).map_err(|error| ConflictsError::of_process(pid, "task", error))? {
            match Thread::look(&folder, tid) {
                Ok(thread) => threads.push(thread),
                // It has ended in the meantime.
                Err(error) if is_gone(&error) => {}
                Err(error) => {
                    let file = format!("task/{tid}/syscall");
                    return Err(ConflictsError::of_process(pid, &file, error));
                }
            }
        }
        let process = Process {
            pid,
            name,
            threads,
            mappings,
            folder,
        };
        let ended = process.threads.is_empty();
        if ended {
            Err(ConflictsError::Gone { pid })
        } else {
            Ok(process)
        }
    }

    /// Threads that ran whenever they were looked at, so that their stacks are not known.
    pub fn running(&self) -> usize {
        let seen = |thread: &&Thread| thread.stack_pointer.is_none();
        self.threads.iter().filter(seen).count()
    }

    /// The folder of the process in /proc.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What can be found without being named, a layout for each kind of which there is something.
    pub fn layouts(&self) -> Vec<Layout> {
        let memory = Memory::open(&self.folder);
        let blocks = memory.as_ref().map(|memory| self.control_blocks(memory));
        let tops = memory.as_ref().map(|memory| self.stack_tops(memory));
        let alike = memory.as_ref().and_then(|memory| self.stacks_alike(memory));
        let layouts = [
            Layout::new(Kind::StackPointers, self.stack_pointers()),
            Layout::new(Kind::ControlBlocks, blocks.unwrap_or_default()),
            Layout::new(Kind::StackTops, tops.unwrap_or_default()),
            Layout::new(Kind::StacksAlike, alike.unwrap_or_default()),
        ];
        let some = layouts.into_iter().filter(|layout| !layout.is_empty());
        some.collect()
    }

    fn stack_pointers(&self) -> Vec<u64> {
        let pointers = self.threads.iter();
        pointers.filter_map(|thread| thread.stack_pointer).collect()
    }

    /// Where glibc has a control block above a stack pointer: of all threads but the first.
    fn control_blocks(&self, memory: &Memory) -> Vec<u64> {
        let above = |pointer: u64| {
            let stack = maps::holding(&self.mappings, pointer)?;
            memory.control_block(pointer, stack.end)
        };
        self.stack_pointers()
            .into_iter()
            .filter_map(above)
            .collect()
    }

    /// The first line in use, from above, of each stack that no thread is in: those of fibers.
    fn stack_tops(&self, memory: &Memory) -> Vec<u64> {
        let mut pointers = self.stack_pointers();
        pointers.sort_unstable();
        let is_free = |stack: &&Mapping| {
            let next = pointers.partition_point(|pointer| *pointer < stack.start);
            pointers
                .get(next)
                .is_none_or(|pointer| !stack.has(*pointer))
        };
        let stacks = guarded(&self.mappings).filter(is_free);
        let tops = stacks.filter_map(|stack| Some((stack.size(), memory.top(stack)?)));
        let tops = of_most(tops.collect());
        if tops.len() < FEWEST_STACKS {
            Vec::new()
        } else {
            tops
        }
    }

    /// What looks like stacks in the mapping that has most of them.
    fn stacks_alike(&self, memory: &Memory) -> Option<Vec<u64>> {
        let pagemap = File::open(self.folder.join("pagemap")).ok()?;
        let code = |address| {
            maps::holding(&self.mappings, address).is_some_and(|mapping| mapping.executable)
        };
        let data = |mapping: &&Mapping| mapping.writable && mapping.is_anonymous();
        let tops = |mapping| unguarded::tops(&pagemap, memory, mapping, FEWEST_STACKS, &code);
        let all = self.mappings.iter().filter(data).map(tops);
        all.max_by_key(Vec::len)
    }
}

/// The mappings that may be stacks: anonymous, writable, right above a guard.
fn guarded(mappings: &[Mapping]) -> impl Iterator<Item = &Mapping> {
    mappings.windows(2).filter_map(|pair| {
        let [guard, stack] = pair else { return None };
        let above = guard.guard && guard.end == stack.start;
        (above && stack.writable && stack.is_anonymous()).then_some(stack)
    })
}

/// The tops of the stacks of that size which most have, of sizes and tops.
fn of_most(mut tops: Vec<(u64, u64)>) -> Vec<u64> {
    tops.sort_unstable();
    let sizes = tops.chunk_by(|(size, _), (next, _)| size == next);
    let most = sizes.max_by_key(|stacks| stacks.len()).unwrap_or_default();
    most.iter().map(|(_, top)| *top).collect()
}

/// The threads of the process in `folder`, ascending.
fn tids(folder: &Path) -> io::Result<Vec<u32>> {
    let mut tids = Vec::new();
    for entry in fs::read_dir(folder.join("task"))? {
        let name = entry?.file_name();
        tids.extend(name.to_str().and_then(|name| name.parse::<u32>().ok()));
    }
    tids.sort_unstable();
    Ok(tids)
}

impl Thread {
    /// Looks at thread `tid` of the process in `process`.
    fn look(process: &Path, tid: u32) -> io::Result<Thread> {
        let folder = process.join("task").join(tid.to_string());
        let mut stack_pointer = None;
        for look in 0..LOOKS {
            if look > 0 {
                sleep(PAUSE);
            }
            let text = fs::read_to_string(folder.join("syscall"))?;
            stack_pointer = pointer_in(&text);
            if text.trim_end() != "running" {
                break;
            }
        }
        let name = fs::read(folder.join("comm"))?;
        Ok(Thread {
            tid,
            name: String::from_utf8_lossy(&name).trim_end().to_owned(),
            stack_pointer,
        })
    }
}

/// The stack pointer in /proc/PID/task/TID/syscall, the last word but one: `-1 SP PC` outside of
/// system calls, otherwise the call and its six arguments before (the kernel's `proc_pid_syscall`).
fn pointer_in(text: &str) -> Option<u64> {
    let word = text.split_whitespace().rev().nth(1)?;
    let pointer = u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()?;
    (pointer != 0).then_some(pointer)
}
