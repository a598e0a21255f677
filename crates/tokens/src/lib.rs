//! The gate's own count: the prompt rendered as the engine renders it and counted with the model's tokenizer,
//! and the output text counted as it streams by.
//!
//! A crate of its own for its *weight*: vocabularies, a template language and a tokenizer library, which
//! nothing else in the gate should have to build. It is pure all the same: no file, clock, thread or log; a
//! tokenizer and a template arrive as bytes, the time as an argument.
//! Invariant: nothing counts as zero because it could not be read: a count is `Exact`, `Approximate` with the
//! reason, or refused with [`Uncountable`]. No input panics, and time grows with length, not with its square.
//! Not here: reading reports (`wire::usage`), who waits for a count and in which pool (the host).

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

pub mod calibration;
mod count;
mod counter;
mod dialect;
pub mod drift;
mod features;
mod known_messages;
mod media;
mod memo;
mod output;
mod overhead;
pub mod probes;
mod prompt;
mod shape;
mod tokenizer_settings;
mod vocabulary;
mod words;
mod work;

pub use count::{Certainty, Count, Doubt, Prompt};
pub use counter::{BuiltIn, Counter};
pub use dialect::is_counted;
pub use memo::{Memo, MemoStats};
pub use output::{Ending, Lane, OutputCount, OutputCounter};
#[doc(hidden)]
pub use prompts::template::Shown;
pub use prompts::template::{ContentForm, TemplateSettings, Templates};
pub use prompts::{RENDERED_LIMIT_BYTES, Uncountable, UnusableModel};
pub use shape::{Feature, LONG, Shape};

/// The longest body, in bytes, that is read for counting.
pub const BODY_LIMIT_BYTES: usize = 32 << 20;
#[cfg(test)]
mod tests;
