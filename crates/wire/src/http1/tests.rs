//! Table and property tests.
