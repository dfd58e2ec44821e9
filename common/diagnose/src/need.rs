//! What verdicts need of a recording: what it lacks, no verdict may rest on.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::Kind;
use crate::rules::RULES;
use crate::words::list;

macro_rules! needs {
    ($($(#[$of:meta])* $name:ident: $shown:literal,)*) => {
        /// Something that a recording has or lacks.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Need {
            $($(#[$of])* $name,)*
        }

        impl Need {
            /// All of them.
            pub const ALL: &[Need] = &[$(Need::$name,)*];

            /// What it is called in files.
            pub fn name(self) -> &'static str {
                match self {
                    $(Need::$name => stringify!($name),)*
                }
            }

            /// The one of this name.
            pub fn named(name: &str) -> Option<Need> {
                Need::ALL.iter().copied().find(|need| need.name() == name)
            }

            /// What people call it.
            pub fn shown(self) -> &'static str {
                match self {
                    $(Need::$name => $shown,)*
                }
            }
        }
    };
}

needs! {
    /// Who leaves a CPU, and who comes.
    Switches: "switches",
    /// When tasks become runnable, and by whom.
    Wakeups: "wakeups",
    /// In which cgroup or session tasks are.
    Groups: "groups",
    /// What groups weigh.
    GroupWeights: "weights of groups",
    /// Nice values.
    Weights: "nice values",
    /// Real-time and other policies.
    Policies: "policies",
    /// Which CPUs tasks may use.
    Affinities: "affinities",
    /// What kernels count of quotas.
    Quotas: "quotas",
    /// When interrupts and softirqs begin and end.
    Interrupts: "interrupts",
    /// What a hypervisor took away.
    Steal: "time that a hypervisor took",
    /// Which CPUs share a cache.
    Caches: "caches",
    /// Whether the thread that ran wakes somebody, or an interrupt of it does.
    Contexts: "contexts of wakeups (who woke)",
}

/// Verdicts that cannot be given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotGiven {
    /// The kind.
    pub kind: Kind,
    /// What the recording lacks that it needs.
    pub lacks: Vec<Need>,
}

/// The verdicts that cannot be given of a recording that lacks all of `lacks`.
pub(crate) fn not_given(lacks: &BTreeSet<Need>) -> Vec<NotGiven> {
    let all = RULES.iter().map(|rule| {
        let needs = rule.needs.iter().copied();
        NotGiven {
            kind: rule.kind,
            lacks: needs.filter(|need| lacks.contains(need)).collect(),
        }
    });
    all.filter(|not| !not.lacks.is_empty()).collect()
}

/// The same as a sentence; none: all can be given.
pub(crate) fn sentence(not_given: &[NotGiven]) -> Option<String> {
    let kinds: Vec<String> = not_given
        .iter()
        .map(|not| not.kind.name().to_owned())
        .collect();
    let lacks: BTreeSet<Need> = not_given
        .iter()
        .flat_map(|not| &not.lacks)
        .copied()
        .collect();
    let lacks: Vec<String> = lacks.iter().map(|need| need.shown().to_owned()).collect();
    (!kinds.is_empty()).then(|| {
        format!(
            "The recording has no {}: these verdicts cannot be given: {}.",
            list(&lacks, lacks.len()),
            list(&kinds, kinds.len())
        )
    })
}
