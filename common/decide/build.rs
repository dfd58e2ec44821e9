//! Compiles decide.h, by way of decide.c, with whatever C compiler there is.

fn main() {
    println!("cargo::rerun-if-changed=src/decide.c");
    println!("cargo::rerun-if-changed=include");
    cc::Build::new()
        .std("c11")
        .include("include")
        .file("src/decide.c")
        .warnings_into_errors(true)
        .extra_warnings(true)
        .compile("warmq_decide");
}
