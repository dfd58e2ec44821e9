//! The lab's decisions beside those of real kernels, which `experiments/decisions/recorded` keeps:
//! of guests with one CPU whose clock counted instructions.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use warmq_metrics::compare::{Decision, Extent, Recording, WINDOW, decisions, letters};
use warmq_trace::file::Reader;
use warmq_units::{Duration, Instant};

use super::support::Folder;

/// Which scheduler of the lab is that of a kernel, and how it is set.
const KERNELS: &[(&str, &str)] = &[
    ("6.12", "eevdf-6.12"),
    ("6.18", "eevdf-6.18"),
    ("7.2", "eevdf-7.2"),
];

/// The scenarios, and for how long each is played until it has 1,000 switches.
const SCENARIOS: &[(&str, &str)] = &[
    ("hogs", "9s"),
    ("timer", "4s"),
    ("pipe", "4s"),
    ("receiver", "3s"),
    ("sessions", "5s"),
    ("short-slice", "2s"),
];

fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../experiments/decisions")
}

/// The decisions of a text, two letters each.
fn words(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let letters: Vec<char> = lines.flat_map(str::chars).collect();
    letters
        .chunks(2)
        .map(|word| word.iter().collect())
        .collect()
}

/// What the lab decides, from the time on at which all tasks have slept once.
fn of_lab(folder: &Folder, scenario: &str, time: &str, scheduler: &str) -> String {
    let file = shipped().join(format!("{scenario}.toml"));
    folder
        .run(&format!(
            "run {} --machine guest-1cpu --scheduler {scheduler} --seeds 1 --warmup 0ms --time {time} \
             --trace lab.trace",
            file.display()
        ))
        .fine();
    let reader = Reader::new(File::open(folder.0.join("lab.trace")).unwrap()).unwrap();
    let header = reader.header().clone();
    let records = reader.collect::<Result<_, _>>().unwrap();
    let extent = Extent {
        cpu: None,
        from: Instant::START + Duration::from_ms(8),
    };
    let recording = Recording { header, records };
    let all = decisions(&recording, extent).into_values().flatten();
    let kept: Vec<Decision> = all.take(WINDOW).collect();
    letters("the lab", &kept)
}

/// How many of the first switches agree: a change here is a change of a rule, or of a cost.
#[test]
fn the_lab_decides_as_kernels_do() {
    let folder = Folder::new("decisions");
    let mut lines = Vec::new();
    for (scenario, time) in SCENARIOS {
        for (kernel, scheduler) in KERNELS {
            let recorded = shipped().join(format!("recorded/{scenario}-{kernel}.txt"));
            let theirs = words(&fs::read_to_string(recorded).unwrap());
            let ours = words(&of_lab(&folder, scenario, time, scheduler));
            let pairs = ours.iter().zip(&theirs);
            let same = pairs.take_while(|(a, b)| a == b).count();
            let all = ours.len().min(theirs.len());
            lines.push(format!("{scenario:12} {kernel:5} {same:4} of {all}"));
        }
    }
    insta::assert_snapshot!("decisions", lines.join("\n"));
}
