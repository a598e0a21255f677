//! Whole exchanges, one at a time, from outside: a revision, a head and a body go in; a verdict, a record and what limits
//! and budgets hold come out.
//!
//! Not here: many exchanges over time (`sim`), what one bucket or budget admits (`model`).

mod apart;
mod attempts;
mod balancing;
mod broken;
mod callers;
mod editing;
mod kept;
mod looking;
mod opening;
mod overdraft;
mod picking;
mod pieces;
mod plain;
mod reserving;
mod routing;
mod unread;
