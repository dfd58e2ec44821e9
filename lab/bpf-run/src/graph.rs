//! Objects that programs allocate (`bpf_obj_new`), and the lists and trees that link them.
//!
//! What is in a list or a tree is kept here, in order; `struct bpf_list_head` and `struct
//! bpf_rb_root` only have the addresses that name them.

use std::collections::{BTreeMap, VecDeque};

use crate::ending::Ending;
use crate::guest::Guest;
use crate::maps::error;

const EINVAL: i64 = 22;

/// An object, and how many own it.
#[derive(Clone, Copy, Debug)]
struct Object {
    size: u64,
    owners: u32,
}

/// All objects, lists and trees.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    objects: BTreeMap<u64, Object>,
    /// Nodes in order, by the address of their list or tree.
    nodes: BTreeMap<u64, VecDeque<u64>>,
}

/// What a program does with objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    New,
    Drop,
    Acquire,
    PushFront,
    PushBack,
    PopFront,
    PopBack,
    First,
    Last,
    Remove,
}

/// Kfuncs by their names; `bpf_rbtree_add` calls the program back. Those with `_impl` take what the
/// verifier adds, and behave alike.
pub(crate) const KFUNCS: &[(&str, Link)] = &[
    ("bpf_obj_new", Link::New),
    ("bpf_obj_new_impl", Link::New),
    ("bpf_obj_drop", Link::Drop),
    ("bpf_obj_drop_impl", Link::Drop),
    ("bpf_refcount_acquire", Link::Acquire),
    ("bpf_refcount_acquire_impl", Link::Acquire),
    ("bpf_list_push_front", Link::PushFront),
    ("bpf_list_push_front_impl", Link::PushFront),
    ("bpf_list_push_back", Link::PushBack),
    ("bpf_list_push_back_impl", Link::PushBack),
    ("bpf_list_pop_front", Link::PopFront),
    ("bpf_list_pop_back", Link::PopBack),
    ("bpf_list_front", Link::First),
    ("bpf_list_back", Link::Last),
    ("bpf_rbtree_first", Link::First),
    ("bpf_rbtree_remove", Link::Remove),
];

pub(crate) fn run(link: Link, [a, b, ..]: [u64; 5], guest: &mut Guest) -> Result<u64, Ending> {
    match link {
        Link::New => new(guest, a),
        Link::Drop => drop_one(guest, a),
        Link::Acquire => acquire(guest, a),
        Link::PushFront | Link::PushBack if guest.graph.has(b) => Ok(error(EINVAL)),
        Link::PushFront => Ok(guest.graph.insert(a, b, 0)),
        Link::PushBack => Ok(guest.graph.insert(a, b, usize::MAX)),
        Link::PopFront => Ok(guest.graph.list(a).pop_front().unwrap_or(0)),
        Link::PopBack => Ok(guest.graph.list(a).pop_back().unwrap_or(0)),
        Link::First => Ok(guest.graph.list(a).front().copied().unwrap_or(0)),
        Link::Last => Ok(guest.graph.list(a).back().copied().unwrap_or(0)),
        Link::Remove => Ok(guest.graph.remove(a, b)),
    }
}

impl Graph {
    fn list(&mut self, head: u64) -> &mut VecDeque<u64> {
        self.nodes.entry(head).or_default()
    }

    /// Whether a node is in a list or a tree.
    pub(crate) fn has(&self, node: u64) -> bool {
        self.nodes.values().any(|nodes| nodes.contains(&node))
    }

    pub(crate) fn len(&self, head: u64) -> usize {
        self.nodes.get(&head).map_or(0, VecDeque::len)
    }

    pub(crate) fn node(&self, head: u64, at: usize) -> u64 {
        let nodes = self.nodes.get(&head);
        nodes.and_then(|nodes| nodes.get(at)).copied().unwrap_or(0)
    }

    /// Puts a node at a place, or the end.
    pub(crate) fn insert(&mut self, head: u64, node: u64, at: usize) -> u64 {
        let nodes = self.list(head);
        nodes.insert(at.min(nodes.len()), node);
        0
    }

    fn remove(&mut self, head: u64, node: u64) -> u64 {
        let nodes = self.list(head);
        let at = nodes.iter().position(|one| *one == node);
        at.and_then(|at| nodes.remove(at)).unwrap_or(0)
    }
}

/// `bpf_obj_new_impl(type, meta)`: an object of one of the program's own types, all 0; or null.
fn new(guest: &mut Guest, of: u64) -> Result<u64, Ending> {
    let size = guest.image.type_size(of as u32);
    let Ok(address) = guest.memory.allocate(size) else {
        return Ok(0);
    };
    guest
        .graph
        .objects
        .insert(address, Object { size, owners: 1 });
    Ok(address)
}

fn object<'g>(guest: &'g mut Guest, call: &'static str, at: u64) -> Result<&'g mut Object, Ending> {
    let wrong = Ending::Argument {
        call,
        address: at,
        wanted: "object of its own",
    };
    guest.graph.objects.get_mut(&at).ok_or(wrong)
}

fn acquire(guest: &mut Guest, address: u64) -> Result<u64, Ending> {
    let object = object(guest, "bpf_refcount_acquire", address)?;
    object.owners = object.owners.saturating_add(1);
    Ok(address)
}

fn drop_one(guest: &mut Guest, address: u64) -> Result<u64, Ending> {
    let object = object(guest, "bpf_obj_drop", address)?;
    object.owners -= 1;
    let (size, left) = (object.size, object.owners);
    if left == 0 {
        guest.graph.objects.remove(&address);
        guest.memory.free(address, size);
    }
    Ok(0)
}
