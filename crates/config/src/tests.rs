//! Tests of whole documents.

mod carry;
mod environment;
mod examples;
mod golden;
mod random;
mod reference;
mod rendering;
mod schema;
mod world;
