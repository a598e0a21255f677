//! A simulated inference engine with a vLLM-shaped HTTP face, so that a gateway can be tried with no
//! account and no GPU.
//!
//! Invariant: usage is honest: `completion_tokens` is the number of tokens that were really generated, by the
//! one approximation in [`text`], and every request ends in exactly one `finished_reason`.
//! Not here: a scheduler, batching or a KV cache (each request is paced alone, so load never slows another
//! request), and faults. [`fixed`] is the other, cheaper upstream: constant answers for
//! measuring cost.

pub mod chance;
mod chat;
mod completions;
mod config;
pub mod cost;
pub mod dcgm;
mod embeddings;
mod error;
pub mod fit;
pub mod fixed;
mod generation;
mod histogram;
mod inspect;
pub mod kv;
mod listener;
mod metrics;
mod models;
mod pace;
mod plan;
pub mod preset;
pub mod replay;
mod responses;
mod route;
pub mod scheduler;
pub mod score;
mod server;
pub mod soak;
pub mod text;
mod tools;
pub mod trace;
mod validate;
pub mod virtual_time;

pub use config::EngineConfig;
pub use metrics::Stats;
pub use server::{Engine, EngineHandle, spawn_thread};
