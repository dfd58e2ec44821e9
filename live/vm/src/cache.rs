//! Kernels that were downloaded before.
//!
//! A kernel's folder gets its final name when everything is in it, so a download that was
//! interrupted is never used. Checksums show damage that happens later; a damaged kernel is
//! downloaded again.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use warmq_config::read_bytes;

use crate::VmError;
use crate::fetch::{self, Step};
use crate::input;
use crate::kernel::Kernel;
use crate::release::{belongs, order};

const IMAGE: &str = "vmlinuz";
const CONFIG: &str = "config";
/// In the format of `sha256sum`, so that anybody can check.
const SUMS: &str = "SHA256SUMS";
/// What is being downloaded. Not a release's name.
const UNFINISHED: &str = ".unfinished";

/// What is kept for this user: `warmq` in `$XDG_CACHE_HOME`, else in `~/.cache`.
///
/// # Errors
/// When neither is known.
pub fn user_folder() -> Result<PathBuf, VmError> {
    let named = |name| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    let home = || named("HOME").map(|home| home.join(".cache"));
    let cache = named("XDG_CACHE_HOME").or_else(home).ok_or_else(|| {
        VmError::missing(
            "there is no folder for what is kept",
            "set HOME or XDG_CACHE_HOME",
        )
    })?;
    Ok(cache.join("warmq"))
}

/// A folder of kernels, one folder a release.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// Kernels in the user's folder.
    ///
    /// # Errors
    /// When it is not known.
    pub fn usual() -> Result<Cache, VmError> {
        Ok(Cache::at(user_folder()?))
    }

    /// Kernels in a folder of choice.
    pub fn at(folder: impl Into<PathBuf>) -> Cache {
        let folder = folder.into().join("kernels");
        Cache { folder }
    }

    /// The newest undamaged kernel of `series` (`6.18`, or longer) in the cache. Damaged ones are
    /// reported to `seen` and skipped. The network is not used.
    pub fn find(&self, series: &str, seen: &mut dyn FnMut(Step)) -> Option<Kernel> {
        let entries = fs::read_dir(&self.folder).ok()?.filter_map(Result::ok);
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut releases: Vec<String> = names.filter(|name| belongs(name, series)).collect();
        releases.sort_by(|one, other| order(other, one));
        releases
            .into_iter()
            .find_map(|release| self.whole(release, seen))
    }

    fn whole(&self, release: String, seen: &mut dyn FnMut(Step)) -> Option<Kernel> {
        let folder = self.folder.join(&release);
        if let Err(problem) = check(&folder) {
            seen(Step::Broken { release, problem });
            return None;
        }
        let config = input::bytes(&folder.join(CONFIG)).ok();
        Some(Kernel {
            image: folder.join(IMAGE),
            release,
            config,
        })
    }

    /// The newest kernel of `series` from here, or else from the mirror. One without a
    /// configuration is taken only where the mirror cannot help.
    ///
    /// # Errors
    /// When there is none, or it cannot be downloaded.
    pub fn kernel(
        &self,
        series: &str,
        mirror: Option<&str>,
        seen: &mut dyn FnMut(Step),
    ) -> Result<Kernel, VmError> {
        let configured = |kernel: &Kernel| kernel.config.is_some();
        if let Some(kernel) = self.find(series, seen).filter(configured) {
            return Ok(kernel);
        }
        let _alone = self.lock()?;
        // Somebody else may have downloaded it while we waited.
        let here = self.find(series, &mut |_| {});
        match here {
            Some(kernel) if configured(&kernel) => Ok(kernel),
            Some(kernel) => Ok(self.download(series, mirror, seen).unwrap_or(kernel)),
            None => self.download(series, mirror, seen),
        }
    }

    /// The newest kernel of `series` at the mirror, even if there is an older one here.
    ///
    /// # Errors
    /// When there is none, or it cannot be downloaded.
    pub fn newest(
        &self,
        series: &str,
        mirror: Option<&str>,
        seen: &mut dyn FnMut(Step),
    ) -> Result<Kernel, VmError> {
        let _alone = self.lock()?;
        self.download(series, mirror, seen)
    }

    /// One download at a time: held until dropped, or until the process ends in whatever way.
    fn lock(&self) -> Result<File, VmError> {
        fs::create_dir_all(&self.folder).map_err(VmError::file("make", &self.folder))?;
        let path = self.folder.join(".lock");
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let file = file.map_err(VmError::file("write", &path))?;
        file.lock().map_err(VmError::file("lock", &path))?;
        Ok(file)
    }

    fn download(
        &self,
        series: &str,
        mirror: Option<&str>,
        seen: &mut dyn FnMut(Step),
    ) -> Result<Kernel, VmError> {
        let unfinished = Unfinished::begin(self.folder.join(UNFINISHED))?;
        let work = &unfinished.0;
        let shelf = fetch::Shelf::open(work, series, mirror, seen)?;
        let here = self.whole_quietly(shelf.release());
        if let Some(kernel) = here.filter(|kernel| kernel.config.is_some()) {
            return Ok(kernel);
        }
        let found = shelf.take(work, seen)?;
        let folder = work.join("kernel");
        fs::create_dir(&folder).map_err(VmError::file("make", &folder))?;
        keep(&found.image, &folder.join(IMAGE))?;
        if let Some(config) = &found.config {
            let path = folder.join(CONFIG);
            fs::write(&path, config).map_err(VmError::file("write", &path))?;
        }
        let sums = sums(&folder).map_err(VmError::file("read", &folder))?;
        let path = folder.join(SUMS);
        fs::write(&path, sums).map_err(VmError::file("write", &path))?;
        let place = self.folder.join(shelf.release());
        // What stands there is broken or not complete, or it would have been found.
        let _ = fs::remove_dir_all(&place);
        fs::rename(&folder, &place).map_err(VmError::file("make", &place))?;
        self.whole(shelf.release().to_owned(), seen).ok_or_else(|| {
            VmError::missing(
                "the kernel that was just downloaded is missing",
                "try again",
            )
        })
    }

    fn whole_quietly(&self, release: &str) -> Option<Kernel> {
        let there = self.folder.join(release).exists();
        there
            .then(|| self.whole(release.to_owned(), &mut |_| {}))
            .flatten()
    }
}

