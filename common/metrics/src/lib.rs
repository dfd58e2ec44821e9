//! From trace records to latencies, shares and lock figures.
