//! Compiles warmq.h for Rust, and names its folder to dependents.

use std::env;
use std::path::Path;

fn main() {
    let folder = env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the folder");
    let include = Path::new(&folder).join("include");
    println!("cargo::rerun-if-changed=include");
    println!("cargo::rerun-if-changed=src/calls.c");
    println!("cargo::metadata=include={}", include.display());
    cc::Build::new()
        .file("src/calls.c")
        .include(include)
        .opt_level(2)
        .compile("warmq_hint");
}
