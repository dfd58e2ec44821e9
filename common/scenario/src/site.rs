//! The machine that a scenario is bound to, as far as its numbers may depend on it.

/// How many there are of what on the machine that plays a scenario.
///
/// The default (four CPUs of one socket) stands in where no machine is known: when a scenario is
/// read and checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// CPUs that are online.
    pub cpus: u64,
    /// Last-level caches.
    pub llcs: u64,
    /// Memory nodes.
    pub nodes: u64,
    /// Sockets.
    pub sockets: u64,
    /// Cores; CPUs of one core are its SMT siblings.
    pub cores: u64,
}

impl Default for Site {
    fn default() -> Site {
        Site {
            cpus: 4,
            llcs: 1,
            nodes: 1,
            sockets: 1,
            cores: 4,
        }
    }
}

/// A part of a machine that can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    Cpu,
    Llc,
    Node,
    Socket,
    Core,
}

impl Resource {
    /// Each with the word for one (`2 per llc`) and the name of their number (`llcs`).
    pub(crate) const ALL: [(Resource, &'static str, &'static str); 5] = [
        (Resource::Cpu, "cpu", "cpus"),
        (Resource::Llc, "llc", "llcs"),
        (Resource::Node, "node", "nodes"),
        (Resource::Socket, "socket", "sockets"),
        (Resource::Core, "core", "cores"),
    ];

    /// The resource whose number is called `name`: `cpus`.
    pub(crate) fn of_number(name: &str) -> Option<Resource> {
        let found = Resource::ALL.iter().find(|(.., number)| *number == name);
        found.map(|(resource, ..)| *resource)
    }

    /// The resource of which one is called `word`: `cpu`.
    pub(crate) fn of_word(word: &str) -> Option<Resource> {
        let found = Resource::ALL.iter().find(|(_, one, _)| *one == word);
        found.map(|(resource, ..)| *resource)
    }
}

impl Site {
    /// How many there are of `resource`.
    pub(crate) fn number(&self, resource: Resource) -> u64 {
        match resource {
            Resource::Cpu => self.cpus,
            Resource::Llc => self.llcs,
            Resource::Node => self.nodes,
            Resource::Socket => self.sockets,
            Resource::Core => self.cores,
        }
    }
}
