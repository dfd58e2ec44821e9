//! The workloads of the laboratory.
