//! The layers of lab/kernel, and files that belong to one crate: read from the sources.

use std::fs;
use std::path::{Path, PathBuf};

use crate::root;

/// The layers of lab/kernel/src from the bottom: folders, and files that stand alone. A module may
/// use its own folder and the layers below; the folders of one layer do not know each other.
const LAYERS: &[&[&str]] = &[
    &["words"],
    &[
        "core/address_spaces",
        "core/groups",
        "core/interrupt",
        "core/memory",
        "core/net",
        "core/operator",
        "core/recorder",
        "core/statistic",
        "core/task",
        "core/time",
    ],
    &["core/cpu", "core/figures", "core/sync"],
    &["core"],
    &["face"],
    &["paths"],
    &["run"],
];

/// A folder of [`LAYERS`], and how high it is.
fn layer(module: &str) -> Option<(usize, &'static str)> {
    let within = |folder: &str| {
        let rest = module.strip_prefix(folder);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let layers = LAYERS.iter().enumerate();
    let folders = layers.flat_map(|(height, layer)| layer.iter().map(move |name| (height, *name)));
    folders
        .filter(|(_, folder)| within(folder))
        .max_by_key(|(_, folder)| folder.len())
}

/// What is wrong with an arrow from one module to another one, both as paths below src.
fn broken(from: &str, to: &str) -> Option<String> {
    let ((height, own), Some((depth, used))) = (layer(from)?, layer(to)) else {
        return Some(format!("{from} uses {to}, which is in no layer"));
    };
    let may = own == used || depth < height;
    (!may).then(|| format!("{from} ({own}) must not use {to} ({used})"))
}

/// The modules that `text`, the source of `module`, names, and what hides others.
fn named(module: &str, text: &str) -> (Vec<String>, Vec<String>) {
    let (mut modules, mut hidden) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let code = line.split("//").next().unwrap_or_default();
        modules.extend(code.split("crate::").skip(1).map(modules_of));
        // The tests in a file, or of one, see that file.
        let own = code.starts_with(' ') || module.ends_with("/tests");
        let allowed = own && code.trim() == "use super::*;";
        if code.contains("super::") && !allowed {
            hidden.push(format!(
                "{module}: `{}` hides a folder: say crate::",
                code.trim()
            ));
        }
    }
    (modules, hidden)
}

/// The modules at the front of a path: `core/net` of `core::net::Card`.
fn modules_of(path: &str) -> String {
    let end = path.find(|char: char| !char.is_alphanumeric() && !"_:".contains(char));
    let mut parts: Vec<&str> = path[..end.unwrap_or(path.len())].split("::").collect();
    parts.pop();
    let is_module = |part: &&str| part.starts_with(|char: char| char.is_lowercase());
    let modules: Vec<&str> = parts.into_iter().take_while(is_module).collect();
    modules.join("/")
}

/// All files in Rust below `folder`, in order.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The path of a module below `src`, as folders: `core/net/card`.
fn module_of(src: &Path, file: &Path) -> String {
    let below = file
        .strip_prefix(src)
        .expect("below src")
        .with_extension("");
    let name = below.to_string_lossy().replace('\\', "/");
    name.strip_suffix("/mod").unwrap_or(&name).to_owned()
}

#[test]
fn modules_of_the_kernel_know_only_the_layers_below() {
    let src = root().join("lab/kernel/src");
    let mut wrong = Vec::new();
    for file in sources(&src) {
        let module = module_of(&src, &file);
        if module == "lib" {
            continue;
        }
        let text = fs::read_to_string(&file).expect("text");
        let (used, hidden) = named(&module, &text);
        wrong.extend(used.iter().filter_map(|used| broken(&module, used)));
        wrong.extend(hidden);
        if layer(&module).is_none() {
            wrong.push(format!("{module} is in no layer"));
        }
    }
    assert_eq!(wrong, Vec::<String>::new(), "see docs/architecture.md");
}

#[test]
fn every_layer_of_the_kernel_is_there() {
    let src = root().join("lab/kernel/src");
    for folder in LAYERS.iter().copied().flatten() {
        let file = src.join(folder).with_extension("rs");
        assert!(src.join(folder).is_dir() || file.is_file(), "{folder}");
    }
}

#[test]
fn the_picture_of_the_kernel_has_its_layers() {
    let page = fs::read_to_string(root().join("docs/architecture.md")).expect("text");
    let (_, section) = page.split_once("## Inside the engine").expect("a heading");
    let picture: Vec<&str> = section
        .split("```")
        .nth(1)
        .expect("a picture")
        .lines()
        .collect();
    let row = |folder: &&str| {
        let name = folder.rsplit('/').next();
        let has = |line: &&str| line.split([' ', ',']).any(|word| Some(word) == name);
        picture
            .iter()
            .rposition(has)
            .unwrap_or_else(|| panic!("{folder} is not in the picture"))
    };
    let rows = LAYERS
        .iter()
        .map(|layer| layer.iter().map(row).collect::<Vec<_>>());
    let rows: Vec<Vec<usize>> = rows.collect();
    for (below, above) in rows.iter().zip(&rows[1..]) {
        assert!(above.iter().max() < below.iter().min(), "{rows:?}");
    }
}

/// Tests that want the same things have a crate for them.
#[test]
fn no_crate_includes_modules_of_another() {
    for file in ["common", "lab", "live", "cli"]
        .map(|wing| sources(&root().join(wing)))
        .concat()
    {
        let text = fs::read_to_string(&file).expect("text");
        let paths = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("#[path = \""));
        for path in paths.filter_map(|path| path.strip_suffix("\"]")) {
            let stays = crate_of(&file) == crate_of(&file.with_file_name(path));
            assert!(stays, "{}: {path} is in another crate", file.display());
        }
    }
}

/// The folder of the manifest that is nearest above `file`.
fn crate_of(file: &Path) -> PathBuf {
    let mut folders = file.ancestors().skip(1);
    let nearest = folders.find(|folder| folder.join("Cargo.toml").is_file());
    nearest.expect("a crate").canonicalize().expect("a folder")
}

#[test]
fn an_arrow_upwards_is_found() {
    let upwards = [
        ("words/step", "core/net/card"),
        ("core/net/card", "core"),
        ("core/net/card", "core/sync/lock"),
        ("core/memory", "core/task"),
        ("core/hold", "face/boot"),
        ("face/context", "paths/system"),
        ("paths/irq", ""),
    ];
    for (from, to) in upwards {
        assert!(broken(from, to).is_some(), "{from} must not use {to:?}");
    }
    let downwards = [
        ("core/net/card", "core/net/socket"),
        ("core/sync/lock", "core/memory"),
        ("core/hold", "core/task"),
        ("core/hold", "core"),
        ("paths/irq", "words/step"),
    ];
    for (from, to) in downwards {
        assert_eq!(broken(from, to), None);
    }
}

#[test]
fn paths_are_read_in_every_spelling() {
    let text = "
use crate::core::net::{Card, Packet};
pub(crate) use crate::words::step::Step;
// use crate::paths::irq::Irq;
fn run(context: &crate::face::context::Context, kernel: crate::Kernel) {}
mod tests {
    use super::*;
";
    let (modules, hidden) = named("core/hold", text);
    assert_eq!(modules, ["core/net", "words/step", "face/context", ""]);
    assert_eq!(hidden, Vec::<String>::new());
    for above in [
        "use super::Core;",
        "use super::*;",
        "    super::super::run();",
    ] {
        assert_eq!(named("core/hold", above).1.len(), 1, "{above}");
    }
}
