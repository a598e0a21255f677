//! A simulated inference engine with a vLLM-shaped HTTP face, so that a gateway can be tried with no
//! account and no GPU.
//!
//! Invariant: usage is honest: prompts are rendered and counted as the model's own engine does ([`tokenizer`]),
//! answers are exactly as long as they say ([`text`]), and every request ends in exactly one `finished_reason`.
//! Only a call that asks for a fault ([`faults`]) gets false counts.
//! Not here: which requests run and for how long (`simulator`); weights. [`fixed`] is the other, cheaper upstream:
//! constant answers for measuring cost.

mod chat;
mod completions;
mod config;
mod dcgm;
mod embeddings;
mod error;
pub mod faults;
pub mod fixed;
mod generation;
pub mod ground_truth;
#[cfg(test)]
mod habits;
mod inspect;
mod json;
mod listener;
mod logprobs;
mod messages;
mod metrics;
mod model;
mod pace;
mod plan;
pub mod prompt;
mod real_time;
mod recorder;
mod render;
mod responses;
mod route;
mod sampling;
mod scoring;
mod server;
mod state;
mod structured;
pub mod text;
pub mod tokenizer;
mod tools;
mod turn;
mod validate;

pub use config::{EngineConfig, Hardware, ModelFiles, OutputLength, VLLM_VERSION};
pub use metrics::Stats;
pub use server::{Engine, EngineHandle, spawn_thread};
pub use state::date_utc;
