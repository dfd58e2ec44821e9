//! Compiles the BPF program with the clang that BPF_CLANG names (.cargo/config.toml), and makes its
//! skeleton.

fn main() {
    println!("cargo:rerun-if-changed=src/bpf");
    println!("cargo:rerun-if-changed=../../common/decide/include");
    println!("cargo:rerun-if-changed=../hint/include");
    scx_cargo::BpfBuilder::new()
        .expect("a clang that compiles BPF: apt-get install clang-19, or BPF_CLANG=clang where that is 17 or newer")
        .enable_skel("src/bpf/main.bpf.c", "bpf")
        .build()
        .expect("the BPF program compiles");
}
