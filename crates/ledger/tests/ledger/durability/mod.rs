//! Durability of the ledger: killed writers, full disks, damage, retention.

mod backup;
mod budget_sums;
mod corpus;
mod damage_catalogue;
mod damaged_wal;
mod damaged_while_open;
mod disk_full;
mod kill;
mod layout;
#[path = "../../../../../fuzz/checks/ledger_file.rs"]
mod ledger_file;
mod links;
mod opening;
mod owners;
mod removed;
mod retention;
mod salvage;

use crate::rows;
