//! The experiments that come with WarmQ, inside the program: they work in any folder.

/// An experiment that comes with WarmQ.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// Its id, by which it can be named in place of a file.
    pub id: &'static str,
    /// The text of its file.
    pub text: &'static str,
}

macro_rules! shipped {
    ($folder:literal: $($id:literal),* $(,)?) => {
        &[$(Shipped {
            id: $id,
            text: include_str!(concat!("../../experiments/", $folder, "/", $id, ".toml")),
        }),*]
    };
}

/// The paper on coloring: its figures and tables first, in its order, then ours.
pub const COLORING: &[Shipped] = shipped![
    "coloring":
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
    "alternatives",
    "schedulers",
    "too-many-colors",
];

/// The paper on affinity by data: first looks so far, none of its figures.
pub const AFFINITY: &[Shipped] = shipped!["affinity": "first-look"];

/// Every experiment that there is.
pub fn all() -> impl Iterator<Item = Shipped> {
    COLORING.iter().chain(AFFINITY).copied()
}

/// The experiment with this id.
pub fn find(id: &str) -> Option<Shipped> {
    all().find(|shipped| shipped.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_of_the_repository_is_shipped_once() {
        for (folder, shipped) in [("coloring", COLORING), ("affinity", AFFINITY)] {
            assert_eq!(files(folder), sorted(shipped));
        }
        assert_eq!(
            all().count(),
            sorted(COLORING).len() + sorted(AFFINITY).len()
        );
    }

    fn sorted(shipped: &[Shipped]) -> Vec<String> {
        let mut ids: Vec<String> = shipped.iter().map(|it| it.id.to_owned()).collect();
        ids.sort();
        ids
    }

    fn files(folder: &str) -> Vec<String> {
        let folder = format!("{}/../experiments/{folder}", env!("CARGO_MANIFEST_DIR"));
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
            .collect();
        files.sort();
        files
    }
}
