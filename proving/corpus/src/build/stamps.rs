//! Whether the files of a profile stay as they are while a build reads them.
//!
//! A digest says what a file held when it was taken; the file is read again later, and after an interruption once more.
//! Files that records name have no digest at all: of those an interrupted build remembers the stamps.
//! Invariant: 8 bytes for each file. A stamp is of length and time of the last change: a change that keeps both is not
//! seen.
//! Not here: digests (`files`).

use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::files::hex;
use crate::digest::digest;
use crate::reader::{Reader, Unit};

/// The files of a profile, as they were.
#[derive(Default)]
pub(super) struct Stamps {
    all: Vec<u64>,
    /// Of those that records name.
    pub(super) named: String,
}

impl Stamps {
    pub(super) fn take(reader: &dyn Reader, units: &[Unit]) -> Self {
        let (mut all, mut named) = (Vec::new(), Sha256::new());
        // Only an answer ends the walk, and here there is none.
        let _: ControlFlow<()> = each(reader, units, &mut |path, by_record| {
            let stamp = stamp(path);
            all.push(stamp);
            if by_record {
                named.update(stamp.to_le_bytes());
            }
            ControlFlow::Continue(())
        });
        Self {
            all,
            named: hex(&named.finalize()),
        }
    }

    /// The first file that is not as it was.
    pub(super) fn changed(&self, reader: &dyn Reader, units: &[Unit]) -> Option<PathBuf> {
        let mut before = self.all.iter();
        // An index stands before what it names, so that one that changed is found before the files are counted.
        let found = each(reader, units, &mut |path, _| {
            if before.next() == Some(&stamp(path)) {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(path.to_owned())
            }
        });
        found.break_value()
    }
}

/// Every file of the units in their order, and after each those that its records name.
fn each<B>(
    reader: &dyn Reader,
    units: &[Unit],
    take: &mut dyn FnMut(&Path, bool) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let mut last: Option<&Path> = None;
    for unit in units {
        if last != Some(&*unit.file) {
            take(&unit.file, false)?;
        }
        last = Some(&unit.file);
        let mut found = None;
        reader.named(unit, &mut |path| match take(path, true) {
            ControlFlow::Continue(()) => ControlFlow::Continue(()),
            ControlFlow::Break(answer) => {
                found = Some(answer);
                ControlFlow::Break(())
            }
        });
        if let Some(answer) = found {
            return ControlFlow::Break(answer);
        }
    }
    ControlFlow::Continue(())
}

/// What is not there has one too: it may come.
fn stamp(path: &Path) -> u64 {
    match fs::metadata(path) {
        Ok(about) => digest(&format!(
            "{} {} {}",
            about.len(),
            about.mtime(),
            about.mtime_nsec()
        )),
        Err(_) => digest("not there"),
    }
}
