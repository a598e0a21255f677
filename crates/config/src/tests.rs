//! Tests of whole documents.

mod carry;
mod environment;
mod examples;
mod golden;
mod large;
mod misplaced;
mod pages;
mod random;
mod redacted;
mod reference;
mod rendering;
mod schema;
pub(crate) mod world;
