//! The ledger against what happens to files: killed writers, full disks, damage, age.

mod backup;
mod catalogue;
mod condemned;
mod corpus;
mod damage;
mod full;
mod kill;
mod layout;
#[path = "../../../../fuzz/checks/ledger_file.rs"]
mod ledger_file;
mod opening;
mod retention;
mod rows;
mod salvaged;
#[path = "../../../../xtask/skipped.rs"]
mod skipped;
mod spent;
mod taken;
