//! The experiments of this repository, read and run with made-up figures.

use std::path::{Path, PathBuf};

use warmq_experiment::{Engine, Experiment, Finding, Options};

use crate::fake;

/// The papers, by the names of their folders.
const PAPERS: [&str; 3] = ["affinity", "coloring", "starvation"];

fn files() -> Vec<PathBuf> {
    let experiments = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let mut files: Vec<PathBuf> = PAPERS
        .iter()
        .flat_map(|paper| std::fs::read_dir(experiments.join(paper)).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

fn shipped() -> Vec<Experiment> {
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        Experiment::read(&path.to_string_lossy(), &text, &Engine::default())
            .unwrap_or_else(|problems| panic!("{problems}"))
    };
    files().iter().map(read).collect()
}

fn named(name: &str) -> Experiment {
    shipped()
        .into_iter()
        .find(|experiment| experiment.id == name)
        .unwrap()
}

#[test]
fn every_shipped_experiment_is_read_without_a_problem() {
    let ids: Vec<String> = shipped()
        .into_iter()
        .map(|experiment| experiment.id)
        .collect();
    let wanted = [
        "fig1-bus-histogram",
        "fig3-processes",
        "table2-miss-ratio",
        "fig6-web-throughput",
        "fig7-bus-transactions",
        "fig8-colors",
        "table4-web-scaling",
        "table5-walk-misses",
        "table6-lock",
        "table7-chat-misses",
        "table8-chat-lock",
        "fig10-chat-scaling",
        "wrong-bits",
        "colored-mq",
        "schedulers",
        "too-many-colors",
        "first-look",
    ];
    for id in wanted {
        assert!(ids.iter().any(|other| other == id), "{id} is not shipped");
    }
}

#[test]
fn every_shipped_experiment_claims_and_draws_something_and_is_thinner_when_quick() {
    for experiment in shipped() {
        assert!(
            !experiment.claims.is_empty() && !experiment.plots.is_empty(),
            "{}",
            experiment.id
        );
        assert!(!experiment.about.is_empty() && PAPERS.contains(&&*experiment.paper));
        let quick = Options {
            quick: true,
            ..Options::default()
        };
        let jobs = |options| experiment.jobs(options).len();
        assert!(
            jobs(&quick) < jobs(&Options::default()),
            "{}",
            experiment.id
        );
    }
}

#[test]
fn a_quick_run_of_a_shipped_experiment_still_checks_a_claim() {
    for experiment in shipped() {
        let (_, outcome) = fake::run(
            &experiment,
            &Options {
                quick: true,
                ..Options::default()
            },
        );
        let checked = outcome
            .claims
            .iter()
            .filter(|claim| claim.finding != Finding::NotChecked);
        assert!(checked.count() > 0, "{}", experiment.id);
    }
}

#[test]
fn every_row_of_a_shipped_experiment_fits_a_report() {
    for experiment in shipped() {
        let options = Options {
            quick: true,
            ..Options::default()
        };
        let (runs, outcome) = fake::run(&experiment, &options);
        let section = experiment.section(&options, &runs, &outcome, "warmq run");
        assert!(
            !section.rows.is_empty() && !section.plots.is_empty(),
            "{}",
            experiment.id
        );
        for plot in &section.plots {
            assert!(plot.series.len() <= 8, "{}: {}", experiment.id, plot.title);
        }
    }
}

#[test]
fn tables_4_and_5_share_their_runs() {
    let options = Options::default();
    let plans = |name: &str| -> Vec<_> {
        named(name)
            .jobs(&options)
            .into_iter()
            .map(|job| job.plan)
            .collect()
    };
    let table4 = plans("table4-web-scaling");
    for plan in plans("table5-walk-misses") {
        assert!(table4.contains(&plan), "{plan}");
    }
    // Lockmeter is in table 6's kernel only.
    for plan in plans("table6-lock") {
        assert!(!table4.contains(&plan), "{plan}");
    }
}

#[test]
fn the_published_figures_are_those_of_the_paper() {
    let count = |name: &str| named(name).published.len();
    let counts = [
        ("table2-miss-ratio", 6),
        ("table4-web-scaling", 4),
        ("table5-walk-misses", 16),
        ("table6-lock", 42),
        ("fig8-colors", 6),
        ("fig6-web-throughput", 2),
        ("fig7-bus-transactions", 2),
        ("table7-chat-misses", 0),
        ("table8-chat-lock", 0),
        ("fig10-chat-scaling", 1),
    ];
    for (name, figures) in counts {
        assert_eq!(count(name), figures, "{name}");
    }
}
