//! Bodies and streams: vectors, corpora, conversations and random documents.

mod corpus;
#[path = "../../../../fuzz/checks/json_head.rs"]
mod json_head;
mod random;
#[path = "../../../../fuzz/checks/sse_scan.rs"]
mod sse_scan;
mod turns;
mod vectors;
