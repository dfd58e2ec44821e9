//! What somebody may have meant who named a file that there is not.

use std::path::{Path, PathBuf};

use warmq_config::nearest;
use warmq_units::printable;

/// The most files of a folder that are looked at.
const MOST: usize = 10_000;

/// Which file in the same folder has a name most like that of `path`, which is not there; where
/// none is like it, `otherwise`.
pub fn or(path: &Path, otherwise: &str) -> String {
    or_one_of(path, &[], otherwise)
}

/// The same where one of `names` may be meant, too.
pub fn or_one_of(path: &Path, names: &[&str], otherwise: &str) -> String {
    match like(path, names) {
        Some(name) if !path.exists() => format!("did you mean `{}`?", printable(&name)),
        _ => otherwise.to_owned(),
    }
}

fn like(path: &Path, names: &[&str]) -> Option<PathBuf> {
    let beside = beside(path);
    // An ending that both have makes no two names alike.
    let is_alike = |other: &&PathBuf| other.extension() == path.extension();
    let alike = beside.iter().filter(is_alike);
    let stem = nearest(
        path.file_stem()?.to_str()?,
        alike.filter_map(|path| path.file_stem()?.to_str()),
    );
    if let Some(stem) = stem {
        let ending = path.extension().map(|extension| extension.to_owned());
        let name = path.with_file_name(stem);
        let name = ending.map_or(name.clone(), |ending| name.with_added_extension(ending));
        return Some(name);
    }
    let others = beside.iter().filter(|other| !is_alike(other));
    let others = others.filter_map(|path| path.file_name()?.to_str());
    if let Some(name) = nearest(path.file_name()?.to_str()?, others) {
        return Some(path.with_file_name(name));
    }
    let name = nearest(path.to_str()?, names.iter().copied())?;
    Some(name.into())
}

/// The paths of what is in the folder of `path`.
fn beside(path: &Path) -> Vec<PathBuf> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let read = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    let entries = std::fs::read_dir(read).into_iter().flatten().take(MOST);
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
    names.map(|name| folder.join(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_file_is_found_in_its_folder_and_a_mistyped_name_in_the_list() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["keys.toml", "other.json", "a"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let meant = |name: &str| or_one_of(&folder.path().join(name), &[], "-");
        let found = |name: &str| format!("did you mean `{}`?", folder.path().join(name).display());
        assert_eq!(meant("kyes.toml"), found("keys.toml"));
        assert_eq!(meant("keys.tml"), found("keys.toml"));
        assert_eq!(meant("none.toml"), "-");
        assert_eq!(meant("keys.toml"), "-", "it is there");
        let listed = |name: &str| or_one_of(Path::new(name), &["hackbench", "chat"], "-");
        assert_eq!(listed("hackbnch"), "did you mean `hackbench`?");
        assert_eq!(listed("nowhere/hackbnch"), "-");
    }
}
