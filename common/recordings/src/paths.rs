//! Groups (cgroups) by their paths.

use std::collections::{BTreeMap, VecDeque};

use warmq_trace::Context;
use warmq_units::CpuId;

use crate::event::{Event, Item, Name, Said, What};

/// No path is longer (`PATH_MAX`), in bytes.
const LONGEST: usize = 4096;

/// The numbers of groups, by their paths; 0 is the root.
#[derive(Clone, Debug, Default)]
pub(crate) struct Paths {
    numbers: BTreeMap<String, u32>,
}

impl Paths {
    /// The number of the group at `path`. What is said of new ones goes to `said` first.
    pub fn number(&mut self, path: &str, at: (u64, CpuId), said: &mut VecDeque<Said>) -> u32 {
        let path = path.trim_end_matches('/');
        if path.is_empty() || path.len() > LONGEST {
            return 0;
        }
        if let Some(number) = self.numbers.get(path) {
            return *number;
        }
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let parent = self.number(above, at, said);
        let group = self.numbers.len() as u32 + 1;
        self.numbers.insert(path.to_owned(), group);
        let what = What::Group {
            group,
            parent,
            name: Name::new(name.as_bytes()),
        };
        said.push_back(aside(at, what));
        group
    }
}

/// What is said of no thread that runs.
pub(crate) fn aside((ns, cpu): (u64, CpuId), what: What) -> Said {
    let event = Event {
        tid: None,
        context: Context::Unknown,
        what,
    };
    Said {
        ns,
        cpu,
        item: Item::Event(event),
    }
}
