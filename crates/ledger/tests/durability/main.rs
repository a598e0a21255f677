//! The ledger against what happens to files: killed writers, full disks, damage, age.

mod backup;
mod damage_catalogue;
mod damaged_while_open;
mod corpus;
mod damaged_wal;
mod disk_full;
mod kill;
mod layout;
#[path = "../../../../fuzz/checks/ledger_file.rs"]
mod ledger_file;
mod opening;
mod retention;
mod rows;
mod salvage;
#[path = "../../../../xtask/skipped.rs"]
mod skipped;
mod budget_sums;
mod removed;
