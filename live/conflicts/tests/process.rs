//! Processes: recorded files of /proc in folders, and this one.
#![allow(unsafe_code)]

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Barrier};

use tempfile::TempDir;
use warmq_conflicts::{ConflictsError, Frames, Kind, Layout, PAGE, Process};

const PID: u32 = 4711;

/// A first thread on its stack, one on a stack of its own, and one that runs.
const MAPS: &str = "\
00001000-00002000 r-xp 00000000 08:02 17 /bin/server
00010000-00011000 ---p 00000000 00:00 0
00011000-00015000 rw-p 00000000 00:00 0
00ff0000-01000000 rw-p 00000000 00:00 0 [stack]
";

fn recorded(maps: &str, threads: &[(u32, &str)]) -> TempDir {
    let root = tempfile::tempdir().expect("a folder");
    let folder = root.path().join(format!("proc/{PID}"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("comm"), "server\n").unwrap();
    fs::write(folder.join("maps"), maps).unwrap();
    for (tid, syscall) in threads {
        let thread = folder.join(format!("task/{tid}"));
        fs::create_dir_all(&thread).unwrap();
        fs::write(thread.join("comm"), "worker\n").unwrap();
        fs::write(thread.join("syscall"), syscall).unwrap();
    }
    root
}

/// Memory of the recorded process: words at addresses, zeros elsewhere.
fn with_memory(root: &Path, words: &[(u64, u64)]) {
    let file = File::create(root.join(format!("proc/{PID}/mem"))).unwrap();
    file.set_len(0x2000000).unwrap();
    for (address, word) in words {
        file.write_all_at(&word.to_ne_bytes(), *address).unwrap();
    }
}

fn layout(process: &Process, kind: Kind) -> Option<Layout> {
    let layouts = process.layouts();
    layouts.into_iter().find(|layout| layout.kind() == kind)
}

/// The lines at the place of a page that has most.
fn fullest(layout: &Layout) -> u64 {
    layout.by_offset(64).into_iter().max().unwrap_or(0)
}

#[test]
fn stack_pointers_are_those_of_threads_in_and_outside_of_system_calls() {
    let threads = [
        (4711, "202 0x1 0x80 0x0 0x0 0x0 0x0 0xfff100 0x1234\n"),
        (4712, "-1 0x14a40 0x1234\n"),
        (4713, "running\n"),
    ];
    let root = recorded(MAPS, &threads);
    let process = Process::look(root.path(), PID).expect("a process");
    assert_eq!(
        (process.name.as_str(), process.threads.len()),
        ("server", 3)
    );
    assert_eq!(process.running(), 1);
    assert_eq!(process.threads[1].name, "worker");
    let pointers = layout(&process, Kind::StackPointers).expect("two");
    assert_eq!(pointers.addresses(), [0x14a40, 0xfff100]);
    assert_eq!(
        layout(&process, Kind::ControlBlocks),
        None,
        "no memory to read"
    );
}

#[test]
fn a_control_block_is_what_points_to_itself_twice_above_the_stack_pointer() {
    let root = recorded(MAPS, &[(4711, "-1 0x14a40 0x1\n")]);
    // One below the stack pointer is of an earlier time, one with a single pointer is a list.
    let blocks = [0x12000, 0x12010, 0x14b00, 0x14d40, 0x14d50];
    let words = blocks.map(|place| (place, place & !0x3f));
    with_memory(root.path(), &words);
    let process = Process::look(root.path(), PID).expect("a process");
    let found = layout(&process, Kind::ControlBlocks).expect("one");
    assert_eq!(found.addresses(), [0x14d40]);
}

#[test]
fn stacks_that_no_thread_is_in_are_found_by_their_guards_with_the_highest_line_in_use() {
    let stack = |index: u64| {
        (
            0x100000 + index * 0x5000,
            0x100000 + index * 0x5000 + 0x4000,
        )
    };
    let mut maps = MAPS.to_owned();
    for (start, end) in (0..10).map(stack) {
        let guard = start - 0x1000;
        maps += &format!("{guard:08x}-{start:08x} ---p 00000000 00:00 0\n");
        maps += &format!("{start:08x}-{end:08x} rw-p 00000000 00:00 0\n");
    }
    let root = recorded(&maps, &[(4711, "-1 0xfff100 0x1\n")]);
    // The tenth was never used, and the ninth is that of a thread that has ended.
    let mut words: Vec<(u64, u64)> = (0..8).map(|index| (stack(index).1 - 0x48, 1)).collect();
    let block = stack(8).1 - 0x2c0;
    words.extend([(block, block), (block + 16, block)]);
    with_memory(root.path(), &words);
    let process = Process::look(root.path(), PID).expect("a process");
    let tops = layout(&process, Kind::StackTops).expect("eight");
    let expected: Vec<u64> = (0..8).map(|index| stack(index).1 - 0x80).collect();
    assert_eq!(tops.addresses(), expected);
    assert_eq!(tops.stride(), Some(0x5000));
}

/// An entry of pagemap for each page that is populated, in memory or swapped out.
fn with_pages(root: &Path, pages: impl Iterator<Item = u64>) {
    let file = File::create(root.join(format!("proc/{PID}/pagemap"))).unwrap();
    file.set_len(0x2000 * 8).unwrap();
    for page in pages {
        let entry = 1_u64 << (62 + page % 2);
        file.write_all_at(&entry.to_ne_bytes(), page * 8).unwrap();
    }
}

#[test]
fn stacks_side_by_side_are_found_by_the_distance_of_their_ends_and_the_code_in_them() {
    const CODE: u64 = 0x1234;
    let maps = format!("{MAPS}01000000-02000000 rw-p 00000000 00:00 0\n");
    // Sixteen pages each, of which the last two or three are used; of the first six the third was
    // not, and what the fourth has is no code.
    let used: Vec<u64> = (0..12).filter(|stack| *stack != 2).collect();
    let end = |stack: &u64| 0x100_0000 + (stack + 1) * 0x1_0000;
    let last = |stack: &u64| end(stack) / PAGE;
    let tops = |code: &dyn Fn(u64) -> u64, pages: Vec<u64>| {
        let root = recorded(&maps, &[(4711, "-1 0xfff100 0x1\n")]);
        let words = used.iter().map(|stack| (end(stack) - 0x108, code(*stack)));
        with_memory(root.path(), &words.collect::<Vec<_>>());
        with_pages(root.path(), pages.into_iter());
        let process = Process::look(root.path(), PID).expect("a process");
        layout(&process, Kind::StacksAlike).map(|found| found.addresses().to_vec())
    };
    let pages: Vec<u64> = used
        .iter()
        .flat_map(|stack| last(stack) - 2 - stack % 2..last(stack))
        .collect();
    let some = |stack: u64| if stack == 3 { 7 } else { CODE };
    let expected = used
        .iter()
        .filter(|stack| **stack != 3)
        .map(|stack| end(stack) - 0x140);
    assert_eq!(tops(&some, pages.clone()), Some(expected.collect()));
    assert_eq!(tops(&|_| 7, pages), None, "no address of code");
    assert_eq!(tops(&some, (0x1000..0x2000).collect()), None, "no gaps");
}

#[test]
fn stacks_in_one_mapping_of_this_process_are_found() {
    const STACKS: usize = 64;
    const STACK: usize = 64 << 10;
    // SAFETY: a new mapping, which nobody else uses and which stays.
    let start = unsafe {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let start = libc::mmap(std::ptr::null_mut(), STACKS * STACK, access, flags, -1, 0);
        assert_ne!(start, libc::MAP_FAILED);
        libc::madvise(start, STACKS * STACK, libc::MADV_NOHUGEPAGE);
        start.cast::<u8>()
    };
    let code = fullest as fn(&Layout) -> u64 as usize;
    for stack in 1..=STACKS {
        // SAFETY: inside of the mapping, and a multiple of eight.
        unsafe { start.add(stack * STACK - 0x48).cast::<usize>().write(code) };
    }
    let process = Process::look(Path::new("/"), std::process::id()).expect("our own process");
    let found = layout(&process, Kind::StacksAlike).expect("stacks");
    let tops = (1..=STACKS).map(|stack| (start.addr() + stack * STACK - 0x80) as u64);
    assert_eq!(found.addresses(), tops.collect::<Vec<u64>>());
}

#[test]
fn frames_are_read_where_the_kernel_shows_them() {
    let root = recorded(MAPS, &[(4711, "-1 0x14a40 0x1\n")]);
    let process = Process::look(root.path(), PID).expect("a process");
    let hidden = Frames::of(&process, [0x14a40]);
    assert_eq!(hidden.physical(0x14a40), None, "there is no file");
    let file = File::create(root.path().join(format!("proc/{PID}/pagemap"))).unwrap();
    let entry = |page: u64, entry: u64| file.write_all_at(&entry.to_ne_bytes(), page * 8).unwrap();
    // Present; present without the right to see where; swapped out.
    entry(0x14, 1 << 63 | 0x77);
    entry(0x15, 1 << 63);
    entry(0x16, 1 << 62 | 0x99);
    let frames = Frames::of(&process, [0x14a40, 0x15000, 0x16000, 0x17000]);
    assert_eq!(frames.physical(0x14a40), Some(0x77 * PAGE + 0xa40));
    for unknown in [0x15000, 0x16000, 0x17000] {
        assert_eq!(frames.physical(unknown), None);
    }
}

#[test]
fn a_process_that_is_not_there_or_has_no_memory_is_an_error() {
    let root = recorded("", &[(4711, "-1 0x0 0x0\n")]);
    let of = |pid| Process::look(root.path(), pid).map(|process| process.pid);
    assert!(matches!(
        of(PID),
        Err(ConflictsError::NoMemory { pid: PID })
    ));
    assert!(matches!(of(PID + 1), Err(ConflictsError::Gone { .. })));
    let ended = recorded(MAPS, &[]);
    fs::create_dir_all(ended.path().join(format!("proc/{PID}/task"))).unwrap();
    let ended = Process::look(ended.path(), PID);
    assert!(
        matches!(ended, Err(ConflictsError::Gone { .. })),
        "{ended:?}"
    );
}

#[test]
fn threads_that_sleep_are_found_at_one_line_of_a_page() {
    const THREADS: usize = 200;
    const MOST: u64 = 180;
    let barrier = Arc::new(Barrier::new(THREADS + 1));
    let threads = (0..THREADS).map(|_| {
        let barrier = Arc::clone(&barrier);
        let sleeps = move || {
            barrier.wait();
            // SAFETY: asks for a number.
            let block = unsafe { libc::pthread_self() } as u64;
            barrier.wait();
            block
        };
        std::thread::Builder::new()
            .stack_size(128 << 10)
            .spawn(sleeps)
            .expect("a thread")
    });
    let threads: Vec<_> = threads.collect();
    barrier.wait();
    // All are on their way to the second barrier: looked at until most have reached it.
    let mut layouts = Vec::new();
    for _ in 0..200 {
        std::thread::sleep(std::time::Duration::from_millis(10));
        let process = Process::look(Path::new("/"), std::process::id());
        layouts = process.map_or(Vec::new(), |process| process.layouts());
        if layouts
            .first()
            .is_some_and(|pointers| fullest(pointers) >= MOST)
        {
            break;
        }
    }
    barrier.wait();
    let blocks = threads
        .into_iter()
        .map(|thread| thread.join().expect("it ends"));
    let blocks = Layout::new(Kind::ControlBlocks, blocks.collect());
    let of = |kind| {
        layouts
            .iter()
            .find(|layout| layout.kind() == kind)
            .expect("some")
    };
    assert!(fullest(of(Kind::StackPointers)) >= MOST, "{layouts:?}");
    if cfg!(all(target_arch = "x86_64", target_env = "gnu")) {
        let found = of(Kind::ControlBlocks).addresses();
        let right = blocks
            .addresses()
            .iter()
            .filter(|block| found.contains(block))
            .count();
        assert!(right as u64 >= MOST, "{right} of {THREADS}");
    }
}
