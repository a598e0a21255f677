//! One bucket against a bucket in exact fractions that anyone can check by eye.
//!
//! Invariant: the model follows what the bucket decided, so that a difference never hides the
//! next one; what it tolerates is rounding, counted in operations.
//! Not here: several limits and exchanges (`sim`).

mod exact;
mod operations;
mod window;
