//! The schedulers of the laboratory.
