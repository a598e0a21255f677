//! Words for people that more than one verb uses.
//!
//! Not here: how many stand on a line (`width`).

use std::fmt::Display;

/// A number and what it is a number of: `1 call`, `2 calls`.
pub fn counted<N: Display + PartialEq + From<u8>>(n: N, word: &str) -> String {
    let ending = if n == N::from(1) { "" } else { "s" };
    format!("{n} {word}{ending}")
}
