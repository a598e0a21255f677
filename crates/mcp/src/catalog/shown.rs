//! Lists of several servers, merged into one: what a client is shown are the servers' own items with other names.
//!
//! Invariant: the order is that of the servers and then each server's own, so that a model's prompt with tools in it stays the same;
//! no two items are shown under one name.
//! Not here: which items somebody may see ([`policy::mcp`], asked for each).

use std::borrow::Cow;
use std::collections::HashMap;

use policy::mcp::Prefix;

use super::{Catalog, Item, Kind};
use crate::discover::Fresh;
use crate::handshake::{UNAVAILABLE, write_meta};
use crate::{name, reply};

/// Longest name for which others are looked for that are like it.
const WRITTEN_BYTES_MAX: usize = 256;

/// A server with what it has.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Its name.
    pub server: &'a str,
    /// What it has, where it said.
    pub catalog: Option<&'a Catalog>,
    /// What it said last, where it says nothing now. Names without a server's stay those of whoever had them: else another server could wait
    /// until one is away, and take its calls.
    pub last: Option<&'a Catalog>,
}

/// How names are shown. A bare one that begins as another server's do would take that server's calls: it stands behind its own server's name.
#[derive(Debug, Clone)]
pub struct Naming<'a> {
    prefix: Prefix,
    servers: Vec<&'a str>,
}

/// An item with the name that clients see.
#[derive(Debug, Clone)]
pub struct Shown<'a> {
    /// Its server.
    pub server: &'a str,
    /// It.
    pub item: &'a Item,
    /// The name.
    pub name: String,
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found<'a> {
    /// One server's item.
    One(&'a str, &'a str),
    /// Nothing.
    Nothing,
    /// Items of these two servers have that name, and it stands for neither.
    Two(&'a str, &'a str),
}

/// The result of a list, of what `may_see` says may be seen of each server.
#[must_use]
pub fn merged(
    kind: Kind,
    sources: &[Source<'_>],
    naming: &Naming<'_>,
    may_see: impl FnMut(&str, &str) -> bool,
) -> Vec<u8> {
    let shown = visible(kind, sources, naming, may_see);
    let mut out = format!("{{\"{}\":[", kind.member()).into_bytes();
    let mut is_first = true;
    for Shown { item, name, .. } in &shown {
        if !std::mem::take(&mut is_first) {
            out.push(b',');
        }
        out.extend(reply::spliced(
            &item.raw,
            item.at.clone(),
            &reply::string(name),
        ));
    }
    out.push(b']');
    let silent = sources.iter().filter(|source| source.catalog.is_none());
    let silent: Vec<&str> = silent.map(|source| source.server).collect();
    write_meta(UNAVAILABLE, &silent, &mut out);
    out.push(b'}');
    out
}

/// An item that clients see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its list, by its place among the sources.
    pub list: usize,
    /// Its place there.
    pub at: usize,
    /// The name that clients see; none where that is the whole name.
    pub name: Option<String>,
}

/// The same as [`visible`], without the names and items of many.
#[must_use]
pub fn seen(
    kind: Kind,
    sources: &[Source<'_>],
    naming: &Naming<'_>,
    mut may_see: impl FnMut(&str, &str) -> bool,
) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut shown = match naming.prefix {
        // Whole names are different ones.
        Prefix::Always => None,
        _ => Some(
            visible(kind, sources, naming, &mut may_see)
                .into_iter()
                .peekable(),
        ),
    };
    for (list, source) in sources.iter().enumerate() {
        let items = source.catalog.map_or(&[][..], |catalog| &*catalog.items);
        for (at, item) in items.iter().enumerate() {
            let name = match &mut shown {
                None => may_see(source.server, &item.name).then_some(None),
                Some(shown) => {
                    let is_it = |of: &Shown<'_>| std::ptr::eq(of.item, item);
                    shown.next_if(is_it).map(|of| Some(of.name))
                }
            };
            seen.extend(name.map(|name| Seen { list, at, name }));
        }
    }
    seen
}

/// What clients see of several servers, in order: what two have under one name they see of neither, and of one that says nothing nothing.
#[must_use]
pub fn visible<'a>(
    kind: Kind,
    sources: &[Source<'a>],
    naming: &Naming<'_>,
    may_see: impl FnMut(&str, &str) -> bool,
) -> Vec<Shown<'a>> {
    one_each(shown(kind, sources, naming, may_see), sources)
}

