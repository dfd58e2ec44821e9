//! The workloads that come with WarmQ.

use std::sync::LazyLock;

use crate::{Entry, Source, web};

const SCENARIOS: &[(&str, &str)] = warmq_config::texts! {
    "../../../scenarios/":
    "chat" "chat-cloned" "spin" "hog" "hogs-and-naps" "periodic" "deadline" "ping-pong" "pgbench" "hackbench" "schbench" "service" "simplex" "simplex-here" "simplex-on-two" "starvation" "two-users" "receiver" "containers" "kubernetes" "fragments" "rounds" "passes" "fibers" "build" "desktop"
};

static WORKLOADS: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let web = Entry {
        name: "web".to_owned(),
        what: "WebBench clients in a closed loop against a process-per-connection web server"
            .to_owned(),
        work: "requests".to_owned(),
        source: Source::Program {
            settings: web::settings,
            build: |chosen, counters| Box::new(web::Web::new(chosen, counters)),
        },
    };
    let scenarios = SCENARIOS.iter().map(|(name, text)| {
        let entry = Entry::of_scenario(name, &format!("{name}.toml"), text);
        entry.expect("shipped scenarios are tested")
    });
    std::iter::once(web).chain(scenarios).collect()
});

/// Every workload, in the order in which they are listed.
pub fn workloads() -> &'static [Entry] {
    &WORKLOADS
}

/// The workload called `name`.
pub fn workload(name: &str) -> Option<&'static Entry> {
    workloads().iter().find(|entry| entry.name == name)
}
