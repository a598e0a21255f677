//! What the tests of all crates share: how they wait, say that they were skipped, draw chance, replay a fuzz corpus, read golden cases and command lines.
//!
//! Invariant: nothing here can fail because a machine is slow, but for [`PATIENCE`], which is many times what anything
//! takes. `cargo xtask tidy` keeps clocks and sleeps out of other tests, so that this holds for them too.
//! Not here: what one crate's tests share among themselves, assertions about a product.

mod api_server;
pub mod eventstream;
mod line;
mod memory;
mod read;
mod replay;
mod seed;
mod skip;
mod vectors;
mod wait;

pub use api_server::{ApiServer, State};
pub use line::{commands, words};
pub use memory::{Memory, Noting};
pub use read::read;
pub use replay::{corpus, replay};
pub use seed::{Draw, number_of, seed};
pub use skip::skip;
pub use vectors::vectors;
pub use wait::{Began, PATIENCE, eventually, found, nothing_happens_for, pace};
