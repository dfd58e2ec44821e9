//! The object of scx_warmq, of its source as it is or with changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use warmq_sched_ext::{Profile, Source};

const PROFILE: &str = include_str!("../../../../../schedulers/warmq.toml");

/// A change of the source: a file, what stands there, and what stands there instead.
pub type Change = (&'static str, &'static str, &'static str);

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

/// The source with changes, and what its loader does.
pub fn changed(changes: &[Change]) -> Option<Source> {
    let object = compiled(changes)?;
    let profile = Profile::read(PROFILE).expect("a profile");
    Some(Source::read(&object, |_| Some(profile)).expect("an object"))
}

/// How many cgroups there may be, the root included: what looks at all of them is over soon.
pub const CGROUPS: u32 = 16;

const FEW_CGROUPS: Change = (
    "state.bpf.h",
    "#define MAX_CGROUPS 2048",
    "#define MAX_CGROUPS 16",
);

/// The source as it is, with room for [`CGROUPS`].
pub fn as_it_is() -> Option<&'static Source> {
    static SOURCE: OnceLock<Option<Source>> = OnceLock::new();
    SOURCE.get_or_init(|| changed(&[FEW_CGROUPS])).as_ref()
}
