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

/// The experiment with this id.
pub fn find(id: &str) -> Option<Shipped> {
    COLORING.iter().copied().find(|shipped| shipped.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_of_the_repository_is_shipped_once() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../experiments/coloring");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
            .collect();
        let mut shipped: Vec<String> = COLORING.iter().map(|it| it.id.to_owned()).collect();
        files.sort();
        shipped.sort();
        assert_eq!(files, shipped);
    }
}
