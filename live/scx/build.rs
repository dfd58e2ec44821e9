//! Compiles the BPF program with clang and makes its skeleton.

fn main() {
    println!("cargo:rerun-if-changed=src/bpf");
    println!("cargo:rerun-if-changed=../../common/decide/include/decide.h");
    scx_cargo::BpfBuilder::new()
        .expect("a clang that compiles BPF: apt-get install clang-19, and BPF_CLANG=clang-19")
        .enable_skel("src/bpf/main.bpf.c", "bpf")
        .build()
        .expect("the BPF program compiles");
}
