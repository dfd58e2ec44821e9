//! Pieces of the document that a script becomes. Each stands where the script says it.

use warmq_config::{Entry, Node, NodeKind, Place};

fn node(place: &Place, kind: NodeKind) -> Node {
    let place = place.clone();
    Node { place, kind }
}

pub(super) fn text(place: &Place, text: impl Into<String>) -> Node {
    node(place, NodeKind::Text(text.into()))
}

pub(super) fn whole(place: &Place, number: i64) -> Node {
    node(place, NodeKind::Integer(number))
}

pub(super) fn flag(place: &Place, flag: bool) -> Node {
    node(place, NodeKind::Bool(flag))
}

pub(super) fn list(place: &Place, nodes: Vec<Node>) -> Node {
    node(place, NodeKind::List(nodes))
}

pub(super) fn entry(key: &str, node: Node) -> Entry {
    Entry {
        key: key.to_owned(),
        place: node.place.clone(),
        node,
    }
}

pub(super) fn table(place: &Place, entries: Vec<Entry>) -> Node {
    node(place, NodeKind::Table(entries))
}

/// A time of so many microseconds.
pub(super) fn microseconds(place: &Place, count: i64) -> Node {
    text(place, format!("{count}us"))
}

/// A size of so many bytes.
pub(super) fn bytes(place: &Place, count: i64) -> Node {
    text(place, format!("{count}B"))
}

/// Steps that are done again and again, and never end.
pub(super) fn endless(place: &Place, steps: Vec<Node>) -> Node {
    let keys = vec![
        entry("repeat", whole(place, i64::MAX)),
        entry("body", list(place, steps)),
    ];
    table(place, keys)
}

/// A step of one verb.
pub(super) fn step(verb: &str, value: Node) -> Node {
    step_with(verb, value, Vec::new())
}

/// A step of a verb and other keys.
pub(super) fn step_with(verb: &str, value: Node, others: Vec<Entry>) -> Node {
    let place = value.place.clone();
    let mut entries = vec![entry(verb, value)];
    entries.extend(others);
    table(&place, entries)
}
