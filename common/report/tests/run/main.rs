//! Reports as files, as a page and in a terminal.

mod files;
mod page;
mod profile;
mod sample;
mod terminal;
