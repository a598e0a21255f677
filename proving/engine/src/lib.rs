//! A simulated inference engine with a vLLM-shaped HTTP face, so that a gateway can be tried with no
//! account and no GPU.
//!
//! Invariant: usage is honest: prompts are rendered and counted as the model's own engine does ([`tokenizer`]),
//! answers are exactly as long as they say ([`text`]), and every request ends in exactly one `finished_reason`.
//! Only a call that asks for a fault ([`faults`]) is lied to.
//! Not here: weights. [`fixed`] is the other, cheaper upstream: constant answers for measuring cost.

pub mod book;
pub mod chance;
mod chat;
mod completions;
mod config;
pub mod cost;
pub mod dcgm;
mod embeddings;
mod error;
mod exporter;
pub mod faults;
pub mod fit;
pub mod fixed;
mod generation;
mod histogram;
mod inspect;
mod json;
pub mod kv;
mod listener;
mod messages;
mod metrics;
mod model;
mod models;
mod pace;
mod plan;
pub mod preset;
mod real_time;
mod render;
pub mod replay;
mod responses;
mod route;
mod sampling;
pub mod scheduler;
pub mod score;
mod server;
pub mod soak;
pub mod text;
pub mod tokenizer;
mod tools;
pub mod trace;
mod turn;
mod validate;
pub mod virtual_time;

pub use config::EngineConfig;
pub use metrics::Stats;
pub use model::ModelFiles;
pub use real_time::Hardware;
pub use server::{Engine, EngineHandle, spawn_thread};
