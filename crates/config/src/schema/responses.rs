//! `responses`: what is kept for clients of the Responses API.
//!
//! Not here: what it becomes (`lower`).

use crate::decode::{At, record};
use crate::scalar::{Size, Span};

record! {
    /// What is kept for clients of the Responses API.
    Responses {
        /// Keep responses whose backends keep none, so that calls can go on from them by `previous_response_id`.
        required store: ResponseStore,
    }
}

record! {
    /// Responses that are kept in memory, each for its own caller.
    ResponseStore {
        /// How long one is kept after it was last used. Default 1d.
        optional keep: At<Span>,
        /// Bytes of all together; the oldest goes first. Default 256MiB.
        optional size: At<Size>,
    }
}
