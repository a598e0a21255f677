//! One API's calls made into another's, and the answers back.
//!
//! Each dialect is a directory: it reads calls into one form ([`call::Call`]) and writes them out of it, and does the same with answers
//! ([`answer::Event`]). A pair of dialects is a reader of one and a writer of the other, so that a provider is added by its directory
//! and its line in [`Dialect`] (docs/decisions/0034).
//! A crate of its own because it is pure: bytes in, bytes out.
//! Invariant: what a client says is said again, refused by its place in the client's body, or dropped where its documentation allows
//! that and named ([`wire::filter::Request::dropped`]). An answer without its end is never made into a whole one.
//! Not here: which backend speaks what (`config`), sending (`proxy`), usage (`wire::usage`, which reads what comes).

mod answer;
mod anthropic;
mod azure;
mod base64;
mod bedrock;
mod bound;
mod call;
mod calls;
mod cohere;
mod dialect;
mod embeddings;
mod fault;
mod filter;
mod gemini;
mod json;
mod openai;
mod raw;
mod report;
mod responses;
mod stored;

pub use dialect::Dialect;
pub use filter::Translation;

#[cfg(test)]
mod tests;
