//! Rules against other witnesses: Open Policy Agent, and the interpreter of the crate `cel`.

mod docs;
mod fixture;
mod fuzz_corpus;
mod opa;
mod witness;
