//! A kernel to boot.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::{VmError, embedded};

/// A kernel image, and what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The image that QEMU loads (`vmlinuz`).
    pub image: PathBuf,
    /// What `uname -r` says in it.
    pub release: String,
    /// Its configuration, where one was found.
    pub config: Option<Vec<u8>>,
}

/// Offsets in a bzImage (the kernel's `Documentation/arch/x86/boot.rst`).
const MAGIC_AT: u64 = 0x202;
const VERSION_POINTER_AT: u64 = 0x20e;
const MAGIC: &[u8] = b"HdrS";
/// The pointer to the version counts from here.
const VERSION_BASE: u64 = 0x200;
/// No release is longer (`__NEW_UTS_LEN`).
const LONGEST_RELEASE: usize = 64;

impl Kernel {
    /// A kernel of the user's own. Its configuration is `config`, else `config-RELEASE` beside the
    /// image or in /boot, else the one in the image itself (CONFIG_IKCONFIG).
    ///
    /// # Errors
    /// When it is no kernel for x86-64, or a file cannot be read.
    pub fn from_file(image: &Path, config: Option<&Path>) -> Result<Kernel, VmError> {
        let release = release_of(image)?;
        let config = match config {
            Some(config) => Some(fs::read(config).map_err(VmError::file("read", config))?),
            None => {
                config_beside(image, &release).or_else(|| embedded::config(&fs::read(image).ok()?))
            }
        };
        let image = std::path::absolute(image).map_err(VmError::file("find", image))?;
        Ok(Kernel {
            image,
            release,
            config,
        })
    }
}

/// What a guest cannot do without: its ports, its files, its first words.
const NEEDED: &[&str] = &[
    "VIRTIO_PCI",
    "VIRTIO_CONSOLE",
    "BLK_DEV_INITRD",
    "BINFMT_SCRIPT",
    "DEVTMPFS",
    "SERIAL_8250_CONSOLE",
];

impl Kernel {
    /// Whether a guest with this kernel can speak to us, as far as its configuration is known.
    pub(crate) fn check(&self) -> Result<(), VmError> {
        let Some(config) = &self.config else {
            return Ok(());
        };
        let text = String::from_utf8_lossy(config);
        let lacks = |name: &&&str| {
            let built_in = format!("CONFIG_{name}=y");
            !text.lines().any(|line| line == built_in)
        };
        let Some(name) = NEEDED.iter().find(lacks) else {
            return Ok(());
        };
        let problem = format!("{} is built without CONFIG_{name}=y", self.release);
        let mend = "build it in (there is no disk to load modules from), or use --release";
        Err(VmError::setting(
            "kernel",
            self.image.display(),
            problem,
            mend,
        ))
    }
}

fn release_of(image: &Path) -> Result<String, VmError> {
    let file = File::open(image).map_err(VmError::file("read", image))?;
    header_release(&file).ok_or_else(|| {
        let problem = "it is no Linux kernel for x86 (a bzImage, as /boot/vmlinuz is)";
        VmError::setting("kernel", image.display(), problem, "name such a file")
    })
}

fn header_release(file: &File) -> Option<String> {
    let mut magic = [0; 4];
    file.read_exact_at(&mut magic, MAGIC_AT).ok()?;
    let mut pointer = [0; 2];
    file.read_exact_at(&mut pointer, VERSION_POINTER_AT).ok()?;
    let mut version = [0; LONGEST_RELEASE + 1];
    let at = VERSION_BASE + u64::from(u16::from_le_bytes(pointer));
    file.read_exact_at(&mut version, at).ok()?;
    let end = version.iter().position(|byte| matches!(byte, b' ' | 0))?;
    let release = std::str::from_utf8(&version[..end]).ok()?;
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "+-._~".contains(letter);
    (magic == MAGIC && !release.is_empty() && release.chars().all(plain))
        .then(|| release.to_owned())
}

fn config_beside(image: &Path, release: &str) -> Option<Vec<u8>> {
    let name = format!("config-{release}");
    let beside = image.with_file_name(&name);
    let installed = Path::new("/boot").join(&name);
    fs::read(beside).or_else(|_| fs::read(installed)).ok()
}
