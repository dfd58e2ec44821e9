//! Writes the structs of events, compiles the BPF program with the clang that BPF_CLANG names
//! (.cargo/config.toml), and makes its skeleton.

use std::path::PathBuf;
use std::{env, fs};

#[path = "src/table.rs"]
mod table;

fn main() {
    println!("cargo:rerun-if-changed=src/bpf");
    println!("cargo:rerun-if-changed=src/table.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo names a folder"));
    fs::write(out.join("events.bpf.h"), table::c_header()).expect("the folder can be written to");
    scx_cargo::BpfBuilder::new()
        .expect("a clang that compiles BPF: apt-get install clang-19, or BPF_CLANG=clang where that is 17 or newer")
        .add_include_path(out.to_str().expect("a path in UTF-8"))
        .enable_skel("src/bpf/main.bpf.c", "bpf")
        .build()
        .expect("the BPF program compiles");
}
