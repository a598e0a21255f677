//! Readers and repair over files: fixtures in the exact form of each dataset.

mod fixture;
mod genuine;
mod golden;
mod mutated;
#[path = "../../src/seeded.rs"]
mod seeded;
mod shredded;
