//! Buckets and reservations against models that anyone can check by eye.
//!
//! Invariant: the model follows what the bucket decided, so that a difference never hides the
//! next one; what it tolerates is rounding, counted in operations.
//! Not here: workers, engines and faults (`sim`).

mod budgets;
mod exact;
mod holds;
mod operations;
mod rolling;
mod window;
