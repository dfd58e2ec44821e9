//! Scenarios as texts: what is read, what is refused, and what the numbers in it are.

mod bound;
mod expressions;
mod machine_numbers;
mod mutated;
mod refused;
mod reservations;
mod schema;
mod shipped;
