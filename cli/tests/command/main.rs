//! The command as people and scripts meet it.

mod chat;
mod fragments;
mod help;
mod lists;
mod refusals;
mod results;
mod shell;
mod simplex;
mod support;
mod vm;
mod walk;