/// A folder that is removed when the download is over, well or not; one that a killed process left
/// is removed first.
struct Unfinished(PathBuf);

impl Unfinished {
    fn begin(folder: PathBuf) -> Result<Unfinished, VmError> {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(VmError::file("make", &folder))?;
        Ok(Unfinished(folder))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn keep(from: &Path, to: &Path) -> Result<(), VmError> {
    fs::copy(from, to)
        .map(drop)
        .map_err(VmError::file("copy", from))?;
    let written = File::open(to).and_then(|file| file.sync_all());
    written.map_err(VmError::file("write", to))
}

fn sums(folder: &Path) -> io::Result<String> {
    let mut sums = String::new();
    for name in [IMAGE, CONFIG] {
        let content = match read_bytes(folder.join(name), input::LARGEST) {
            Err(error) if name == CONFIG && error.kind() == ErrorKind::NotFound => continue,
            content => content?,
        };
        let hex: String = Sha256::digest(&content)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        sums.push_str(&format!("{hex}  {name}\n"));
    }
    Ok(sums)
}

/// What is wrong with a kernel's folder.
fn check(folder: &Path) -> Result<(), String> {
    let text = |error: io::Error| error.to_string();
    let noted = input::text(&folder.join(SUMS)).map_err(|_| format!("it has no {SUMS}"))?;
    let sums = sums(folder).map_err(text)?;
    if sums == noted {
        Ok(())
    } else {
        Err(format!("its files do not match its {SUMS}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mirror that nobody has: whoever asks it fails.
    const NO_MIRROR: Option<&str> = Some("http://127.0.0.1:9/debian");

    struct Shelf {
        _folder: tempfile::TempDir,
        cache: Cache,
    }

    fn shelf(releases: &[&str]) -> Shelf {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        for release in releases {
            let folder = cache.folder.join(release);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(IMAGE), format!("kernel {release}")).unwrap();
            fs::write(folder.join(CONFIG), "CONFIG_X=y").unwrap();
            fs::write(folder.join(SUMS), sums(&folder).unwrap()).unwrap();
        }
        Shelf {
            _folder: folder,
            cache,
        }
    }

    fn found(shelf: &Shelf, series: &str) -> (Option<String>, Vec<Step>) {
        let mut steps = Vec::new();
        let kernel = shelf.cache.find(series, &mut |step| steps.push(step));
        (kernel.map(|kernel| kernel.release), steps)
    }

    #[test]
    fn the_newest_whole_kernel_of_a_series_is_found_without_a_mirror() {
        let shelf = shelf(&["6.18.9", "6.18.12", "6.19.1"]);
        assert_eq!(
            found(&shelf, "6.18"),
            (Some("6.18.12".to_owned()), Vec::new())
        );
        let kernel = shelf.cache.kernel("6.18", NO_MIRROR, &mut |_| {}).unwrap();
        assert_eq!(fs::read(&kernel.image).unwrap(), b"kernel 6.18.12");
        assert_eq!(kernel.config.as_deref(), Some(b"CONFIG_X=y".as_slice()));
        assert_eq!(found(&shelf, "6.17"), (None, Vec::new()));
    }

    #[test]
    fn a_broken_kernel_is_reported_and_passed_over() {
        type Break = fn(&Path);
        let breaks: [(&str, Break); 5] = [
            ("cut short", |folder| {
                fs::write(folder.join(IMAGE), "kern").unwrap()
            }),
            ("another configuration", |folder| {
                fs::write(folder.join(CONFIG), "").unwrap()
            }),
            ("no image", |folder| {
                fs::remove_file(folder.join(IMAGE)).unwrap()
            }),
            ("no configuration", |folder| {
                fs::remove_file(folder.join(CONFIG)).unwrap()
            }),
            ("no sums", |folder| {
                fs::remove_file(folder.join(SUMS)).unwrap()
            }),
        ];
        for (name, break_it) in breaks {
            let shelf = shelf(&["6.18.9", "6.18.12"]);
            break_it(&shelf.cache.folder.join("6.18.12"));
            let (release, steps) = found(&shelf, "6.18");
            assert_eq!(release.as_deref(), Some("6.18.9"), "{name}");
            let reported =
                matches!(&steps[..], [Step::Broken { release, .. }] if release == "6.18.12");
            assert!(reported, "{name}: {steps:?}");
        }
    }

    #[test]
    fn a_kernel_without_a_configuration_is_whole_if_it_never_had_one() {
        let shelf = shelf(&["6.19.1"]);
        let folder = shelf.cache.folder.join("6.19.1");
        fs::remove_file(folder.join(CONFIG)).unwrap();
        fs::write(folder.join(SUMS), sums(&folder).unwrap()).unwrap();
        let kernel = shelf.cache.find("6.19", &mut |_| {}).unwrap();
        assert_eq!(kernel.config, None);
        let kernel = shelf.cache.kernel("6.19", NO_MIRROR, &mut |_| {}).unwrap();
        assert_eq!(kernel.config, None, "it boots where no mirror helps");
    }

    #[test]
    fn a_half_download_is_no_kernel_and_is_cleared_away() {
        let shelf = shelf(&[]);
        let left = shelf.cache.folder.join(UNFINISHED).join("kernel");
        fs::create_dir_all(&left).unwrap();
        fs::write(left.join(IMAGE), "half").unwrap();
        assert_eq!(found(&shelf, "6.18"), (None, Vec::new()));
        let refused = shelf.cache.kernel("6.18", NO_MIRROR, &mut |_| {});
        assert!(refused.is_err());
        assert!(!shelf.cache.folder.join(UNFINISHED).exists());
    }
}
