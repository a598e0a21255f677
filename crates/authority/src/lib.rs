//! Rules that say whether a caller may make a call, as an operator writes them: in CEL, or in Rego.
//!
//! A crate of its own for its *weight*: two languages, their grammars, regular expressions and the world's time
//! zones. It is pure all the same: rules arrive as text, the time as a fact, and nothing here waits.
//! Invariant: what no rule allows is refused. What cannot be decided (an error, a bound, a value of the wrong type)
//! never allows. Rules are checked and compiled when they are loaded; no rule and no input panics.
//! Not here: the facts and the decision (`policy::authority`), where rules are written (`config`), when they are
//! asked (`policy::exchange`).

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

pub mod cel;
mod fault;
mod pattern;
pub mod rego;
mod stack;

pub use fault::Fault;

pub use stack::STACK_BYTES;

#[cfg(test)]
#[path = "../tests/fixture/mod.rs"]
mod fixture;
