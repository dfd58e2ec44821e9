//! Why scx_warmq cannot run here, and what to do about it. Otherwise libbpf would only say EINVAL.
//!
//! The root of the file system is a parameter, so that tests can pass recorded trees.

use std::fs;
use std::path::{Path, PathBuf};

use warmq_units::Release;

const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// The first kernel with task storage that points to user memory (BPF uptr).
const FIRST: (u32, u32) = (6, 13);
/// The first kernel that scx_warmq was tested on.
const TRIED: (u32, u32) = (6, 16);
/// The first kernel that tells schedulers of sched_ext of quotas
/// (scx_cgroup_init_args.bw_quota_us).
const QUOTAS: (u32, u32) = (6, 17);

/// Why it does not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The kernel is too old.
    #[error(
        "Linux {found} is too old: scx_warmq needs 6.13 or later (it was tested on 6.16 to 7.0 and on 7.3); boot \
         a newer kernel"
    )]
    TooOld {
        /// Its release.
        found: String,
    },
    /// The kernel was built without it.
    #[error(
        "this kernel ({release}) has no sched_ext: there is no /sys/kernel/sched_ext; boot a kernel \
         built with CONFIG_SCHED_CLASS_EXT=y (as Debian's are since 6.16), or mount sysfs if it is not \
         mounted"
    )]
    NoSchedExt {
        /// Its release.
        release: String,
    },
    /// There is no BTF.
    #[error(
        "this kernel ({release}) has no type information: there is no /sys/kernel/btf/vmlinux; boot a \
         kernel built with CONFIG_DEBUG_INFO_BTF=y"
    )]
    NoTypes {
        /// Its release.
        release: String,
    },
    /// Its BTF is wrong.
    #[error(
        "the type information (BTF) of this kernel ({release}) does not fit its functions: pahole 1.30, with \
         which Debian's 7.1 and 7.2 were built, left out the tags of some 20 functions of sched_ext, and no \
         program can call these; boot 7.3 or later, a kernel from 6.16 to 7.0, or one that was built with \
         pahole 1.31"
    )]
    WrongTypes {
        /// Its release.
        release: String,
    },
    /// No privilege.
    #[error(
        "loading a scheduler needs root, or CAP_SYS_ADMIN, or both CAP_BPF and CAP_PERFMON: run it as \
         root (sudo scx_warmq)"
    )]
    NoPrivilege,
    /// scx_warmq runs already.
    #[error("scx_warmq is already running (as {name}); stop it first: {}", stop(.name))]
    Already {
        /// The name that the kernel knows.
        name: String,
    },
    /// Another scheduler is loaded.
    #[error("another sched_ext scheduler is loaded: {name}; stop it first: {}", stop(.name))]
    Other {
        /// The name that the kernel knows.
        name: String,
    },
    /// Quotas that it would not obey.
    #[error(
        "{} sets a quota, and Linux {found} does not tell schedulers of it: set it to max, boot Linux \
         6.17 or later, or start scx_warmq with --ignore-quotas",
        warmq_units::printable(path)
    )]
    Quota {
        /// The file.
        path: PathBuf,
        /// The kernel's release.
        found: String,
    },
    /// No bpffs.
    #[error(
        "no BPF file system is mounted at /sys/fs/bpf, through which programs reach scx_warmq; mount \
         it: mount -t bpf bpf /sys/fs/bpf"
    )]
    NoBpffs,
}

fn stop(name: &str) -> String {
    let program = name.split('_').next().unwrap_or(name);
    format!(
        "systemctl stop scx_{program}, or end its process (pgrep -a scx_), or press SysRq-S (echo \
         S > /proc/sysrq-trigger)"
    )
}

/// What does not keep it from running, but should be known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Warning {
    /// The kernel is older than those that were tested.
    #[error(
        "scx_warmq was not tested on Linux {found}; the oldest kernel it was tested on is 6.16"
    )]
    Untried {
        /// The kernel's release.
        found: String,
    },
    /// libbpf asks for the kernel's configuration.
    #[error(
        "the kernel's configuration is neither in /boot/config-{release} nor in /proc/config.gz, and \
         loading fails without it (\"failed to open system Kconfig\"); put it there, or run: modprobe \
         configs"
    )]
    NoConfig {
        /// The kernel's release.
        release: String,
    },
    /// More cgroups than it has room for.
    #[error(
        "there are more than 2047 cgroups, and a quota (cpu.max) was set for one that scx_warmq has no room for: \
         its tasks count as those of the cgroup around it, and its quota is not obeyed; remove cgroups that are \
         not needed and start scx_warmq again"
    )]
    Quotas,
    /// Programs of other users cannot reach their slots.
    #[error(
        "only root can enter /sys/fs/bpf, so programs of other users need a system call for each hint, \
         which is slower; to let them in: chmod o+x /sys/fs/bpf"
    )]
    ClosedBpffs,
}

/// Where the kernel's configuration was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelConfig {
    /// Where libbpf looks.
    Usual,
    /// Elsewhere: libbpf needs its path.
    At(PathBuf),
    /// Nowhere.
    Missing,
}

/// What scx_utils says where a kernel's BTF shows arguments of kernel functions that programs do
/// not give.
const MALFORMED: &str = "malformed scx kfunc prototype";

/// Puts into plain words why a program could not be loaded, where that is known.
pub fn explained(error: anyhow::Error) -> anyhow::Error {
    if format!("{error:#}").contains(MALFORMED) {
        return Refusal::WrongTypes {
            release: release(Path::new("/")),
        }
        .into();
    }
    error
}

