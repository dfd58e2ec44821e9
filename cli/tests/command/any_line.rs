//! Command lines that nobody would type: each ends by itself, with an exit code that is explained.
//!
//! `WARMQ_LINES=20000 cargo test -p warmq --test command any_line` tries so many;
//! `WARMQ_LINES_FROM` is the number of the first (fuzz/README.md).

use super::support::Folder;

/// Lines that are right, of commands that simulate or only read.
const LINES: &[&str] = &[
    "run hog.toml --machine tiny-1cpu --time 1ms --warmup 0ms --seeds 1",
    "run hog.toml --machine tiny-2cpu --set cpus=1 --time 1ms --warmup 0ms --seeds 2,3 --json",
    "run hog.toml --machine tiny-1cpu --time 1ms --warmup 0ms --seeds 1 --out out --strict",
    "run hog.toml --machine tiny-1cpu --time 1ms --warmup 0ms --seeds 1 --chart 100us",
    "run hog.toml --machine tiny-1cpu --time 1ms --warmup 0ms --seeds 1, --trace hog.warmq",
    "run trial.toml --quick --point tasks=2 --jobs 1 --check-determinism",
    "run trial.toml --only 0 --quick",
    "plan trial.toml --json",
    "check hog.toml trial.toml --untrusted",
    "laws --list",
    "laws --untrusted hog.toml",
    "compare one.warmq one.warmq --json",
    "diagnose one.warmq --json --from 0ms",
    "replay one.warmq --scheduler eevdf-7.1 --machine tiny-1cpu --cpus 1 --out again.toml",
    "machines tiny-1cpu",
    "schedulers eevdf",
    "workloads chat",
    "metrics",
    "completions bash",
    "man",
];

/// Words that may stand anywhere. None names a file outside of the folder.
const WORDS: &[&str] = &[
    "",
    "-",
    "--",
    "---",
    "=",
    ",",
    ",,",
    "a=b",
    "=b",
    "a=",
    "0",
    "-1",
    "1,",
    "18446744073709551616",
    "99999999999999999999999",
    "1e999",
    "NaN",
    "0x10",
    "1ms",
    "-1ms",
    "1ps",
    "ms",
    "0-99",
    "99-0",
    "é",
    "\u{ad}",
    "\u{feff}",
    "\u{202e}",
    "\u{1b}[31m",
    "\n",
    "\r\n",
    "{}",
    "%s",
    "*",
    "~",
    "hog.toml",
    "trial.toml",
    "one.warmq",
    "none.toml",
    "out",
    "--json",
    "--help",
    "--seeds",
    "--jobs",
    "--set",
    "--point",
    "--machine",
    "--scheduler",
    "--only",
    "--trace",
    "--kernel",
    "tiny-1cpu",
    "cpus=0",
    "cpus=65535",
    "broken:fault=",
    "eevdf-9.9",
    "tasks=2",
];

/// A step of the generator SplitMix64, whose state is `state`.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut bits = *state;
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// The line of this number: one of [`LINES`] with one to three words changed.
fn line(number: u64) -> Vec<String> {
    let mut state = number;
    let mut below = |limit: usize| (next(&mut state) % limit as u64) as usize;
    let right = LINES[below(LINES.len())].split(' ');
    let mut words: Vec<String> = right.map(str::to_owned).collect();
    for _ in 0..=below(3) {
        let place = below(words.len());
        let word = WORDS[below(WORDS.len())];
        match below(6) {
            0 if words.len() > 1 => drop(words.remove(place)),
            1 => words.insert(place, word.to_owned()),
            2 => words.insert(place, words[place].clone()),
            3 => words[place].push_str(word),
            // Linux takes no longer word than 128 KB.
            4 => words[place] = word.repeat(1 + below(2) * 100_000 / word.len().max(1)),
            _ => words[place] = word.to_owned(),
        }
    }
    words
}

fn asked(name: &str, usual: u64) -> u64 {
    let asked = std::env::var(name)
        .ok()
        .and_then(|number| number.parse().ok());
    asked.unwrap_or(usual)
}

#[test]
fn any_line_ends_with_a_code_that_is_explained() {
    let trial = super::support::TRIAL
        .replace("500ms", "1ms")
        .replace("\"10ms\"", "\"0ms\"");
    let hog = "[task.hog]\nbody = [{ run = \"1ms\" }]\n";
    let folder = Folder::new("any-line")
        .with("hog.toml", hog)
        .with("trial.toml", &trial);
    let traced =
        "run hog.toml --machine tiny-1cpu --time 1ms --warmup 0ms --seeds 1 --trace one.warmq";
    folder.run(traced).fine();
    let first = asked("WARMQ_LINES_FROM", 0);
    for number in first..first + asked("WARMQ_LINES", 40) {
        let words = line(number);
        // A command that computes or takes memory without end is ended by a signal.
        let mut shell = std::process::Command::new("/bin/sh");
        let limits = "ulimit -t 60 && ulimit -v 4000000 && exec \"$0\" \"$@\"";
        shell
            .args(["-c", limits, env!("CARGO_BIN_EXE_warmq")])
            .args(&words)
            .current_dir(&folder.0)
            .stdin(std::process::Stdio::null());
        let output = shell.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let explained = matches!(output.status.code(), Some(0..=6 | 8));
        assert!(
            explained && !said.contains("panicked"),
            "line {number}, {}: {words:?}\n{said}",
            output.status
        );
    }
}
