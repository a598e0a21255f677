//! What a directory lies on, and how much room there is.

use std::path::Path;

use rustix::fs::{statfs, statvfs};

/// The kernel's numbers of filesystems (`linux/magic.h`).
const TMPFS: i128 = 0x0102_1994;
const RAMFS: i128 = 0x8584_58f6;
const OVERLAY: i128 = 0x794c_7630;

/// A filesystem, as far as it matters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Disk {
    /// For those who are not root.
    pub(super) free_bytes: u64,
    pub(super) kind: Kind,
}

/// Where what is written ends up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Disk,
    /// Nowhere but in memory.
    Memory,
    /// A layer above an image.
    Layer,
}

impl Disk {
    /// That of a directory; `None` where the kernel does not say.
    pub(super) fn of(dir: &Path) -> Option<Self> {
        let room = statvfs(dir).ok()?;
        Some(Self {
            free_bytes: room.f_bavail.saturating_mul(room.f_frsize),
            kind: kind(i128::from(statfs(dir).ok()?.f_type)),
        })
    }
}

fn kind(number: i128) -> Kind {
    match number {
        TMPFS | RAMFS => Kind::Memory,
        OVERLAY => Kind::Layer,
        _ => Kind::Disk,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Disk, Kind, kind};

    #[test]
    fn a_directory_that_is_there_has_room_of_a_kind() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let disk = Disk::of(dir.path()).expect("the kernel says");
        assert!(disk.free_bytes > 0, "{disk:?}");
        assert!(Disk::of(Path::new("/nowhere/at/all")).is_none());
        assert_eq!(kind(0xef53), Kind::Disk, "ext4");
        // What is mounted there on nearly every Linux.
        if let Some(shared) = Disk::of(Path::new("/dev/shm")) {
            assert_ne!(shared.kind, Kind::Layer, "{shared:?}");
        }
    }
}
