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
    let mut build = cc::Build::new();
    build.std("gnu11").warnings(false);
    build.clone().file("src/lines.c").compile("warmq_lines");
    build
        .include("src/shim")
        .file("src/native.c")
        // The program is written for clang and the BPF verifier: its own build checks it.
        .flag_if_supported("-Wno-attributes")
        // Each access to memory calls a hook of lines.c.
        .flag("-fsanitize=thread")
        .compile("warmq_native");
}
