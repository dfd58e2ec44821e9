//! Where the program of a scheduler is.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::error::PlayError;

/// Where a guest has its programs.
const BIN: &str = "/bin";

/// The program `name`: a path, or a name on PATH, beside this program, or in /bin.
///
/// # Errors
/// There is no such file.
pub fn find(name: &str) -> Result<PathBuf, PlayError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent);
    find_in(name, &path, beside).ok_or_else(|| {
        PlayError::Input(format!(
            "no scheduler `{name}` is found: give the path of its program, or the name of one on \
             PATH, beside warmq-player or in {BIN}"
        ))
    })
}

fn find_in(name: &str, path: &OsStr, beside: Option<&Path>) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|file| file.is_file());
    }
    let folders = std::env::split_paths(path);
    let folders = folders.chain(beside.map(Path::to_path_buf));
    let mut files = folders
        .chain([PathBuf::from(BIN)])
        .map(|folder| folder.join(name));
    files.find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_for_on_the_path_first_and_a_path_nowhere_else() {
        let folder = tempfile::tempdir().expect("a folder");
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        for place in [&first, &second] {
            std::fs::create_dir(place).expect("made");
        }
        let path = first.clone().into_os_string();
        let found = || find_in("scx_some", &path, Some(&second));
        assert_eq!(found(), None);
        std::fs::write(second.join("scx_some"), "").expect("written");
        assert_eq!(found(), Some(second.join("scx_some")));
        std::fs::write(first.join("scx_some"), "").expect("written");
        assert_eq!(found(), Some(first.join("scx_some")));
        let whole = second.join("scx_some").to_string_lossy().into_owned();
        assert_eq!(find_in(&whole, &path, None), Some(second.join("scx_some")));
        assert_eq!(find_in("./scx_some", &path, Some(&second)), None);
        assert!(
            find_in("sh", OsStr::new(""), None).is_some(),
            "it is in /bin"
        );
    }
}