/// Of what has one name with another neither, and of servers that say nothing nothing.
fn one_each<'a>(mut shown: Vec<Shown<'a>>, sources: &[Source<'a>]) -> Vec<Shown<'a>> {
    let mut count: HashMap<&str, usize> = HashMap::new();
    for item in &shown {
        *count.entry(&item.name).or_default() += 1;
    }
    let says = |server: &str| {
        let mut sources = sources.iter();
        sources.any(|source| source.server == server && source.catalog.is_some())
    };
    let is_one =
        |of: &Shown<'_>| count.get(&*of.name).is_none_or(|count| *count < 2) && says(of.server);
    let are_one: Vec<bool> = shown.iter().map(is_one).collect();
    let mut are_one = are_one.into_iter();
    shown.retain(|_| are_one.next().unwrap_or(true));
    shown
}

/// How long a merged list may be kept, and by whom: `unless_said` for lists of servers that do not say it. One in which a server is missing
/// is out of date at once.
#[must_use]
pub fn fresh(sources: &[Source<'_>], unless_said: Fresh, is_public: bool) -> Fresh {
    let start = Fresh {
        ttl_ms: unless_said.ttl_ms,
        is_public,
    };
    sources.iter().fold(start, |all, source| {
        let of = source.catalog.map(|catalog| catalog.fresh);
        let of = of.map_or(
            Fresh {
                ttl_ms: 0,
                is_public: false,
            },
            |said| said.unwrap_or(unless_said),
        );
        Fresh {
            ttl_ms: all.ttl_ms.min(of.ttl_ms),
            is_public: all.is_public && of.is_public,
        }
    })
}

/// What the name stands for that a client uses, of what it may see.
#[must_use]
pub fn found<'a>(
    kind: Kind,
    sources: &[Source<'a>],
    naming: &Naming<'_>,
    used: &str,
    mut may_see: impl FnMut(&str, &str) -> bool,
) -> Found<'a> {
    let own = own_names(kind, sources, used);
    let mut seen = Vec::new();
    for source in sources {
        let items = own.iter().filter_map(|own| source.list()?.find(own));
        let items = items.filter(|item| may_see(source.server, &item.name));
        seen.extend(items.map(|item| (source.server, item)));
    }
    let shown = named(kind, naming, seen);
    let mut same = shown.iter().filter(|shown| shown.name == used);
    match (same.next(), same.next()) {
        (Some(one), None) => Found::One(one.server, &one.item.name),
        (Some(one), Some(other)) => Found::Two(one.server, other.server),
        (None, _) => Found::Nothing,
    }
}

/// The own names, each once, of all that may be shown under a name: it may be bare or stand behind its server's, and be the beginning of a
/// longer one. Whether one is bare depends on all servers that have it.
fn own_names<'a>(kind: Kind, sources: &[Source<'a>], used: &'a str) -> Vec<&'a str> {
    let split = match kind.has_uri() {
        true => name::split_uri(used),
        false => name::split(used),
    };
    let mut own = vec![used];
    own.extend(split.map(|(_, own)| own));
    if let (false, Some(start)) = (kind.has_uri(), name::start_of_shortened(used)) {
        let behind = name::split(start).map(|(_, own)| own);
        for source in sources {
            let starts = [Some(start), behind].into_iter().flatten();
            let items = starts.flat_map(|start| source.list().map(|list| list.beginning(start)));
            own.extend(items.flatten().map(|item| &*item.name));
        }
    }
    own.sort_unstable();
    own.dedup();
    own
}

