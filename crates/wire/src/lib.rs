//! wire
pub mod head;
pub mod http1;
pub mod call;
pub mod json;
pub mod sse;
pub mod usage;
