//! What a compiler sees of Verus' marks when nothing is being proven: nothing.
//!
//! Invariant: no code of the marked crate is changed. A mark that is not known here is an error of the build.
//! Not here: proofs, and the specifications that they are made of.

#![no_std]

/// The marks, as `use vstd::prelude::*` brings them.
pub mod prelude {
    pub use crate::proof;
    pub use vstd_marks::{verus_spec, verus_verify};
}

/// Steps of a proof, which are no part of the program.
#[macro_export]
macro_rules! proof {
    ($($step:tt)*) => {};
}
