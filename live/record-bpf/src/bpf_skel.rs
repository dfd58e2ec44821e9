//! The skeleton that the build makes of the BPF program.
#![allow(
    missing_docs,
    unsafe_code,
    clippy::all,
    clippy::too_many_lines,
    reason = "made by libbpf-cargo"
)]

include!(concat!(env!("OUT_DIR"), "/bpf_skel.rs"));
