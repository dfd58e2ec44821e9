//! Objects of BPF: read, fitted to kernels, loaded.

mod counters;
mod fit;
mod loading;
