//! Laws by name and by file; and scenarios that are compared like them.

use std::collections::BTreeSet;
use std::path::Path;

use warmq_config::read_text;
use warmq_experiment::check_figures;
use warmq_experiment::laws::{LAWS, all_shipped, shipped};
use warmq_law::{Found, Law};
use warmq_play::{Entry, workloads};
use warmq_scenario::Scenario;

use crate::failure::Failure;
use crate::kind::Kind;
use crate::nearby;

/// CPUs on which a scenario is compared: a guest of one counts instructions, a guest of two is
/// played by the clock.
const CPUS: [u16; 2] = [1, 2];

/// Whether the text of a law or scenario came with WarmQ.
pub fn is_shipped(text: &str) -> bool {
    let scenarios = workloads().iter().filter_map(Entry::text);
    LAWS.iter().any(|(_, shipped)| *shipped == text)
        || scenarios.into_iter().any(|(_, shipped)| shipped == text)
}

/// The laws called `names`, or all that come with WarmQ.
///
/// # Errors
/// No such law; what is wrong with its file; two of one name.
pub fn find(names: &[String]) -> Result<Vec<Found>, Failure> {
    let found: Result<Vec<_>, _> = names.iter().map(|name| one(name, &[])).collect();
    match names {
        [] => Ok(all_shipped()?),
        _ => unlike(found?),
    }
}

/// Cells and files are known by the names of their laws, and so are figures.
fn unlike(laws: Vec<Found>) -> Result<Vec<Found>, Failure> {
    let mut scenarios = laws.iter().map(|found| &found.law.scenario);
    scenarios.try_for_each(check_figures)?;
    let mut names = BTreeSet::new();
    let twice = laws.iter().find(|found| !names.insert(&found.law.name));
    match twice {
        Some(twice) => Err(Failure::usage(
            format!("two of the laws are called {}", twice.law.name),
            "judge one at a time, or rename a file",
        )),
        None => Ok(laws),
    }
}

/// For a comparison: the laws and scenarios called `names`, or all that come with WarmQ.
///
/// # Errors
/// No such law or scenario; what is wrong with its file; two of one name.
pub fn find_alike(names: &[String]) -> Result<Vec<Found>, Failure> {
    let scenarios: Vec<_> = workloads().iter().flat_map(scenarios_of).collect();
    if names.is_empty() {
        return Ok(find(names)?.into_iter().chain(scenarios).collect());
    }
    let known = scenarios.iter().map(|found| found.law.name.as_str());
    let known: Vec<&str> = known.collect();
    let named = names.iter().map(|name| {
        if let Some(place) = known.iter().position(|known| known == name) {
            return Ok(vec![scenarios[place].clone()]);
        }
        let of_file = of_file(name)?;
        match of_file.is_empty() {
            true => Ok(vec![one(name, &known)?]),
            false => Ok(of_file),
        }
    });
    let named = named.collect::<Result<Vec<_>, Failure>>()?;
    unlike(named.into_iter().flatten().collect())
}

