//! scx_warmq as it was before two of its races were cured: its source with a line changed, compiled
//! by the clang that compiles it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use warmq_race::{Fault, Race};
use warmq_sched_ext::Loaded;
use warmq_units::Seed;

use crate::stage::{first, load, load_on, race};

const PROFILE: &str = include_str!("../../../../schedulers/warmq.toml");

/// A change of the source: a file, what stands there, and what stands there instead.
type Change = (&'static str, &'static str, &'static str);

/// A CPU that goes idle while a task is on its way into its queue is not kicked any more.
const LOSES_WAKEUPS: &[Change] = &[
    (
        "main.bpf.c",
        "\tif (comes)\n\t\tscx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);\n",
        "",
    ),
    ("main.bpf.c", "\t\tkick_searching(p, entity);\n", ""),
];

/// Two that take a task out of its group at the same time both take a member off it.
const LEAVES_TWICE: &[Change] = &[(
    "group.bpf.h",
    "\tremove_member(__sync_lock_test_and_set(&t->group, add_member(number)), now);\n",
    "\tu32 joined = add_member(number);\n\n\tremove_member(t->group, now);\n\tt->group = joined;\n",
)];

/// A CPU that was kicked for one task and takes another, or finds none, kicks nobody else.
const PASSES_NOTHING_ON: &[Change] = &[
    (
        "main.bpf.c",
        "\t\tif (c->idle && entity_of(domain_of_cpu(cpu))->queued)\n\t\t\tpass_on(cpu, true);\n",
        "",
    ),
    (
        "main.bpf.c",
        "\t\tif (c->idle)\n\t\t\tpass_on(cpu, c->batch_entity == WARMQ_PINNED_BASE + cpu);\n",
        "",
    ),
    (
        "main.bpf.c",
        "\tif (c->idle)\n\t\tpass_on(cpu, false);\n",
        "",
    ),
];

/// A task that comes to an idle CPU while that looks for another is left there.
const FORGETS_WHO_CAME: &[Change] = &[
    (
        "main.bpf.c",
        "if (pull(cpu) || take_found(cpu))",
        "if (pull(cpu))",
    ),
    (
        "main.bpf.c",
        "else if (!pull(cpu))\n\t\t\ttake_found(cpu);",
        "else\n\t\t\tpull(cpu);",
    ),
    (
        "main.bpf.c",
        "waits_at(cpu) || found_waits(cpu)",
        "waits_at(cpu)",
    ),
];

/// Seeds of plans in which these faults come: 4 CPUs, 8 tasks, 200 steps. One plan in thousands
/// has them.
const RARE: [(&[Change], u64); 2] = [(PASSES_NOTHING_ON, 675), (FORGETS_WHO_CAME, 4_907)];

/// Plans that are played of one that should have no fault.
const PLANS: u64 = 200;

/// Plans that are played of a mutant at most.
const MOST_PLANS: u64 = 3_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder that the build of a crate wrote, beside the tests.
fn built(name: &str, inside: &str) -> Option<PathBuf> {
    let tests = std::env::current_exe().ok()?;
    let builds = fs::read_dir(tests.ancestors().nth(2)?.join("build")).ok()?;
    let folders = builds.filter_map(|entry| Some(entry.ok()?.path()));
    let known = |path: &PathBuf| {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        file.starts_with(name) && path.join(inside).is_dir()
    };
    let found = folders.filter(known).max()?;
    Some(found.join(inside))
}

/// Copies all files of a folder of the repository.
fn copy(to: &Path, folder: &str) {
    fs::create_dir_all(to.join(folder)).expect("a folder");
    for entry in fs::read_dir(root().join(folder)).expect("a folder") {
        let path = entry.expect("a file").path();
        let name = path.file_name().expect("a name");
        match path.is_dir() {
            true => copy(to, &format!("{folder}/{}", name.to_string_lossy())),
            false => drop(fs::copy(&path, to.join(folder).join(name)).expect("it is copied")),
        }
    }
}

/// The object of the source with changes; none, where it cannot be compiled.
fn compiled(changes: &[Change]) -> Option<Vec<u8>> {
    let headers = built("scx_warmq-", "out/scx_utils-bpf_h");
    let Some((headers, libbpf)) = headers.zip(built("libbpf-sys-", "out/include")) else {
        eprintln!("SKIPPED: `cargo build -p scx_warmq` makes the headers that this test needs");
        return None;
    };
    let folder = tempfile::tempdir().expect("a folder");
    for part in [
        "live/scx/src/bpf",
        "live/hint/include",
        "common/decide/include",
    ] {
        copy(folder.path(), part);
    }
    let source = folder.path().join("live/scx/src/bpf");
    for (file, from, to) in changes {
        let text = fs::read_to_string(source.join(file)).expect("a source");
        assert!(text.contains(from), "{file} has no {from:?} any more");
        fs::write(source.join(file), text.replace(from, to)).expect("it is written");
    }
    compile(&source, &[&headers, &libbpf])
}

fn compile(source: &Path, includes: &[&Path]) -> Option<Vec<u8>> {
    let object = source.join("main.bpf.o");
    let mut clang = Command::new(std::env::var("BPF_CLANG").unwrap_or("clang-19".to_owned()));
    clang.args("-g -O2 -mcpu=v4 -mllvm -disable-ldsx -mlittle-endian -target bpf".split(' '));
    clang.args(["-D__TARGET_ARCH_x86", "-DWARMQ_RACE", "-Wno-everything"]);
    for include in includes {
        for below in ["arch/x86", "", "bpf-compat", "scx"] {
            clang.arg("-I").arg(include.join(below));
        }
    }
    let machine = format!("/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    clang.args(["-idirafter", &machine, "-idirafter", "/usr/include"]);
    clang
        .arg("-c")
        .arg(source.join("main.bpf.c"))
        .arg("-o")
        .arg(&object);
    match clang.status() {
        Ok(status) => assert!(status.success(), "it does not compile"),
        Err(error) => {
            eprintln!("SKIPPED: clang-19 cannot be run: {error}");
            return None;
        }
    }
    Some(fs::read(object).expect("an object"))
}

/// With few groups, which are then checked in no time.
const FEW_GROUPS: (&str, i128) = ("nr_groups", 64);

/// With groups by cgroup.
fn loaded(changes: &[Change]) -> Option<Loaded> {
    const BY_CGROUP: i128 = 3;
    let object = compiled(changes)?;
    let set = [FEW_GROUPS, ("group_by", BY_CGROUP)];
    Some(load(&object, Some(PROFILE), &set))
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn the_wakeup_that_was_lost_is_found() {
    let Some(loaded) = loaded(LOSES_WAKEUPS) else {
        return;
    };
    let only = words(&["wake", "sleep", "pass"]);
    let found = first(&race(&loaded, &only), MOST_PLANS).expect("it is found");
    assert!(
        matches!(found.fault, Fault::Asleep { raced: true, .. }),
        "{found:?}"
    );
}

#[test]
fn the_task_that_left_its_group_twice_is_found() {
    let Some(loaded) = loaded(LEAVES_TWICE) else {
        return;
    };
    let only = words(&["wake", "hint", "move"]);
    let found = first(&race(&loaded, &only), MOST_PLANS).expect("it is found");
    // RACE_GROUPS of race.bpf.h.
    assert!(
        matches!(&found.fault, Fault::Ejected(why) if why == "race_check returns 3"),
        "{found:?}"
    );
}

#[test]
fn as_it_is_it_has_neither() {
    let Some(loaded) = loaded(&[]) else { return };
    for only in [
        words(&["wake", "sleep", "pass"]),
        words(&["wake", "hint", "move"]),
    ] {
        assert_eq!(first(&race(&loaded, &only), PLANS), None);
    }
}

#[test]
fn a_cpu_that_sleeps_beside_a_task_that_came_meanwhile_is_found() {
    let only = "wake sleep tick yield nice affinity move weigh pass";
    let only = words(&only.split(' ').collect::<Vec<_>>());
    let fault = |object: &[u8], seed: u64| {
        let loaded = load_on(4, object, Some(PROFILE), &[FEW_GROUPS]);
        let race = Race {
            cpus: 4,
            tasks: 8,
            steps: 200,
            ..race(&loaded, &only)
        };
        race.run(Seed(seed)).expect("it is attached")
    };
    let Some(cured) = compiled(&[]) else { return };
    for (changes, seed) in RARE {
        let Some(mutant) = compiled(changes) else {
            return;
        };
        let found = fault(&mutant, seed).expect("it is found");
        assert!(matches!(found.fault, Fault::Asleep { .. }), "{found:?}");
        assert_eq!(fault(&cured, seed), None, "{seed}");
    }
}
