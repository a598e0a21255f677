//! When a lock is free again.

use super::Lock;

#[test]
fn a_lock_is_free_at_once_although_a_child_has_a_copy_of_its_file() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = dir.path().join("usage.db");
    let lock = Lock::take(&ledger).expect("free");
    // What a fork leaves in a child until that runs its program.
    let copy = lock.0.try_clone().expect("a copy");
    drop(lock);
    Lock::take(&ledger).expect("free again");
    drop(copy);
}
