//! Compiles the BPF program with clang and makes its skeleton.

fn main() {
    println!("cargo:rerun-if-changed=src/bpf");
    println!("cargo:rerun-if-changed=../../common/decide/include/decide.h");
    choose_clang();
    scx_cargo::BpfBuilder::new()
        .expect("a clang that compiles BPF: apt-get install clang-19, and BPF_CLANG=clang-19")
        .enable_skel("src/bpf/main.bpf.c", "bpf")
        .build()
        .expect("the BPF program compiles");
}

/// Debian 12's `clang` is too old for BPF programs of today, and the one that is not has another name.
#[allow(
    unsafe_code,
    reason = "the builder of the scx project takes clang from the environment only"
)]
fn choose_clang() {
    println!("cargo:rerun-if-env-changed=BPF_CLANG");
    let known = std::process::Command::new("clang-19")
        .arg("--version")
        .output();
    if std::env::var_os("BPF_CLANG").is_none() && known.is_ok() {
        // SAFETY: a build script's main thread, before any other is started.
        unsafe { std::env::set_var("BPF_CLANG", "clang-19") };
    }
}
