//! What several kernels say of themselves, from file systems as they have them.

use std::fs;
use std::io::Write;
use std::path::Path;

use proptest::prelude::*;
use warmq_record::RunningKernel;

const RELEASE: &str = "proc/sys/kernel/osrelease";
const DEBUGFS: &str = "sys/kernel/debug/sched";

/// A file system with these files.
fn system(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a folder");
    for (path, text) in files {
        write(root.path(), path, text.as_bytes());
    }
    root
}

fn write(root: &Path, path: &str, bytes: &[u8]) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(path, bytes).expect("written");
}

fn packed(text: &str) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text.as_bytes()).expect("packed");
    packed.finish().expect("packed")
}

#[test]
fn a_kernel_with_debugfs_says_everything() {
    let root = system(&[
        (RELEASE, "7.2.12+deb14-amd64\n"),
        (
            "boot/config-7.2.12+deb14-amd64",
            "CONFIG_HZ=1000\nCONFIG_PREEMPT_LAZY=y\n",
        ),
        ("proc/cmdline", "quiet preempt=lazy\n"),
        (
            "sys/kernel/debug/sched/preempt",
            "none voluntary (full) lazy\n",
        ),
        ("sys/kernel/debug/sched/features", "PLACE_LAG NO_HRTICK\n"),
        ("sys/kernel/debug/sched/base_slice_ns", "2800000\n"),
        ("proc/sys/kernel/sched_autogroup_enabled", "1\n"),
        ("proc/sys/kernel/sched_cfs_bandwidth_slice_us", "5000\n"),
    ]);
    let kernel = RunningKernel::below(root.path());
    assert_eq!(
        (&*kernel.release, &*kernel.hz),
        ("7.2.12+deb14-amd64", "1000")
    );
    // What debugfs says now, whatever it was booted and built with.
    assert_eq!(
        (&*kernel.preemption, kernel.preemption_from),
        ("full", "from debugfs")
    );
    for (fact, expected) in [
        ("/sys/kernel/debug/sched/features", "PLACE_LAG NO_HRTICK"),
        ("/sys/kernel/debug/sched/base_slice_ns", "2800000"),
        ("/proc/sys/kernel/sched_cfs_bandwidth_slice_us", "5000"),
        ("CONFIG_HZ", "1000"),
        ("sessions", "y"),
        // What this kernel does not have.
        ("/sys/kernel/debug/sched/cgroup_mode", ""),
        ("CONFIG_FAIR_GROUP_SCHED", ""),
    ] {
        assert_eq!(kernel.fact(fact).as_deref(), Some(expected), "{fact}");
    }
}

#[test]
fn without_debugfs_its_configuration_says_the_rest() {
    let root = system(&[
        (RELEASE, "6.18.44-fc\n"),
        ("proc/cmdline", "quiet\n"),
        (
            "proc/version",
            "Linux version 6.18.44-fc #1 SMP PREEMPT_DYNAMIC @0\n",
        ),
        ("proc/sys/kernel/sched_autogroup_enabled", "0\n"),
    ]);
    let config = "CONFIG_PREEMPT_BUILD=y\nCONFIG_PREEMPT_NONE=y\nCONFIG_HZ=250\n";
    write(root.path(), "proc/config.gz", &packed(config));
    let kernel = RunningKernel::below(root.path());
    assert_eq!((&*kernel.preemption, &*kernel.hz), ("none", "250"));
    assert!(kernel.preemption_from.starts_with("as it was configured"));
    assert_eq!(kernel.fact("sessions").as_deref(), Some("n"));
    assert_eq!(kernel.fact("/sys/kernel/debug/sched/features"), None);
}

#[test]
fn a_kernel_that_a_guest_boots_is_as_it_was_built_unless_its_command_line_says_otherwise() {
    let config = "CONFIG_HZ=250\nCONFIG_PREEMPT_LAZY=y\nCONFIG_SCHED_AUTOGROUP=y\n";
    let usual = RunningKernel::booting("7.2.12", Some(config), "quiet");
    assert_eq!((&*usual.preemption, &*usual.hz), ("lazy", "250"));
    assert_eq!(usual.fact("sessions").as_deref(), Some("y"));
    // Nothing is set yet.
    assert_eq!(
        usual.fact("/sys/kernel/debug/sched/features").as_deref(),
        Some("")
    );
    let full = RunningKernel::booting("7.2.12", Some(config), "quiet preempt=full");
    assert_eq!(full.preemption, "full");
    let unknown = RunningKernel::booting("7.0.13", None, "");
    assert_eq!(
        (&*unknown.preemption, unknown.fact("CONFIG_HZ")),
        ("", None)
    );
}

#[test]
fn what_cannot_be_read_is_not_known() {
    let nothing = system(&[]);
    let kernel = RunningKernel::below(nothing.path());
    assert_eq!(
        (&*kernel.release, &*kernel.preemption, &*kernel.hz),
        ("", "", "")
    );
    for fact in [
        "CONFIG_HZ",
        "/sys/kernel/debug/sched/features",
        "/proc/sys/kernel/x",
    ] {
        assert_eq!(kernel.fact(fact), None, "{fact}");
    }
    // A folder is no file, and a file no packed configuration.
    let odd = system(&[(RELEASE, "6.18\n"), ("proc/config.gz", "no gzip")]);
    fs::create_dir_all(odd.path().join(DEBUGFS).join("features")).expect("made");
    write(
        odd.path(),
        "sys/kernel/debug/sched/base_slice_ns",
        &[0xff, 0xfe],
    );
    let kernel = RunningKernel::below(odd.path());
    for fact in [
        "CONFIG_HZ",
        "/sys/kernel/debug/sched/features",
        "/sys/kernel/debug/sched/base_slice_ns",
    ] {
        assert_eq!(kernel.fact(fact), None, "{fact}");
    }
}

proptest! {
    #[test]
    fn whatever_is_in_the_files_nothing_panics(
        texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 5)
    ) {
        let files = [
            RELEASE, "proc/cmdline", "proc/version", "proc/config.gz", "sys/kernel/debug/sched/preempt",
        ];
        let root = system(&[]);
        for (path, text) in files.into_iter().zip(&texts) {
            write(root.path(), path, text);
        }
        let kernel = RunningKernel::below(root.path());
        let models = ["", "none", "voluntary", "full", "lazy"];
        prop_assert!(models.contains(&kernel.preemption.as_str()));
    }
}