/// Whether it can run on the machine whose file system starts at `root`. `ignore_quotas`: even
/// where it cannot obey one.
pub fn check(root: &Path, ignore_quotas: bool) -> Result<Vec<Warning>, Refusal> {
    let release = release(root);
    check_kernel(root, &release)?;
    if !is_privileged(root) {
        return Err(Refusal::NoPrivilege);
    }
    if let Some(name) = loaded_scheduler(root) {
        return Err(if is_ours(&name) {
            Refusal::Already { name }
        } else {
            Refusal::Other { name }
        });
    }
    if !has_bpffs(root) {
        return Err(Refusal::NoBpffs);
    }
    if !ignore_quotas
        && is_before(&release, QUOTAS)
        && let Some(path) = quota_below(&root.join("sys/fs/cgroup"))
    {
        return Err(Refusal::Quota {
            path,
            found: release,
        });
    }
    Ok(warnings(root, &release))
}

/// A file cpu.max in or below a cgroup that is not `max`.
fn quota_below(cgroup: &Path) -> Option<PathBuf> {
    let own = cgroup.join("cpu.max");
    let limits = |text: String| !text.starts_with("max");
    if fs::read_to_string(&own).is_ok_and(limits) {
        return Some(own);
    }
    let inner = fs::read_dir(cgroup).ok()?.filter_map(Result::ok);
    let mut inner = inner.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    inner.find_map(|entry| quota_below(&entry.path()))
}

fn check_kernel(root: &Path, release: &str) -> Result<(), Refusal> {
    let found = release.to_owned();
    if is_before(release, FIRST) {
        return Err(Refusal::TooOld { found });
    }
    if !root.join("sys/kernel/sched_ext").is_dir() {
        return Err(Refusal::NoSchedExt { release: found });
    }
    if !root.join("sys/kernel/btf/vmlinux").exists() {
        return Err(Refusal::NoTypes { release: found });
    }
    Ok(())
}

fn warnings(root: &Path, release: &str) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if is_before(release, TRIED) {
        warnings.push(Warning::Untried {
            found: release.to_owned(),
        });
    }
    if kernel_config(root) == KernelConfig::Missing {
        warnings.push(Warning::NoConfig {
            release: release.to_owned(),
        });
    }
    if is_closed(&root.join("sys/fs/bpf")) {
        warnings.push(Warning::ClosedBpffs);
    }
    warnings
}

/// The release of the kernel, as `uname -r` says it.
pub fn release(root: &Path) -> String {
    text(root, "proc/sys/kernel/osrelease").unwrap_or_else(|| "of an unknown release".to_owned())
}

/// Where the kernel's configuration is.
pub fn kernel_config(root: &Path) -> KernelConfig {
    let release = release(root);
    let usual = [
        format!("boot/config-{release}"),
        "proc/config.gz".to_owned(),
    ];
    if usual.iter().any(|path| root.join(path).exists()) {
        return KernelConfig::Usual;
    }
    let elsewhere = ["usr/lib/modules", "lib/modules"]
        .map(|folder| root.join(folder).join(&release).join("config"));
    match elsewhere.into_iter().find(|path| path.exists()) {
        Some(path) => KernelConfig::At(path),
        None => KernelConfig::Missing,
    }
}

/// The name of the scheduler that is loaded, if there is one.
pub fn loaded_scheduler(root: &Path) -> Option<String> {
    let state = text(root, "sys/kernel/sched_ext/state")?;
    if state == "disabled" {
        return None;
    }
    Some(
        text(root, "sys/kernel/sched_ext/root/ops")
            .unwrap_or_else(|| format!("one without a name ({state})")),
    )
}

/// Whether a loaded scheduler is scx_warmq, of whatever version: the kernel shows
/// `warmq_VERSION_TARGET`.
pub fn is_ours(name: &str) -> bool {
    name == "warmq" || name.starts_with("warmq_")
}

fn text(root: &Path, path: &str) -> Option<String> {
    let text = fs::read_to_string(root.join(path)).ok()?;
    Some(text.trim().to_owned())
}

/// Whether `release`, as `6.18.15+deb13-cloud-amd64`, is one before `first`.
fn is_before(release: &str, (major, minor): (u32, u32)) -> bool {
    let known = Release::at_start_of(release);
    known.is_some_and(|release| !release.is_from(major, minor))
}

/// Whether the capabilities of this process suffice. If they cannot be read, the kernel will tell
/// when the program is loaded.
fn is_privileged(root: &Path) -> bool {
    let status = text(root, "proc/self/status").unwrap_or_default();
    let field = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let Some(capabilities) = field.and_then(|field| u64::from_str_radix(field.trim(), 16).ok())
    else {
        return true;
    };
    let has = |capability: u32| capabilities & (1 << capability) != 0;
    has(CAP_SYS_ADMIN) || has(CAP_BPF) && has(CAP_PERFMON)
}

fn has_bpffs(root: &Path) -> bool {
    let mounts = text(root, "proc/self/mounts").unwrap_or_default();
    let is_it = |line: &str| {
        let mut fields = line.split(' ').skip(1);
        fields.next() == Some("/sys/fs/bpf") && fields.next() == Some("bpf")
    };
    mounts.lines().any(is_it)
}

fn is_closed(folder: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(folder).is_ok_and(|folder| folder.permissions().mode() & 0o001 == 0)
}

#[cfg(test)]
mod tests;
