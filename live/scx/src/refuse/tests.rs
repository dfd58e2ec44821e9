//! Recorded trees of machines that can run it, and of those that cannot.

use std::os::unix::fs::PermissionsExt;

use super::*;

const RELEASE: &str = "6.18.15+deb13-cloud-amd64";

/// A machine that lacks nothing.
fn able() -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a folder");
    put(&root, "proc/sys/kernel/osrelease", &format!("{RELEASE}\n"));
    put(
        &root,
        "proc/self/status",
        "Name:\tx\nCapInh:\t0\nCapEff:\t000001ffffffffff\n",
    );
    put(
        &root,
        "proc/self/mounts",
        "proc /proc proc rw 0 0\nbpf /sys/fs/bpf bpf rw,nosuid 0 0\n",
    );
    put(&root, "sys/kernel/sched_ext/state", "disabled\n");
    put(&root, "sys/kernel/btf/vmlinux", "");
    put(&root, &format!("boot/config-{RELEASE}"), "CONFIG_HZ=250\n");
    fs::create_dir_all(root.path().join("sys/fs/bpf")).expect("a folder");
    set_mode(&root, 0o755);
    root
}

fn put(root: &tempfile::TempDir, path: &str, text: &str) {
    let path = root.path().join(path);
    fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
    fs::write(path, text).expect("a file");
}

fn set_mode(root: &tempfile::TempDir, mode: u32) {
    let mode = fs::Permissions::from_mode(mode);
    fs::set_permissions(root.path().join("sys/fs/bpf"), mode).expect("a mode");
}

/// What is done to a machine that lacks nothing.
type Change = Box<dyn Fn(&tempfile::TempDir)>;

fn refused(change: impl Fn(&tempfile::TempDir)) -> String {
    let root = able();
    change(&root);
    check(root.path(), false)
        .expect_err("it is refused")
        .to_string()
}

fn warned(change: impl Fn(&tempfile::TempDir)) -> Vec<Warning> {
    let root = able();
    change(&root);
    check(root.path(), false).expect("it may run")
}

#[test]
fn a_machine_that_lacks_nothing_is_taken() {
    assert_eq!(check(able().path(), false), Ok(vec![]));
}

#[test]
fn a_quota_that_the_kernel_does_not_tell_of_is_refused_unless_it_is_ignored() {
    let with_quota = |release: &str| {
        let root = able();
        put(&root, "proc/sys/kernel/osrelease", release);
        put(&root, "sys/fs/cgroup/a/cpu.max", "max 100000\n");
        put(&root, "sys/fs/cgroup/a/b/cpu.max", "20000 100000\n");
        root
    };
    let old = with_quota("6.16.12");
    let refusal = check(old.path(), false).expect_err("it is refused");
    assert!(refusal.to_string().contains("a/b/cpu.max"), "{refusal}");
    assert!(check(old.path(), true).is_ok());
    assert!(check(with_quota("6.17.0").path(), false).is_ok());
}

#[test]
fn wrong_type_information_is_told_in_plain_words_and_other_errors_as_they_are() {
    let malformed = anyhow::anyhow!("the running kernel's BTF has {MALFORMED}(s): a, b");
    let refusal = explained(malformed.context("it cannot be loaded"));
    assert!(
        refusal.to_string().contains("boot 7.3 or later"),
        "{refusal}"
    );
    assert_eq!(
        explained(anyhow::anyhow!("no memory")).to_string(),
        "no memory"
    );
}

#[test]
fn every_refusal_names_the_reason_and_the_fix() {
    let old = refused(|root| put(root, "proc/sys/kernel/osrelease", "6.12.90"));
    let without = refused(|root| {
        fs::remove_dir_all(root.path().join("sys/kernel/sched_ext")).expect("removed")
    });
    let no_types =
        refused(|root| fs::remove_dir_all(root.path().join("sys/kernel/btf")).expect("removed"));
    let user = refused(|root| put(root, "proc/self/status", "CapEff:\t0000000000000000\n"));
    let no_bpffs = refused(|root| put(root, "proc/self/mounts", "proc /proc proc rw 0 0\n"));
    let loaded = |name: &'static str| {
        refused(move |root| {
            put(root, "sys/kernel/sched_ext/state", "enabled\n");
            put(root, "sys/kernel/sched_ext/root/ops", name);
        })
    };
    let all = [
        old,
        without,
        no_types,
        user,
        loaded("bpfland_1.1.4_x86_64\n"),
        loaded("warmq_0.1.0_x86_64\n"),
        no_bpffs,
    ];
    insta::assert_snapshot!(all.join("\n\n"));
}

#[test]
fn what_is_only_worse_is_a_warning() {
    let cases: [(Warning, Change); 3] = [
        (
            Warning::NoConfig {
                release: RELEASE.to_owned(),
            },
            Box::new(|root| fs::remove_dir_all(root.path().join("boot")).expect("removed")),
        ),
        (Warning::ClosedBpffs, Box::new(|root| set_mode(root, 0o700))),
        (
            Warning::Untried {
                found: "6.14.3".to_owned(),
            },
            Box::new(|root| {
                put(root, "proc/sys/kernel/osrelease", "6.14.3\n");
                put(root, "boot/config-6.14.3", "");
            }),
        ),
    ];
    for (warning, change) in cases {
        assert_eq!(warned(change), [warning]);
    }
}

#[test]
fn two_lesser_capabilities_suffice() {
    let capabilities = |bits: u64| {
        let root = able();
        put(
            &root,
            "proc/self/status",
            &format!("CapEff:\t{bits:016x}\n"),
        );
        check(root.path(), false)
    };
    assert_eq!(capabilities(1 << CAP_BPF | 1 << CAP_PERFMON), Ok(vec![]));
    assert_eq!(capabilities(1 << CAP_SYS_ADMIN), Ok(vec![]));
    assert_eq!(capabilities(1 << CAP_BPF), Err(Refusal::NoPrivilege));
}

#[test]
fn the_configuration_is_found_where_newer_kernels_keep_it() {
    let root = able();
    fs::remove_dir_all(root.path().join("boot")).expect("removed");
    let config = format!("usr/lib/modules/{RELEASE}/config");
    put(&root, &config, "");
    assert_eq!(
        kernel_config(root.path()),
        KernelConfig::At(root.path().join(config))
    );
    put(&root, "proc/config.gz", "");
    assert_eq!(kernel_config(root.path()), KernelConfig::Usual);
}
