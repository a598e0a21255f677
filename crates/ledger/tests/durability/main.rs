//! The ledger against what happens to files: killed writers, full disks, damage, age.

mod damage;
mod full;
mod kill;
mod layout;
mod opening;
mod retention;
mod rows;
#[path = "../../../../xtask/skipped.rs"]
mod skipped;
mod spent;
