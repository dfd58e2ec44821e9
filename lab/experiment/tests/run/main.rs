//! Experiments, laws and programs, as those who play them see them.

mod digests;
mod document;
mod fake;
mod judgement;
mod laws;
mod programs;
mod reading;
mod running;
mod shipped;
mod worlds;
