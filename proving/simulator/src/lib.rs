//! A discrete-event simulator of an inference engine: scheduler, KV cache, step costs and GPUs, in virtual time.
//!
//! It is called what the field calls such a program (Vidur, LLMServingSim): the scheduler is one part of it. It
//! knows requests by their lengths and the names of their blocks, never their text. It is a crate for its purity.
//! Invariant: time, randomness and the text of files are arguments: the same calls give the same figures.
//! Not here: HTTP, text and real time (`engine`), reading and writing files (`prove`).

pub mod bounds;
pub mod campaign;
pub mod cost;
pub mod crowd;
pub mod fit;
pub mod gpus;
pub mod hardware;
pub mod kv;
pub mod lanes;
pub mod preset;
pub mod replay;
pub mod scheduler;
pub mod score;
pub mod soak;
pub mod trace;
pub mod virtual_time;
