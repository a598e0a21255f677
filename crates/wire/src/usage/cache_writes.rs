//! What was written to caches, by how long it is kept: a list, as Amazon reports it
//! (<https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_CacheDetail.html>).

use crate::json::{Kind, Reader};

/// A value as it is written.
type Value<'a> = (Kind, &'a [u8]);

/// The counts of what is kept five minutes and an hour, as they are written; `None` where the list says nothing of one.
pub(super) fn cache_writes(list: &[u8]) -> [Option<Value<'_>>; 2] {
    let [mut five_minutes, mut hour] = [None; 2];
    let mut rest = list.strip_prefix(b"[").unwrap_or_default();
    while let Some((kept, tokens, after)) = first(rest) {
        match kept {
            b"\"5m\"" => five_minutes = tokens,
            b"\"1h\"" => hour = tokens,
            _ => {}
        }
        rest = after;
    }
    [five_minutes, hour]
}

/// How long the first of the list is kept, its count, and what is behind it.
type First<'a> = (&'a [u8], Option<Value<'a>>, &'a [u8]);

fn first(list: &[u8]) -> Option<First<'_>> {
    let mut item = Reader::new(list);
    if item.kind()? != Kind::Object {
        return None;
    }
    let (mut kept, mut tokens) = (&b""[..], None);
    let mut more = item.open()?;
    while more {
        let name = item.name()?;
        let value = item.value()?;
        match &*name {
            b"ttl" => kept = value.1,
            b"inputTokens" => tokens = Some(value),
            _ => {}
        }
        more = item.more()?;
    }
    let after = list.get(item.place()..)?.trim_ascii_start();
    Some((kept, tokens, after.strip_prefix(b",").unwrap_or_default()))
}
