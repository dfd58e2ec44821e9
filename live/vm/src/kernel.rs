//! A kernel to boot.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::{VmError, embedded, input};

/// A kernel image and its properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The image that QEMU loads (`vmlinuz`).
    pub image: PathBuf,
    /// Its release, as `uname -r` prints it.
    pub release: String,
    /// Its configuration, if one was found.
    pub config: Option<Vec<u8>>,
}

/// Offsets in a bzImage (the kernel's `Documentation/arch/x86/boot.rst`).
const MAGIC_AT: u64 = 0x202;
const VERSION_POINTER_AT: u64 = 0x20e;
const MAGIC: &[u8] = b"HdrS";
/// The pointer to the version is relative to this.
const VERSION_BASE: u64 = 0x200;
/// No release is longer (`__NEW_UTS_LEN`).
const LONGEST_RELEASE: usize = 64;

impl Kernel {
    /// The user's own kernel. Its configuration is `config`; by default `config-RELEASE` beside the
    /// image or in /boot, or the one in the image itself (CONFIG_IKCONFIG).
    ///
    /// # Errors
    /// When it is no kernel for x86-64, or a file cannot be read.
    pub fn from_file(image: &Path, config: Option<&Path>) -> Result<Kernel, VmError> {
        let release = release_of(image)?;
        let config = match config {
            Some(config) => Some(input::bytes(config)?),
            None => config_beside(image, &release)
                .or_else(|| embedded::config(&input::bytes(image).ok()?)),
        };
        let image = std::path::absolute(image).map_err(VmError::file("find", image))?;
        Ok(Kernel {
            image,
            release,
            config,
        })
    }
}

/// Options that a guest's kernel needs: for its ports, its files, and its console.
const NEEDED: &[&str] = &[
    "VIRTIO_PCI",
    "VIRTIO_CONSOLE",
    "BLK_DEV_INITRD",
    "BINFMT_SCRIPT",
    "DEVTMPFS",
    "SERIAL_8250_CONSOLE",
];

impl Kernel {
    /// Checks that the kernel has what a guest needs, as far as its configuration is known.
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
        let problem = format!("{} was built without CONFIG_{name}=y", self.release);
        let help = "build it in (the guest has no disk to load modules from), or use --release";
        Err(VmError::setting(
            "kernel",
            self.image.display(),
            problem,
            help,
        ))
    }
}

fn release_of(image: &Path) -> Result<String, VmError> {
    let file = File::open(image).map_err(VmError::file("read", image))?;
    header_release(&file).ok_or_else(|| {
        let problem = "this is not a Linux kernel for x86 (a bzImage, like /boot/vmlinuz)";
        VmError::setting(
            "kernel",
            image.display(),
            problem,
            "name a file of that kind",
        )
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
    input::bytes(&beside)
        .or_else(|_| input::bytes(&installed))
        .ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The head of a bzImage, as far as it is read.
    fn image(version: &[u8]) -> Vec<u8> {
        let mut image = vec![0; 0x400];
        image[0x202..0x206].copy_from_slice(MAGIC);
        image[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
        image[0x300..0x300 + version.len()].copy_from_slice(version);
        image
    }

    fn in_folder(image: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vmlinuz");
        fs::write(&path, image).unwrap();
        (folder, path)
    }

    #[test]
    fn a_kernel_knows_its_release_and_finds_its_configuration_beside_it() {
        let (folder, path) = in_folder(&image(b"6.18.0-mine+ (me@here) #1 SMP"));
        let bare = Kernel::from_file(&path, None).unwrap();
        assert_eq!((bare.release.as_str(), bare.config), ("6.18.0-mine+", None));
        fs::write(folder.path().join("config-6.18.0-mine+"), "CONFIG_X=y").unwrap();
        let kernel = Kernel::from_file(&path, None).unwrap();
        assert_eq!(kernel.config.as_deref(), Some(b"CONFIG_X=y".as_slice()));
        let absent = Kernel::from_file(&path, Some(Path::new("/no/such/config")));
        assert!(absent.unwrap_err().to_string().contains("/no/such/config"));
    }

    #[test]
    fn a_file_without_end_is_read_up_to_the_limit() {
        let (folder, path) = in_folder(&image(b"6.18.0-mine x"));
        let config = folder.path().join("config");
        let file = File::create(&config).unwrap();
        file.set_len(1 << 40).unwrap();
        let error = Kernel::from_file(&path, Some(&config)).unwrap_err();
        let said = error.to_string();
        assert!(said.ends_with("it has more than 1024 MB"), "{said}");
        let endless = Some(Path::new("/dev/zero"));
        let error = Kernel::from_file(&path, endless).unwrap_err();
        assert!(error.to_string().contains("/dev/zero"), "{error}");
    }

    #[test]
    fn what_is_no_kernel_is_refused() {
        let mut unmarked = image(b"6.18 x");
        unmarked[0x202] = b'X';
        let strange = image(b"../../etc x");
        for image in [
            b"".as_slice(),
            b"#!/bin/sh",
            &unmarked,
            &strange,
            &image(b" x"),
        ] {
            let (_folder, path) = in_folder(image);
            let said = Kernel::from_file(&path, None).unwrap_err().to_string();
            assert!(said.contains("not a Linux kernel for x86"), "{said}");
        }
    }

    #[test]
    fn a_kernel_without_ports_is_refused_by_the_option_that_it_lacks() {
        let config = |without: &str| {
            let value = |name: &str| if name == without { "m" } else { "y" };
            let line = |name: &&str| format!("CONFIG_{name}={}\n", value(name));
            Some(NEEDED.iter().map(line).collect::<String>().into_bytes())
        };
        let kernel = |config| Kernel {
            image: "k".into(),
            release: "1.2".to_owned(),
            config,
        };
        kernel(config("")).check().unwrap();
        kernel(None).check().unwrap();
        for name in NEEDED {
            let said = kernel(config(name)).check().unwrap_err().to_string();
            assert!(said.contains(&format!("without CONFIG_{name}=y")), "{said}");
        }
    }
}
