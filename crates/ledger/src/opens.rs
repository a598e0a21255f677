//! The names of what is open on disk: nothing else has to be looked for there when it ends.
//!
//! Invariant: whatever is open on disk is known here, or it is not known what is; then everything may be. The one
//! who writes the file keeps this; a transaction that failed makes it unread.
//! Not here: what becomes of what is open (`store`, `open`).

use std::collections::HashSet;

use rusqlite::Connection;

use crate::id::RecordId;

/// Names that are kept: about 40 MB. Where more is open, every one that ends is looked for.
const OPENS_MAX: usize = 1 << 20;

/// What is open on disk.
#[derive(Debug, Default)]
pub(crate) enum Opens {
    /// The file has to be asked.
    #[default]
    Unread,
    /// This, and nothing else.
    Known(HashSet<RecordId>),
    /// Too much to keep.
    Many,
}

impl Opens {
    /// Asks the file, where that was not done yet.
    pub(crate) fn read(&mut self, db: &Connection) -> rusqlite::Result<()> {
        if !matches!(self, Self::Unread) {
            return Ok(());
        }
        let mut statement = db.prepare(&format!("SELECT id FROM open LIMIT {}", OPENS_MAX + 1))?;
        let ids = statement.query_map([], |row| row.get(0).map(RecordId))?;
        let ids: HashSet<_> = ids.collect::<rusqlite::Result<_>>()?;
        *self = if ids.len() > OPENS_MAX {
            Self::Many
        } else {
            Self::Known(ids)
        };
        Ok(())
    }

    /// One that was written.
    pub(crate) fn add(&mut self, id: RecordId) {
        if let Self::Known(ids) = self
            && ids.insert(id)
            && ids.len() > OPENS_MAX
        {
            *self = Self::Many;
        }
    }

    /// Whether this one may be there.
    pub(crate) fn may_have(&self, id: RecordId) -> bool {
        match self {
            Self::Known(ids) => ids.contains(&id),
            Self::Unread | Self::Many => true,
        }
    }

    /// One that is there no longer.
    pub(crate) fn remove(&mut self, id: RecordId) {
        if let Self::Known(ids) = self {
            ids.remove(&id);
        }
    }
}

#[cfg(test)]
mod tests;
