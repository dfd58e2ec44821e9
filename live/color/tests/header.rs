//! The C and C++ headers and the library for LD_PRELOAD, compiled and run.
//!
//! A C compiler is needed to build WarmQ anyway. Without a C++ compiler, or without Boost.Context
//! (`apt-get install g++ libboost-context-dev`), that test says that it was skipped.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{Write, stderr};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use warmq_color::coloring::{Blocks, Cache, Coloring};

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Compiles `file` of this crate into `program`.
fn compile(compiler: &str, file: &str, program: &Path, more: &[&str]) -> Option<Output> {
    let mut command = Command::new(compiler);
    command
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(source("include"));
    command.arg("-o").arg(program).arg(source(file)).args(more);
    command.output().ok()
}

fn lines_of(program: &Path, setting: Option<(&str, &OsStr)>, words: &[&str]) -> Vec<String> {
    let output = Command::new(program)
        .args(words)
        .envs(setting)
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(str::to_owned).collect()
}

fn compiled(file: &str, program: &Path, more: &[&str]) {
    let output = compile("cc", file, program, more).expect("a C compiler");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_header_computes_what_the_crate_computes() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("offsets");
    compiled("tests/c/offsets.c", &program, &["-std=c99", "-pedantic"]);
    let mut expected = Vec::new();
    for (kb, ways) in [(32, 8), (48, 12), (512, 8), (2048, 16)] {
        let cache = Cache::new(kb << 10, ways, 64).expect("a cache");
        for stride in [4096, 8192, 20480, 69632, 266_240, 1 << 20] {
            for hot in 0..4 {
                let counts = std::iter::successors(Some(0), |blocks| Some(blocks * 3 + 1));
                for count in counts.take_while(|count| *count < 40_000) {
                    let blocks = Blocks::new(count, stride).with_hot_lines(hot);
                    expected.push(blocks.colors(cache).unwrap_or(0));
                }
            }
        }
    }
    let level_1 = Cache::new(32 << 10, 8, 64).expect("a cache");
    let coloring = Coloring::new(64, 4096, level_1);
    expected.extend((0..5_000).map(|index| coloring.offset(index)));
    let expected: Vec<String> = expected.iter().map(u64::to_string).collect();
    assert_eq!(lines_of(&program, None, &[]), expected);
}

/// How many different offsets in a page `column` of the lines has.
fn offsets(lines: &[String], column: usize) -> usize {
    let offset = |line: &String| line.split(' ').nth(column).map(str::to_owned);
    lines.iter().map(offset).collect::<BTreeSet<_>>().len()
}

#[test]
#[cfg(target_env = "gnu")]
fn threads_of_a_program_that_knows_nothing_are_colored() {
    let folder = tempfile::tempdir().expect("a folder");
    let [program, library] = ["places", "preload.so"].map(|name| folder.path().join(name));
    compiled("tests/c/places.c", &program, &["-pthread"]);
    compiled(
        "include/warmq_color_threads.c",
        &library,
        &["-shared", "-fPIC", "-ldl"],
    );
    let preload = Some(("LD_PRELOAD", library.as_os_str()));
    let (plain, colored) = (
        lines_of(&program, None, &[]),
        lines_of(&program, preload, &[]),
    );
    for column in 0..2 {
        assert!(offsets(&plain, column) <= 2, "{plain:?}");
        assert!(offsets(&colored, column) >= 32, "{colored:?}");
    }
    // Stacks that the program gave stay as they are.
    let given = lines_of(&program, preload, &["given"]);
    assert_eq!(
        (given.len(), offsets(&given, 1)),
        (64, offsets(&lines_of(&program, None, &["given"]), 1))
    );
}

#[test]
fn boosts_fibers_run_on_colored_stacks() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("fibers");
    let has_boost = Path::new("/usr/include/boost/context/fiber.hpp").exists();
    let more = ["-std=c++11", "-lboost_context"];
    let output = has_boost
        .then(|| compile("c++", "tests/c/fibers.cc", &program, &more))
        .flatten();
    let Some(output) = output else {
        // Not by eprintln!, which is hidden where a test passes.
        let _ = writeln!(
            stderr(),
            "SKIPPED: no C++ compiler or no libboost-context-dev"
        );
        return;
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(lines_of(&program, None, &[]), ["512 16 128"]);
}
