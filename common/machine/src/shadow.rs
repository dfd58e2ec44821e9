//! Why a line missed: a fully associative LRU shadow of each cache, and a record of the lines that
//! it held before (Hill's three causes, and coherence as the fourth).

use crate::cache::Line;
use crate::counts::MissKind;
use crate::sparse::Sparse;

/// The line was in the cache at some time.
const SEEN: u32 = 1 << 31;
/// Another CPU's write invalidated it, and it has not come back.
const LOST: u32 = 1 << 30;
/// The rest: the node of the line plus one, 0 if the shadow does not hold it.
const NODE: u32 = LOST - 1;
/// No node.
const NONE: u32 = u32::MAX;

/// A fully associative LRU cache of the same capacity, which sees the same accesses and the same
/// invalidations.
///
/// Invariant: at most `capacity` nodes, in a list from the newest to the oldest; a node's line
/// names that node in `notes`. It follows that the shadow of a cache which is itself fully
/// associative with LRU holds the same lines.
pub(crate) struct Shadow {
    notes: Sparse<u32>,
    nodes: Vec<Node>,
    capacity: usize,
    newest: u32,
    oldest: u32,
    free: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Node {
    line: Line,
    newer: u32,
    older: u32,
}

impl Shadow {
    pub(crate) fn new(capacity: usize) -> Shadow {
        Shadow {
            notes: Sparse::new(1),
            nodes: Vec::new(),
            capacity,
            newest: NONE,
            oldest: NONE,
            free: Vec::new(),
        }
    }

    /// Why `line`, which is not in the cache, is not.
    pub(crate) fn why_missing(&self, line: Line) -> MissKind {
        let note = self.notes.get(line).first().copied().unwrap_or(0);
        if note & SEEN == 0 {
            MissKind::Cold
        } else if note & LOST != 0 {
            MissKind::Coherence
        } else if note & NODE != 0 {
            MissKind::Conflict
        } else {
            MissKind::Capacity
        }
    }

    /// The cache used `line`, or took it in.
    pub(crate) fn use_line(&mut self, line: Line) {
        let note = self.notes.get_mut(line)[0];
        let node = match note & NODE {
            0 => self.take_node(line),
            node => {
                self.unlink(node - 1);
                node - 1
            }
        };
        self.link_newest(node);
        self.notes.get_mut(line)[0] = SEEN | (node + 1);
    }

    /// The cache lost `line`: to another CPU's write, or because an inclusive cache behind it
    /// evicted the line.
    pub(crate) fn remove(&mut self, line: Line, for_a_write: bool) {
        let note = &mut self.notes.get_mut(line)[0];
        let node = *note & NODE;
        *note &= SEEN | LOST;
        if for_a_write {
            *note |= LOST;
        }
        if node != 0 {
            self.unlink(node - 1);
            self.free.push(node - 1);
        }
    }

    /// A free node, or that of the oldest line if none is free.
    fn take_node(&mut self, line: Line) -> u32 {
        if let Some(node) = self.free.pop() {
            self.nodes[node as usize].line = line;
            return node;
        }
        if self.nodes.len() < self.capacity {
            self.nodes.push(Node {
                line,
                newer: NONE,
                older: NONE,
            });
            return self.nodes.len() as u32 - 1;
        }
        let node = self.oldest;
        self.unlink(node);
        let left = std::mem::replace(&mut self.nodes[node as usize].line, line);
        self.notes.get_mut(left)[0] &= SEEN | LOST;
        node
    }

    fn unlink(&mut self, node: u32) {
        let Node { newer, older, .. } = self.nodes[node as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.nodes[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.nodes[older as usize].newer = newer,
        }
    }

    fn link_newest(&mut self, node: u32) {
        let older = std::mem::replace(&mut self.newest, node);
        self.nodes[node as usize].newer = NONE;
        self.nodes[node as usize].older = older;
        match older {
            NONE => self.oldest = node,
            older => self.nodes[older as usize].newer = node,
        }
    }
}
