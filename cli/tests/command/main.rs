//! The command as people and scripts meet it.

mod again;
mod any_line;
mod bounds;
mod compare;
mod decisions;
mod diagnose;
mod help;
mod laws;
mod lists;
mod oracle;
mod planned;
mod refusals;
mod replay;
mod results;
mod scenarios;
mod shell;
mod support;
mod vm;
mod walk;
