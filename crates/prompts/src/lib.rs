//! Prompts as vLLM renders them: a conversation becomes Harmony's pieces, or the text of a model's chat template.
//!
//! The gate, which counts prompts (`tokens`), and the engine that is simulated (`engine`) both render by this crate. Each
//! reads bodies and encodes texts by code of its own. What is rendered here is held against Jinja2 (`cargo xtask renderings`)
//! and against a real vLLM (`vectors/tokens`).
//! Pure: a template arrives as text, the time as an argument.
//! Invariant: no input panics, and what is rendered is bounded in time and length ([`rendered_limit`]).
//! Not here: bodies of requests, tokens.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

pub mod conversation;
mod doubt;
pub mod harmony;
pub mod template;
pub mod tree;
mod uncountable;
mod word;

pub use doubt::Doubt;
pub use uncountable::{Uncountable, UnusableModel, wrong};
pub use word::Word;

/// The longest text, in bytes, that is rendered of any body.
pub const RENDERED_LIMIT_BYTES: usize = 64 << 20;

/// How many times as long as its body a text may be that is rendered of it, and how many bytes longer.
const GROWTH: usize = 8;
const GROWTH_BYTES: usize = 1 << 20;

/// The longest text, in bytes, that is rendered of a body of so many.
#[must_use]
pub const fn rendered_limit(body_bytes: usize) -> usize {
    let limit = body_bytes
        .saturating_mul(GROWTH)
        .saturating_add(GROWTH_BYTES);
    if limit < RENDERED_LIMIT_BYTES {
        limit
    } else {
        RENDERED_LIMIT_BYTES
    }
}
