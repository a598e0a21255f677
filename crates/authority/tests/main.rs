//! Rules against other witnesses: Open Policy Agent, and the interpreter of the crate `cel`.

mod docs;
mod fixture;
mod opa;
mod witness;
