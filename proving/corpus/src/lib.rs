//! From recorded agent trajectories to requests that are ready to be sent.
//!
//! A reader turns the records of a dataset into conversations, repair makes them what engines take, unrolling makes
//! one request of each decision of the assistant, and the store keeps what requests have in common once.
//!
//! Reason to exist: weight (Parquet, memory maps), and sharing: what it writes is what every replay reads.
//! Not here: sending (`load`), tokenizers (`engine`, given by `prove`), the command line (`prove`).

pub mod build;
pub mod conversation;
mod digest;
pub mod export;
pub mod geometry;
pub mod json;
pub mod manifest;
pub mod prefix;
pub mod reader;
mod regular;
pub mod repair;
#[cfg(test)]
mod seeded;
pub mod store;
pub mod unroll;
