//! The experiments that come with WarmQ, inside the program: they work in any folder.

use warmq_config::texts;

/// An experiment that comes with WarmQ: its id, by which it can be named in place of a file, and
/// the text of its file.
pub type Shipped = (&'static str, &'static str);

/// The experiments of a paper.
#[derive(Debug)]
pub struct Paper {
    /// Its name, which is that of its folder in `experiments/`.
    pub name: &'static str,
    /// The title of a report of them.
    pub title: &'static str,
    /// What the paper is.
    pub subtitle: &'static str,
    /// The figures and tables of the paper first, in its order, then ours.
    pub experiments: &'static [Shipped],
    /// The ids of those that show what it is known for, within seconds.
    pub headlines: &'static [&'static str],
}

/// The paper on coloring.
pub const COLORING: Paper = Paper {
    name: "coloring",
    title: "Cache coloring of the run queue, reproduced",
    subtitle: "S. Yamamura, A. Hirai, M. Sato, M. Yamamoto, A. Naruse, K. Kumon: Speeding Up Kernel Scheduler by \
               Reducing Cache Misses (USENIX 2002). Published figures beside simulated ones.",
    experiments: texts! {
        "../../../experiments/coloring/":
        "fig1-bus-histogram"
        "fig3-processes"
        "table2-miss-ratio"
        "fig6-web-throughput"
        "fig7-bus-transactions"
        "fig8-colors"
        "table4-web-scaling"
        "table5-walk-misses"
        "table6-lock"
        "table7-chat-misses"
        "table8-chat-lock"
        "fig10-chat-scaling"
        "wrong-bits"
        "colored-mq"
        "alternatives"
        "schedulers"
        "too-many-colors"
    },
    headlines: &["table2-miss-ratio", "fig6-web-throughput", "fig8-colors"],
};

/// The thesis on starvation.
pub const STARVATION: Paper = Paper {
    name: "starvation",
    title: "Starvation by network receivers, reproduced",
    subtitle: "A. Al-Mane': Performance of CPU-bound processes in the presence of network I/O under Linux (KFUPM, \
               2009). Published figures beside simulated ones, and the thesis's future work.",
    experiments: texts! {
        "../../../experiments/starvation/":
        "itgrecv"
        "tcpdump"
        "ethereal"
        "dynamic-priority-off"
        "sleeps"
        "slices"
        "min-sleep"
        "min-sleep-network"
        "cfs-default"
        "two-receivers"
        "intel-nic"
        "cfs-granularity"
        "cfs-network"
        "smp-o1-hog"
        "smp-o1-min-sleep"
        "smp-cfs-granularity"
        "local-o1"
        "local-cfs"
        "local-o1-network"
        "local-cfs-network"
        "local-smp"
        "local-smp-cfs"
        "voip"
        "why-20ms"
        "groups"
        "clock-resolution"
        "modern-nic"
    },
    headlines: &["slices", "cfs-default"],
};

/// The paper on affinity by data.
pub const AFFINITY: Paper = Paper {
    name: "affinity",
    title: "Scheduling by data affinity",
    subtitle: "Tasks that use the same data run in the same place, one after another: the paper's online algorithm, \
               beside its published figures and on machines with many caches, and scx_warmq.",
    experiments: texts! {
        "../../../experiments/affinity/":
        "table1-chat" "table1-chat-20" "table2-chat-misses" "table3-fragments" "table4-iterations"
        "hackbench" "size-and-number" "too-big" "tradeoff" "wrong-hints" "inferred"
        "inferred-chat" "chiplets-chat" "chiplets-service" "chiplets-fragments" "first-look"
        "cache-aware"
    },
    headlines: &["table1-chat", "table3-fragments"],
};

/// No paper: the starvation that kernels of today have.
pub const TODAY: Paper = Paper {
    name: "today",
    title: "The starvation of Linux 6.13 to 7.0",
    subtitle: "A group whose tasks are woken often takes all of a CPU from another group, from 6.13 to 7.0: simulated, beside \
               what was measured in guests. And spin locks whose holders are preempted, a Kubernetes node, and fibers whose stacks share cache sets.",
    experiments: texts! {
        "../../../experiments/today/":
        "other-group"
        "one-setting"
        "cures"
        "two-containers"
        "where"
        "spin-locks"
        "kubernetes-pods"
        "kubernetes-system"
        "kubernetes-cgroup-mode"
        "coloring-fibers"
        "coloring-too-many"
    },
    headlines: &["other-group", "cures"],
};

/// No paper: what a machine of 16 CPUs did.
pub const MANY_CPUS: Paper = Paper {
    name: "many-cpus",
    title: "A machine of 16 CPUs",
    subtitle: "What a quiet machine of 16 CPUs did, and what the lab says of it: its costs are found from experiments/costs, or assumed, so \
               that all of it is prediction.",
    experiments: texts! {
        "../../../experiments/many-cpus/":
        "ping-pong-16cpus"
        "schbench-16cpus"
        "chat-16cpus"
        "hackbench-pipe-16cpus"
        "hackbench-inet-16cpus"
        "hogs-and-naps-16cpus"
    },
    headlines: &["hackbench-pipe-16cpus"],
};

/// All papers.
pub const PAPERS: [&Paper; 5] = [&COLORING, &STARVATION, &AFFINITY, &TODAY, &MANY_CPUS];

/// Every experiment that there is.
pub fn all() -> impl Iterator<Item = Shipped> {
    PAPERS.iter().flat_map(|paper| paper.experiments).copied()
}

/// The experiment with this id.
pub fn find(id: &str) -> Option<Shipped> {
    all().find(|(known, _)| *known == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_of_the_repository_is_shipped_once() {
        for paper in PAPERS {
            assert_eq!(files(paper.name), sorted(paper.experiments));
        }
        let ids: std::collections::BTreeSet<&str> = all().map(|(id, _)| id).collect();
        assert_eq!(all().count(), ids.len(), "two have the same name");
        let headlines = PAPERS.iter().flat_map(|paper| paper.headlines);
        assert!(headlines.copied().all(|id| ids.contains(id)));
    }

    fn sorted(shipped: &[Shipped]) -> Vec<String> {
        let ids = shipped.iter().map(|(id, _)| (*id).to_owned());
        let mut ids: Vec<String> = ids.collect();
        ids.sort();
        ids
    }

    fn files(folder: &str) -> Vec<String> {
        let folder = format!("{}/../../experiments/{folder}", env!("CARGO_MANIFEST_DIR"));
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
            .collect();
        files.sort();
        files
    }
}
