//! Schedulers with races, and without: what is found, and what is said of it.

mod custody;
mod order;
mod small;
mod stage;
mod warmq;
