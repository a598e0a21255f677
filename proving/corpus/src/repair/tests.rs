//! The table of repairs case by case, and its invariants over random sessions.

mod cases;
mod random;
mod rules;
