//! The ledger against what happens to files: killed writers, full disks, damage, age.

mod backup;
mod catalogue;
mod damage;
mod full;
mod kill;
mod layout;
mod opening;
mod retention;
mod rows;
mod salvaged;
#[path = "../../../../xtask/skipped.rs"]
mod skipped;
mod spent;
mod taken;
