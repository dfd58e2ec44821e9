//! The laws that come with WarmQ, and those in files.

use std::path::Path;

use warmq_law::Law;

use crate::failure::Failure;

/// The files of `laws/`, in the order of the matrix.
macro_rules! laws {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../../laws/", $name, ".toml")))),*]
    };
}

/// Name and text of each.
pub const LAWS: &[(&str, &str)] = laws! {
    "nice"
    "nice-on-two-cpus"
    "weights"
    "nested"
    "one-against-many"
    "unusable-weights"
    "narrow-cpusets"
    "short-naps"
    "frequent-sleepers"
    "other-session"
    "other-cgroup"
    "least-weight"
    "pipe-reader"
    "forks"
    "receiver-beside-hog"
    "receiver-beside-hogs"
    "timer"
    "timer-same-group"
    "timer-other-group"
    "idle-class"
    "wake-chain"
    "woken-beside-idle"
    "quota"
    "quota-sleepers"
    "thaw"
    "pinned-and-floating"
    "timers-at-half-load"
    "short-beside-long"
    "changes"
    "replaced"
    "idle-domain"
    "behind-pinned"
    "affinity-widened"
    "three-and-two"
    "smt"
    "fragments-at-home"
    "chat-rooms"
    "ping-pong"
    "hotplug"
    "group-moves"
    "real-time-hog"
    "softirqs"
    "fork-storm"
    "lying-hints"
    "ten-thousand"
};

/// The laws called `names`, or all that come with WarmQ; each with its text.
///
/// # Errors
/// No such law; what is wrong with its file.
pub fn find(names: &[String]) -> Result<Vec<(Law, String)>, Failure> {
    let all = || {
        LAWS.iter()
            .map(|(name, text)| read(name, &format!("{name}.toml"), text))
    };
    match names {
        [] => all().collect(),
        names => names.iter().map(|name| one(name)).collect(),
    }
}

fn one(name: &str) -> Result<(Law, String), Failure> {
    if let Some((name, text)) = LAWS.iter().find(|(shipped, _)| *shipped == name) {
        return read(name, &format!("{name}.toml"), text);
    }
    let path = Path::new(name);
    if path.extension().is_none_or(|ending| ending != "toml") {
        let known = LAWS.iter().map(|(name, _)| *name);
        let help = warmq_config::did_you_mean(name, known);
        return Err(Failure::usage(format!("no law is called {name}"), help));
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::usage(format!("{name}: cannot read it: {error}"), ""))?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    read(&stem, name, &text)
}

fn read(name: &str, file: &str, text: &str) -> Result<(Law, String), Failure> {
    let law = Law::read(name, file, text).map_err(|problems| Failure::Problems(vec![problems]))?;
    Ok((law, text.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use warmq_law::Family;

    use super::super::matrix::asked;
    use super::*;

    fn here(path: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
    }

    #[test]
    fn every_file_in_the_folder_of_laws_is_shipped_in_the_order_of_the_matrix() {
        let folder = std::fs::read_dir(here("laws")).expect("the folder");
        let mut files: Vec<_> = folder.map(|it| it.expect("an entry").file_name()).collect();
        files.sort();
        let laws = find(&[]).expect("laws");
        assert!(laws.is_sorted_by_key(|(law, _)| law.family));
        let file = |(name, _): &(&str, &str)| std::ffi::OsString::from(format!("{name}.toml"));
        let mut names: Vec<_> = LAWS.iter().map(file).collect();
        names.sort();
        assert_eq!(files, names);
    }

    fn listed() -> String {
        let laws = find(&[]).expect("laws");
        let of_family = |(name, family): (&str, Family)| {
            let of = laws.iter().filter(|(law, _)| law.family == family);
            let lines = of.map(|(law, _)| {
                let bounds: Vec<String> = law.bounds.iter().map(asked).collect();
                let (name, says) = (&law.name, &law.says);
                let bounds = bounds.join("`, `");
                format!("- **{name}**: {says}. `{bounds}`. {}\n", law.because)
            });
            format!("### {name}\n\n{}\n", lines.collect::<String>())
        };
        Family::ALL.into_iter().map(of_family).collect()
    }

    /// The list is written anew where snapshots are.
    #[test]
    fn the_documentation_lists_every_law() {
        const END: &str = "<!-- end of laws -->";
        let file = here("docs/laws.md");
        let page = std::fs::read_to_string(&file).expect("the page");
        let (head, rest) = page.split_once("<!-- laws: ").expect("the list");
        let (mark, _) = rest.split_once("-->\n").expect("the list");
        let (_, tail) = rest.split_once(END).expect("the end of the list");
        let wanted = format!("{head}<!-- laws: {mark}-->\n\n{}{END}{tail}", listed());
        if std::env::var("INSTA_UPDATE").is_ok_and(|it| it == "always") {
            std::fs::write(&file, &wanted).expect("the page");
        }
        assert!(
            page == wanted,
            "docs/laws.md has another list; write it with INSTA_UPDATE=always"
        );
    }
}