/// A scenario that comes with WarmQ, on each number of CPUs: `schbench-1cpu`, `schbench-2cpus`.
fn scenarios_of(entry: &Entry) -> Vec<Found> {
    match (entry.scenario(), entry.text()) {
        (Some(scenario), Some((_, text))) => on_cpus(&entry.name, scenario)
            .map(|law| Found {
                argument: law.name.clone(),
                law,
                text: text.to_owned(),
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// The scenario in the file `name`, on each number of CPUs; nothing if it is of another kind, or no
/// file.
fn of_file(name: &str) -> Result<Vec<Found>, Failure> {
    let is_one = matches!(Kind::of(name), Some(Kind::Scenario | Kind::Experiment));
    let Some(text) = is_one.then(|| read_text(name).ok()).flatten() else {
        return Ok(Vec::new());
    };
    let scenario = Scenario::read_any(name, &text)?;
    let found = |law| Found {
        law,
        text: text.clone(),
        argument: name.to_owned(),
    };
    Ok(on_cpus(&stem(name), &scenario).map(found).collect())
}

fn on_cpus(name: &str, scenario: &Scenario) -> impl Iterator<Item = Law> {
    CPUS.into_iter().map(move |cpus| {
        let plural = if cpus == 1 { "" } else { "s" };
        Law::compared(&format!("{name}-{cpus}cpu{plural}"), scenario, cpus)
    })
}

/// The law called `name`; `others` may be meant, too.
fn one(name: &str, others: &[&str]) -> Result<Found, Failure> {
    if let Some(law) = shipped(name) {
        return Ok(law?);
    }
    if let Some(elsewhere) = Kind::of(name).and_then(|kind| kind.not_played(name)) {
        return Err(elsewhere);
    }
    let path = Path::new(name);
    if path.extension().is_none_or(|ending| ending != "toml") {
        let known = LAWS.iter().map(|(name, _)| *name);
        let help = warmq_config::did_you_mean(name, known.chain(others.iter().copied()));
        return Err(Failure::usage(format!("no law is called {name}"), help));
    }
    let text = read_text(path).map_err(|error| {
        Failure::usage(
            format!("{name}: cannot read it: {error}"),
            nearby::or(path, ""),
        )
    })?;
    Ok(Found::read(&stem(name), name, name, &text)?)
}

fn stem(path: &str) -> String {
    let stem = Path::new(path).file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use warmq_law::Family;
    use warmq_law::shown::asked;

    use super::*;

    fn here(path: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
    }

    #[test]
    fn figures_of_what_comes_with_warmq_have_names_of_their_own() {
        for Found { law, .. } in find_alike(&[]).unwrap() {
            check_figures(&law.scenario).unwrap_or_else(|problems| panic!("{problems}"));
        }
    }

    #[test]
    fn every_file_in_the_folder_of_laws_is_shipped_in_the_order_of_the_matrix() {
        let folder = std::fs::read_dir(here("laws")).expect("the folder");
        let mut files: Vec<_> = folder
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        files.sort();
        let laws = find(&[]).expect("laws");
        assert!(laws.is_sorted_by_key(|found| found.law.family));
        let file = |(name, _): &(&str, &str)| std::ffi::OsString::from(format!("{name}.toml"));
        let mut names: Vec<_> = LAWS.iter().map(file).collect();
        names.sort();
        assert_eq!(files, names);
    }

    #[test]
    fn for_a_comparison_scenarios_are_found_on_one_and_on_two_cpus() {
        let names = |found: Vec<Found>| -> Vec<String> {
            found.into_iter().map(|found| found.law.name).collect()
        };
        let all = names(find_alike(&[]).unwrap());
        let scenarios = workloads()
            .iter()
            .filter(|workload| workload.scenario().is_some());
        assert_eq!(all.len(), LAWS.len() + 2 * scenarios.count());
        let some = ["nice".to_owned(), "chat-2cpus".to_owned()];
        assert_eq!(names(find_alike(&some).unwrap()), some);
        let mut file = tempfile::Builder::new();
        let file = file.prefix("mine").suffix(".toml").tempfile().unwrap();
        std::fs::write(file.path(), "[task.hog]\nbody = [{ run = \"1ms\" }]\n").unwrap();
        let found = find_alike(&[file.path().to_string_lossy().into_owned()]).unwrap();
        let cpus: Vec<u16> = found.iter().map(|found| found.law.cpus).collect();
        assert_eq!(cpus, [1, 2]);
        let law = found[0].law.name.clone();
        assert!(law.starts_with("mine") && law.ends_with("-1cpu"), "{law}");
        let path = file.path().to_string_lossy().into_owned();
        assert!(
            find_alike(&[path.clone(), path]).is_err(),
            "two of one name"
        );
        assert!(find(&["nice".to_owned(), "nice".to_owned()]).is_err());
        let error = find_alike(&["hackbnch-2cpus".to_owned()]).unwrap_err();
        let error = format!("{error:?}");
        assert!(error.contains("hackbench-2cpus"), "{error}");
    }

    /// An item of a list: lines of at most 100 columns (common/units/tests/tidy/pages.rs).
    fn item(words: &[String]) -> String {
        let (mut item, mut width) = ("-".to_owned(), 1);
        for word in words {
            let length = word.chars().count();
            let fits = width + 1 + length <= 100;
            item += if fits { " " } else { "\n  " };
            width = length + if fits { width + 1 } else { 2 };
            item += word;
        }
        item + "\n"
    }

    fn listed() -> String {
        let laws = find(&[]).expect("laws");
        let of_family = |(name, family): (&str, Family)| {
            let of = laws
                .iter()
                .map(|found| &found.law)
                .filter(|law| law.family == family);
            let lines = of.map(|law| {
                let mut words = vec![format!("**{}**:", law.name)];
                words.extend(format!("{}.", law.says).split(' ').map(str::to_owned));
                let bounds = law
                    .bounds
                    .iter()
                    .map(|bound| format!("`{}`,", asked(bound)));
                words.extend(bounds);
                let last = words.last_mut().expect("the name");
                last.replace_range(last.len() - 1.., ".");
                words.extend(law.because.split(' ').map(str::to_owned));
                item(&words)
            });
            format!("### {name}\n\n{}\n", lines.collect::<String>())
        };
        Family::of_laws().iter().copied().map(of_family).collect()
    }

    /// The list is written anew where snapshots are.
    #[test]
    fn the_documentation_lists_every_law() {
        const END: &str = "<!-- end of laws -->";
        let file = here("docs/laws/list.md");
        let page = std::fs::read_to_string(&file).expect("the page");
        let (head, rest) = page.split_once("<!-- laws: ").expect("the list");
        let (mark, _) = rest.split_once("-->\n").expect("the list");
        let (_, tail) = rest.split_once(END).expect("the end of the list");
        let wanted = format!("{head}<!-- laws: {mark}-->\n\n{}{END}{tail}", listed());
        if std::env::var("INSTA_UPDATE").is_ok_and(|value| value == "always") {
            std::fs::write(&file, &wanted).expect("the page");
        }
        assert!(
            page == wanted,
            "docs/laws/list.md has another list; write it with INSTA_UPDATE=always"
        );
    }
}
