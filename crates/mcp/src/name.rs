//! Names and URIs of servers' things as clients see them: `server__tool` and `server+uri`.
//!
//! A server's name holds no `__` and does not end in `_`, so that the first `__` parts it from the tool's. What clients are shown has
//! 64 bytes at most, which is what models' APIs take; a longer name is shortened, with a hash of the whole at its end, and found
//! again among the server's own.
//! Invariant: one server's two different names are shown as two, and policy sees the whole of each.
//! Not here: which names there are (`catalog`).

use std::borrow::Cow;

use ring::digest::{SHA256, digest};

/// Most bytes of a name that clients are shown.
pub const SHOWN_BYTES_MAX: usize = 64;
/// Between a server and its tool or prompt.
pub const BETWEEN: &str = "__";
/// Between a server and its URI.
const BEFORE_URI: char = '+';
/// Bytes of the hash at the end of a shortened name: 50 bits.
const HASH_BYTES: usize = 10;

/// The whole name of a server's thing: by it policy knows it, however it is shown.
#[must_use]
pub fn whole(server: &str, name: &str) -> String {
    [server, BETWEEN, name].concat()
}

/// A name as clients are shown it.
#[must_use]
pub fn shown(name: &str) -> Cow<'_, str> {
    if name.len() <= SHOWN_BYTES_MAX {
        return Cow::Borrowed(name);
    }
    let mut end = SHOWN_BYTES_MAX - HASH_BYTES - 1;
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    let start = name.get(..end).unwrap_or_default();
    let mut shown = format!("{start}_");
    let hash = digest(&SHA256, name.as_bytes());
    let letters = hash.as_ref().iter().take(HASH_BYTES);
    shown.extend(letters.map(|byte| match byte & 31 {
        number @ 0..26 => char::from(b'a' + number),
        number => char::from(b'2' + number - 26),
    }));
    Cow::Owned(shown)
}

/// The server and its own name of a thing, of a name with a prefix. A shortened one gives the beginning of its own name.
#[must_use]
pub fn split(shown: &str) -> Option<(&str, &str)> {
    shown.split_once(BETWEEN)
}

/// Whether somebody who wrote this may have meant a server's own thing: it has the same letters and digits, behind the name of that server, of
/// another one, or of none.
#[must_use]
pub fn may_mean(written: &str, server: &str, own: &str) -> bool {
    let mut meant = meant_letters(written, server).into_iter().flatten();
    letters(own).next().is_some() && meant.any(|meant| meant.eq(letters(own)))
}

/// The letters of what somebody who wrote this may have meant of a server.
pub(crate) fn meant_letters<'w>(
    written: &'w str,
    server: &str,
) -> [Option<impl Iterator<Item = char> + 'w>; 2] {
    let behind = split(written).map_or(written, |(_, own)| own);
    let mut whole = letters(written);
    let is_servers = letters(server).all(|letter| whole.next() == Some(letter));
    [Some(letters(behind)), is_servers.then_some(whole)]
}

/// What is left of a name where nobody looks at signs and capitals.
pub(crate) fn letters(text: &str) -> impl Iterator<Item = char> + '_ {
    let letters = text.chars().filter(|c| c.is_alphanumeric());
    letters.flat_map(char::to_lowercase)
}

/// Whether a name may be a shortened one.
#[must_use]
pub fn may_be_shortened(shown: &str) -> bool {
    let least = SHOWN_BYTES_MAX - 3;
    (least..=SHOWN_BYTES_MAX).contains(&shown.len())
}

/// How the name begins that a shortened one stands for.
pub(crate) fn start_of_shortened(shown: &str) -> Option<&str> {
    let end = shown.len().checked_sub(HASH_BYTES + 1)?;
    shown.get(..end).filter(|_| may_be_shortened(shown))
}

/// A URI as clients are shown it.
#[must_use]
pub fn shown_uri(server: &str, uri: &str) -> String {
    format!("{server}{BEFORE_URI}{uri}")
}

/// The server and its own URI.
#[must_use]
pub fn split_uri(shown: &str) -> Option<(&str, &str)> {
    shown.split_once(BEFORE_URI)
}

/// The id of a server's request, as its client is shown it: a string that says the server, and the id as the server wrote it.
#[must_use]
pub fn shown_id(server: &str, id: &[u8]) -> Option<String> {
    let id = std::str::from_utf8(id).ok()?;
    Some(format!("{server}{BEFORE_ID}{id}"))
}

/// The server and its own id of a request, out of what its client answers.
#[must_use]
pub fn split_id(shown: &str) -> Option<(&str, &str)> {
    shown.split_once(BEFORE_ID)
}

const BEFORE_ID: char = '~';

#[cfg(test)]
mod tests;
