//! wire
pub mod head;
pub mod http1;
