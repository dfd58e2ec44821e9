//! `warmq`: the door to the laboratory and to the real thing.
fn main() {}
