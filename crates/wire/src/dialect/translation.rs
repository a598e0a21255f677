//! The seam for upstreams that speak another dialect than their clients.
//!
//! Invariant: nothing here keeps a request: a translation begins with each attempt, so that two attempts of one call
//! can speak two dialects.
//! Not here: which upstream speaks what (`policy`), sending and forwarding (`proxy`).

use std::fmt::Debug;

use bytes::Bytes;

use super::Operation;
use crate::head::ResponseHead;

/// A request in the dialect of an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translated {
    /// What follows the root of the API, with its slash: `/messages`.
    pub path: String,
    /// The body, in pieces.
    pub body: Vec<Bytes>,
}

/// Translates calls to one kind of upstream.
pub trait Translator: Debug + Send + Sync {
    /// The operation that the upstream is asked for: its response is metered as one of that.
    fn operation(&self) -> Operation;

    /// The request in the upstream's dialect; `None` where that cannot say it. `body` has the model that the upstream
    /// is asked for.
    fn request(&self, asked: Operation, body: &[Bytes]) -> Option<Translated>;

    /// A translation of the response that begins with `head`, back to the client's dialect.
    fn response(&self, asked: Operation, head: &ResponseHead) -> Box<dyn Translation>;
}

/// Translates one response while it passes.
pub trait Translation: Debug {
    /// Reads a piece of the body; what is to be forwarded for it goes to `out`. `is_over`: it is the last one.
    fn translate(&mut self, piece: &[u8], is_over: bool, out: &mut Vec<Bytes>);
}
