//! The head beside the ledger: `usage.db.head`, a few lines that say where the chain ended last.
//!
//! It is written after each commit, without a sync: a file that was set back, cut or taken away is
//! found at the next start, because it lacks what was written. After a power loss this file may be
//! behind the ledger, never ahead of it.
//! Invariant: it holds no row; to lose it costs this check alone. Whoever can write the ledger can
//! write it too: against people, a head is kept elsewhere. No link is followed to it.
//! Not here: what a difference means (`open`).

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::chain::Head;
use crate::hex::{hex, unhex};
use crate::owner::Owner;
use crate::plain_file;
use crate::schema::beside;

const FIRST_LINE: &str = "tollgate ledger head, version 1";
/// All files have this length, so that one write replaces all of one.
const LENGTH: usize = 320;

/// What the file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The ledger's own name.
    pub(crate) ledger: [u8; 16],
    pub(crate) anchor: Head,
    pub(crate) head: Head,
    /// Commits of the ledger since it was made.
    pub(crate) commits: i64,
}

/// What is beside a ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    None,
    /// It is there, and is not what was written.
    Unreadable,
    Kept(Kept),
}

impl Found {
    pub(crate) fn kept(self) -> Option<Kept> {
        match self {
            Self::Kept(kept) => Some(kept),
            Self::None | Self::Unreadable => None,
        }
    }
}

/// Reads the file beside `ledger`.
pub(crate) fn read(ledger: &Path) -> Found {
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(LENGTH);
        let file = plain_file::read(&beside(ledger, ".head"))?;
        file.take(2 * LENGTH as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Found::None,
        Err(_) => Found::Unreadable,
        Ok(bytes) => std::str::from_utf8(&bytes)
            .ok()
            .and_then(parse)
            .map_or(Found::Unreadable, Found::Kept),
    }
}

/// The file, open for writing, or why it is not.
#[derive(Debug)]
pub(crate) struct HeadFile {
    path: PathBuf,
    file: io::Result<File>,
}

impl HeadFile {
    /// Opens the file beside `ledger`, and makes it where there is none.
    pub(crate) fn open(ledger: &Path) -> Self {
        let path = beside(ledger, ".head");
        let file = Owner::of(ledger)
            .and_then(|owner| plain_file::opened_or_made(&path, plain_file::GROUP_READS, owner))
            .and_then(of_one_name);
        Self { path, file }
    }

    /// Says that the chain ends here; when that fails, in words why.
    pub(crate) fn write(&self, kept: &Kept) -> Result<(), String> {
        self.with(|file| file.write_all_at(&render(kept), 0))
    }

    pub(crate) fn sync(&self) -> Result<(), String> {
        self.with(File::sync_data)
    }

    fn with(&self, work: impl FnOnce(&File) -> io::Result<()>) -> Result<(), String> {
        let done = match &self.file {
            Ok(file) => work(file).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        done.map_err(|error| format!("{} cannot be written: {error}", self.path.display()))
    }
}

/// Puts another file in the place of the one beside `ledger`, on disk, for `owner`.
pub(crate) fn replace(ledger: &Path, kept: &Kept, owner: Owner, part: &Path) -> io::Result<()> {
    let file = plain_file::make(part, plain_file::GROUP_READS)?;
    let put = owner
        .take(&file)
        .and_then(|()| file.write_all_at(&render(kept), 0))
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(part, beside(ledger, ".head")));
    if put.is_err() {
        drop(std::fs::remove_file(part));
    }
    put
}

/// What has a second name may be another's file.
fn of_one_name(file: File) -> io::Result<File> {
    if file.metadata()?.nlink() > 1 {
        return Err(io::Error::other(
            "it has a second name (a hard link); remove it",
        ));
    }
    Ok(file)
}

fn render(kept: &Kept) -> Vec<u8> {
    let mut text = format!(
        "{FIRST_LINE}\nledger {}\nanchor {}\nhead {}\ncommits {}\n",
        hex(&kept.ledger),
        kept.anchor,
        kept.head,
        kept.commits
    );
    let sum = sum(&text);
    let _ = writeln!(text, "sum {sum}");
    let mut bytes = text.into_bytes();
    // Spaces before the last line's end.
    bytes.pop();
    bytes.resize(LENGTH - 1, b' ');
    bytes.push(b'\n');
    bytes
}

fn parse(text: &str) -> Option<Kept> {
    let (summed, last) = text.split_at(text.find("sum ")?);
    if last.trim_end() != format!("sum {}", sum(summed)) {
        return None;
    }
    let mut lines = summed.lines();
    if lines.next()? != FIRST_LINE {
        return None;
    }
    let mut value = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
    let ledger = value("ledger")?;
    let (anchor, head) = (value("anchor")?, value("head")?);
    let commits = value("commits")?.parse().ok()?;
    Some(Kept {
        ledger: unhex(ledger)?,
        anchor: Head::parse(anchor)?,
        head: Head::parse(head)?,
        commits,
    })
}

fn sum(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes())[..8])
}

#[cfg(test)]
mod tests;
