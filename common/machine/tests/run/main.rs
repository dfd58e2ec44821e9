//! Machines and their caches, as those who use them see them.

mod cache_bus;
mod cache_hierarchy;
mod cache_mesi;
mod cache_private;
mod cache_support;
mod readers_hwloc;
mod readers_machines;
mod readers_memory;
mod readers_toml;
mod toml_written;
