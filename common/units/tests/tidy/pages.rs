//! Pages can be read and followed: links lead somewhere, and prose ends at 100 columns.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::tree::root;

const COLUMNS: usize = 100;

/// Folders of a checkout that hold no page of ours.
const NO_PAGES: &[&str] = &["target", "node_modules", "laws-out", "report"];

fn collect(folder: &Path, ends: &[&str], files: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(root().join(folder)).expect("a folder") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = folder.join(&name);
        let kind = entry.file_type().expect("a kind");
        let hidden = name.starts_with('.') && name != ".github";
        if kind.is_dir() && !hidden && !NO_PAGES.contains(&name.as_str()) {
            collect(&path, ends, files);
        } else if kind.is_file() && ends.iter().any(|end| name.ends_with(end)) {
            let text = fs::read_to_string(entry.path()).expect("text");
            files.insert(path, text);
        }
    }
}

/// Every file of the repository whose name ends so, by its path from the root.
fn files(ends: &[&str]) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    collect(Path::new(""), ends, &mut files);
    files
}

fn pages() -> BTreeMap<PathBuf, String> {
    files(&[".md"])
}

/// Lines outside of blocks of code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut code = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        (!fence && !code).then_some((at + 1, line))
    })
}

/// What `line` is without its spans of code: links are not looked for in these.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// The targets of the links and pictures of a line: `[text](target)`.
fn targets(line: &str) -> Vec<String> {
    let line = without_code(line);
    let after = line.split("](").skip(1);
    let ends = after.filter_map(|rest| rest.split_once(')'));
    ends.map(|(target, _)| target.to_owned()).collect()
}

/// The anchor of a heading, by GitHub's rules.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter(|(_, line)| line.starts_with('#'));
    headings.map(|(_, line)| anchor(line)).collect()
}

/// `path` without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// Why the link of `page` to `target` leads nowhere, if it does.
fn broken(page: &Path, target: &str, pages: &BTreeMap<PathBuf, String>) -> Option<&'static str> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let beside = page.parent().expect("a folder");
    let file = if file.is_empty() {
        page.to_path_buf()
    } else {
        plain(&beside.join(file))
    };
    if !root().join(&file).exists() {
        return Some("no such file");
    }
    let known = |text: &String| anchors(text).contains(anchor);
    let missing = !anchor.is_empty() && !pages.get(&file).is_some_and(known);
    missing.then_some("no such heading")
}

/// Whether something in `line` could stand on a line of its own: a space that is neither at its
/// beginning nor within code or the target of a link.
fn can_be_broken(line: &str) -> bool {
    let line = line.trim_start().trim_start_matches("- ");
    without_code(line).contains(' ')
}

/// Tables cannot be broken; whoever writes one decides how wide it is.
fn too_wide(line: &str) -> bool {
    !line.trim_start().starts_with('|') && line.chars().count() > COLUMNS && can_be_broken(line)
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let pages = pages();
    assert!(pages.len() > 20, "the pages are found");
    let mut wrong = Vec::new();
    for (page, text) in &pages {
        for (at, line) in prose(text) {
            for target in targets(line) {
                let why = broken(page, &target, &pages);
                wrong.extend(why.map(|why| format!("{}:{at}: {target}: {why}", page.display())));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn prose_ends_at_100_columns() {
    let mut wrong = Vec::new();
    for (page, text) in pages() {
        let wide = prose(&text).filter(|(_, line)| too_wide(line));
        wrong.extend(wide.map(|(at, _)| format!("{}:{at}", page.display())));
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// The text of a line that is a comment in Rust. Tables and what is drawn in columns are none.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let marks = ["///", "//!", "//"];
    let text = marks.iter().find_map(|mark| line.strip_prefix(mark))?;
    (!text.contains("   ") && !text.contains('|')).then_some(text)
}

#[test]
fn comments_end_at_100_columns() {
    let mut wrong = Vec::new();
    for (path, text) in files(&[".rs"]) {
        let mut code = false;
        let wide = text.lines().enumerate().filter(|(_, line)| {
            let text = comment(line).unwrap_or_default();
            code ^= text.trim_start().starts_with("```");
            !code && line.chars().count() > COLUMNS && can_be_broken(text)
        });
        wrong.extend(wide.map(|(at, _)| format!("{}:{}", path.display(), at + 1)));
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// The pages of docs/ that a text names by their paths from the root.
fn named(text: &str) -> Vec<&str> {
    let part = |c: char| c.is_alphanumeric() || "/_-.".contains(c);
    let paths = text
        .split(|c| !part(c))
        .map(|path| path.trim_end_matches('.'));
    let pages = paths.filter(|path| path.starts_with("docs/") && path.ends_with(".md"));
    pages.collect()
}

#[test]
fn pages_that_code_and_data_name_are_there() {
    let all = files(&[
        ".rs", ".c", ".h", ".py", ".sh", ".toml", ".snap", "Makefile",
    ]);
    let others = all.iter().filter(|(path, _)| !path.ends_with(file!()));
    let mut wrong = Vec::new();
    for (path, text) in others {
        let lost = named(text)
            .into_iter()
            .filter(|page| !root().join(page).exists());
        wrong.extend(lost.map(|page| format!("{}: {page}", path.display())));
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// What it has no room for is a link away.
#[test]
fn the_readme_has_at_most_100_lines() {
    let lines = pages()[Path::new("README.md")].lines().count();
    assert!(lines <= 100, "README.md has {lines} lines");
}

/// Every page of docs/ is reached from README.md, by links.
#[test]
fn every_page_can_be_found() {
    let pages = pages();
    let mut seen = BTreeSet::new();
    let mut left = vec![PathBuf::from("README.md")];
    while let Some(page) = left.pop() {
        let Some(text) = pages.get(&page).filter(|_| seen.insert(page.clone())) else {
            continue;
        };
        let links = prose(text).flat_map(|(_, line)| targets(line));
        let beside = page.parent().expect("a folder");
        let files = links.map(|link| link.split('#').next().unwrap_or_default().to_owned());
        left.extend(files.map(|file| plain(&beside.join(file))));
    }
    let docs = pages.keys().filter(|page| page.starts_with("docs"));
    let lost: Vec<_> = docs.filter(|page| !seen.contains(*page)).collect();
    assert_eq!(
        lost,
        Vec::<&PathBuf>::new(),
        "no link leads there from README.md"
    );
}

#[test]
fn links_and_wide_lines_are_seen() {
    assert_eq!(
        targets("see [a](b.md#c), `[x](y)`, ![p](q.png)"),
        ["b.md#c", "q.png"]
    );
    assert_eq!(
        anchor("## EEVDF of Linux 6.12 to 7.3 (`lab`)"),
        "eevdf-of-linux-612-to-73-lab"
    );
    let pages = BTreeMap::from([(PathBuf::from("README.md"), "# Here\n".to_owned())]);
    let of = |target| broken(Path::new("README.md"), target, &pages);
    assert_eq!(of("#here"), None);
    assert_eq!(of("#there"), Some("no such heading"));
    assert_eq!(of("docs/nothing.md"), Some("no such file"));
    assert_eq!(
        named("as docs/laws.md. (docs/a/b.md, other/c.md)"),
        ["docs/laws.md", "docs/a/b.md"]
    );
    assert!(too_wide(&"word ".repeat(25)));
    assert!(!too_wide(&format!("- `{}`", "word ".repeat(25))));
    assert!(!too_wide(&format!("| {} |", "word ".repeat(25))));
}