/// What clients see that somebody may have meant who wrote a name that nothing has.
#[must_use]
pub fn alike(
    kind: Kind,
    sources: &[Source<'_>],
    naming: &Naming<'_>,
    written: &str,
    mut may_see: impl FnMut(&str, &str) -> bool,
) -> Vec<String> {
    if written.len() > WRITTEN_BYTES_MAX {
        return Vec::new();
    }
    let mut seen = Vec::new();
    for source in sources {
        let Some(list) = source.list() else { continue };
        let letters = name::meant_letters(written, source.server).into_iter();
        let items = letters.flatten().flat_map(|letters| list.lettered(letters));
        let mut items: Vec<&Item> = items
            .filter(|item| name::may_mean(written, source.server, &item.name))
            .collect();
        // In the list's order, each once.
        items.sort_by_key(|item| std::ptr::from_ref(*item));
        items.dedup_by(|a, b| std::ptr::eq(*a, *b));
        items.retain(|item| may_see(source.server, &item.name));
        seen.extend(items.into_iter().map(|item| (source.server, item)));
    }
    let shown = one_each(named(kind, naming, seen), sources);
    shown.into_iter().map(|of| of.name).collect()
}

impl<'a> Naming<'a> {
    /// The same for a route: all its servers are named, those that have nothing of a kind too.
    pub fn of(prefix: Prefix, servers: impl Iterator<Item = &'a str>) -> Self {
        let servers = servers.collect();
        Self { prefix, servers }
    }

    /// Whether a server's own name may stand without that server's: not where it begins as names of another one do. Where names get their
    /// servers' as others have them too, it may not begin as its own server's do: another server could have it be two.
    fn may_be_bare(&self, kind: Kind, server: &str, own: &str) -> bool {
        let first = self.behind(kind, own).map(|(first, _)| first);
        match self.prefix {
            Prefix::Always => false,
            Prefix::Never => first.is_none_or(|first| first == server),
            Prefix::OnConflict => first.is_none(),
        }
    }

    /// The server of the route that a name begins with, and what stands behind.
    fn behind<'n>(&self, kind: Kind, shown: &'n str) -> Option<(&'n str, &'n str)> {
        let split = match kind.has_uri() {
            true => name::split_uri(shown),
            false => name::split(shown),
        };
        split.filter(|(first, _)| self.servers.contains(first))
    }

    /// A server's own URI of one that clients use and nobody lists: none where it begins with another server's name.
    #[must_use]
    pub fn own_uri<'n>(&self, server: &str, used: &'n str) -> Option<&'n str> {
        match self.behind(Kind::Resources, used) {
            Some((first, _)) if first != server => None,
            Some((_, own))
                if self.prefix == Prefix::OnConflict
                    || !self.may_be_bare(Kind::Resources, server, own) =>
            {
                Some(own)
            }
            _ => Some(used),
        }
    }
}

impl<'a> Source<'a> {
    /// What it has, or had when it said that last.
    fn list(&self) -> Option<&'a Catalog> {
        self.catalog.or(self.last)
    }
}

pub(super) fn shown<'a>(
    kind: Kind,
    sources: &[Source<'a>],
    naming: &Naming<'_>,
    mut may_see: impl FnMut(&str, &str) -> bool,
) -> Vec<Shown<'a>> {
    let mut seen = Vec::new();
    for source in sources {
        let items = source.list().map_or(&[][..], |list| &*list.items);
        let items = items.iter();
        let items = items.filter(|item| may_see(source.server, &item.name));
        seen.extend(items.map(|item| (source.server, item)));
    }
    named(kind, naming, seen)
}

/// Items with the names that clients see, of all that have those names.
fn named<'a>(kind: Kind, naming: &Naming<'_>, seen: Vec<(&'a str, &'a Item)>) -> Vec<Shown<'a>> {
    let bare = |own: &'a str| match kind.has_uri() {
        true => Cow::Borrowed(own),
        false => name::shown(own),
    };
    let mut count: HashMap<Cow<'a, str>, usize> = HashMap::new();
    if naming.prefix == Prefix::OnConflict {
        for (_, item) in &seen {
            *count.entry(bare(&item.name)).or_default() += 1;
        }
    }
    let shown = |(server, item): (&'a str, &'a Item)| {
        let own = &*item.name;
        let is_bare = naming.may_be_bare(kind, server, own)
            && (count.is_empty() || count.get(&bare(own)).is_none_or(|count| *count < 2));
        let name = match (kind.has_uri(), is_bare) {
            (_, true) => bare(own).into_owned(),
            (true, false) => name::shown_uri(server, own),
            (false, false) => name::shown(&name::whole(server, own)).into_owned(),
        };
        Shown { server, item, name }
    };
    seen.into_iter().map(shown).collect()
}
