//! The table of fields that a client and the gate share: of each, its name's kind and length and its own size.
//!
//! Invariant: the sizes add up to no more than the table may hold (RFC 7541, 4).
//! Not here: how entries are named (`field`).

use std::collections::VecDeque;

/// What a field's name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `:path`
    Path,
    /// Another that begins with a colon.
    Pseudo,
    Regular,
}

/// The name of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) kind: Kind,
    /// Bytes.
    pub(super) length: u32,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    /// Names and sizes, the newest first.
    entries: VecDeque<(Name, u32)>,
    size: u32,
    /// How much less than the most the client has set the table to.
    less: u32,
}

/// The size that both sides begin with, which the gate does not change.
const SIZE_BYTES: u32 = 4096;
/// What an entry counts for beside its name and its value.
const ENTRY_BYTES: u32 = 32;

impl Table {
    /// The name at this index, from 1 on. `None` where there is no such entry.
    pub(super) fn name(&self, index: u32) -> Option<Name> {
        let at = usize::try_from(index).ok()?.checked_sub(1)?;
        match STATIC.get(at) {
            Some(name) => Some(Name {
                kind: match name.as_bytes() {
                    b":path" => Kind::Path,
                    [b':', ..] => Kind::Pseudo,
                    _ => Kind::Regular,
                },
                length: u32::try_from(name.len()).ok()?,
            }),
            None => {
                let (name, _) = self.entries.get(at - STATIC.len())?;
                Some(*name)
            }
        }
    }

    pub(super) fn insert(&mut self, name: Name, value_length: u32) {
        let size = name
            .length
            .saturating_add(value_length)
            .saturating_add(ENTRY_BYTES);
        self.shrink(self.most().saturating_sub(size));
        // A larger entry empties the table and is not in it.
        if size <= self.most() {
            self.entries.push_front((name, size));
            self.size += size;
        }
    }

    /// Takes the size that the client sets.
    pub(super) fn resize(&mut self, size: u32) {
        self.less = SIZE_BYTES.saturating_sub(size);
        self.shrink(self.most());
    }

    fn most(&self) -> u32 {
        SIZE_BYTES - self.less
    }

    fn shrink(&mut self, most: u32) {
        while self.size > most
            && let Some((_, size)) = self.entries.pop_back()
        {
            self.size -= size;
        }
    }
}

/// The names of the static table (RFC 7541, appendix A).
const STATIC: [&str; 61] = [
    ":authority",
    ":method",
    ":method",
    ":path",
    ":path",
    ":scheme",
    ":scheme",
    ":status",
    ":status",
    ":status",
    ":status",
    ":status",
    ":status",
    ":status",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "accept",
    "access-control-allow-origin",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-range",
    "content-type",
    "cookie",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "link",
    "location",
    "max-forwards",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "refresh",
    "retry-after",
    "server",
    "set-cookie",
    "strict-transport-security",
    "transfer-encoding",
    "user-agent",
    "vary",
    "via",
    "www-authenticate",
];
