//! Rules against other witnesses: Open Policy Agent, and the interpreter of the crate `cel`.

mod docs;
mod fixture;
mod fuzz_corpus;
mod opa;
#[expect(
    clippy::disallowed_methods,
    reason = "where a skip is told stands in the environment"
)]
#[path = "../../../xtask/skipped.rs"]
mod skipped;
mod witness;
