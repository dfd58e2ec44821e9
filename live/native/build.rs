//! Compiles the BPF program of scx_warmq, unchanged, with whatever C compiler there is.

fn main() {
    for input in [
        "src",
        "../scx/src/bpf",
        "../hint/include",
        "../../common/decide/include",
    ] {
        println!("cargo::rerun-if-changed={input}");
    }
    cc::Build::new()
        .std("gnu11")
        .include("src/shim")
        .file("src/native.c")
        // The program is written for clang and the BPF verifier: its own build checks it.
        .warnings(false)
        .flag_if_supported("-Wno-attributes")
        .compile("warmq_native");
}
