//! Lists of servers, merged into one: tools, prompts, resources and their templates.
//!
//! A list is taken apart once, and kept by whoever asks; what a client is shown are the servers' own items with other names.
//! Invariant: the order is that of the servers and then each server's own, so that a model's prompt with tools in it stays the same;
//! no two items are shown under one name.
//! Not here: which items somebody may see ([`policy::mcp`], asked for each), how long a list is kept (the host).

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use policy::mcp::{Glob, Odd, OnChange, Pins, Prefix, Seen};
use serde_json::value::RawValue;
use wire::json::Kind as Json;

use crate::discover::Fresh;
use crate::envelope::{members, text_of};
use crate::handshake::{Abilities, UNAVAILABLE, write_meta};
use crate::header::is_well_annotated;
use crate::{name, pin, reply};

/// Most items of one server that are kept.
pub const ITEMS_MAX: usize = 10_000;
/// Most bytes of one server's items that are kept.
pub const BYTES_MAX: usize = 16 << 20;
/// Most pages of one server's list that are asked for.
pub const PAGES_MAX: usize = 100;

/// What is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Tools.
    Tools,
    /// Prompts.
    Prompts,
    /// Resources.
    Resources,
    /// Templates of resources.
    Templates,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    /// Its place among all.
    #[must_use]
    pub const fn place(self) -> usize {
        self as usize
    }

    /// What a method lists.
    #[must_use]
    pub fn listed_by(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.method() == method)
    }

    /// The method that lists it.
    #[must_use]
    pub const fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    /// The servers that have it.
    #[must_use]
    pub const fn ability(self) -> Abilities {
        match self {
            Self::Tools => Abilities::TOOLS,
            Self::Prompts => Abilities::PROMPTS,
            Self::Resources | Self::Templates => Abilities::RESOURCES,
        }
    }

    /// The method by which one of it is used, as rules see it.
    #[must_use]
    pub const fn used_by(self) -> &'static str {
        match self {
            Self::Tools => "tools/call",
            Self::Prompts => "prompts/get",
            Self::Resources | Self::Templates => "resources/read",
        }
    }

    /// Whether it is named by a URI.
    #[must_use]
    pub const fn has_uri(self) -> bool {
        matches!(self, Self::Resources | Self::Templates)
    }

    const fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    const fn named_by(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }

    /// The whole name of a server's item, as rules and filters of routes know it.
    #[must_use]
    pub fn whole(self, server: &str, own: &str) -> String {
        if self.has_uri() {
            name::shown_uri(server, own)
        } else {
            name::whole(server, own)
        }
    }
}

/// One item of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its own name or URI.
    pub name: Box<str>,
    raw: Box<[u8]>,
    /// Where the name stands in it.
    at: Range<usize>,
}

/// What one server has of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    items: Vec<Item>,
    /// Bytes of them.
    bytes: usize,
    /// Their names, of those that were left out later, too.
    names: HashSet<Box<str>>,
    /// Those that are not as they are pinned and are refused for it.
    refused: HashSet<Box<str>>,
    /// How long it may be kept, and by whom, where its server says that.
    pub fresh: Option<Fresh>,
}

/// Why an answer is no list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server's answer is not a list, or has more than {ITEMS_MAX} items or 16 MiB of them")]
pub struct NoList;

impl Item {
    /// It, as the server wrote it.
    #[must_use]
    pub fn raw(&self) -> &[u8] {
        &self.raw
    }
}

impl Catalog {
    /// Adds a page of the list; the cursor of the next one, as a string of JSON. An item without a name that every reader reads alike is
    /// left out, as is one whose name an earlier one has.
    ///
    /// # Errors
    /// [`NoList`].
    pub fn add_page(&mut self, kind: Kind, result: &[u8]) -> Result<Option<Vec<u8>>, NoList> {
        let names = [kind.member(), "nextCursor"];
        let [list, cursor] = members(result, names, 0).map_err(|_| NoList)?;
        let Some((Json::Array, list, _)) = list else {
            return Err(NoList);
        };
        let list: Vec<&RawValue> = serde_json::from_slice(list).map_err(|_| NoList)?;
        if self.items.len() + list.len() > ITEMS_MAX {
            return Err(NoList);
        }
        for item in list {
            let raw = item.get().as_bytes();
            let Ok([Some(named)]) = members(raw, [kind.named_by()], 0) else {
                continue;
            };
            let Some(own) = text_of(&named) else { continue };
            let name: Box<str> = own.into();
            if !self.names.insert(name.clone()) {
                continue;
            }
            self.bytes += raw.len();
            if self.bytes > BYTES_MAX {
                return Err(NoList);
            }
            self.items.push(Item {
                name,
                raw: raw.into(),
                at: named.2,
            });
        }
        if let Some(page) = Fresh::read(result) {
            let all = self.fresh.get_or_insert(page);
            all.ttl_ms = all.ttl_ms.min(page.ttl_ms);
            all.is_public &= page.is_public;
        }
        match cursor {
            Some((Json::String, cursor, _)) if cursor != b"\"\"" => Ok(Some(cursor.to_vec())),
            _ => Ok(None),
        }
    }

    /// Whether one of these templates makes this URI: whatever stands in its braces.
    #[must_use]
    pub fn makes(&self, uri: &str, may_see: impl Fn(&str) -> bool) -> bool {
        let mut items = self.items.iter().filter(|item| may_see(&item.name));
        items.any(|item| pattern(&item.name).takes(uri))
    }

    /// Leaves out the tools whose servers say wrongly which of their arguments have headers: nobody can call them.
    pub fn leave_out_ill_annotated(&mut self) {
        self.items.retain(|item| is_well_annotated(&item.raw));
    }

    /// Compares the tools with their pins: what is to be told of those that are not as pinned, by name. Where such are refused, nobody sees them.
    pub fn compare(&mut self, pins: &Pins, seen: &Seen) -> Vec<(Box<str>, Odd)> {
        let digests = self
            .items
            .iter()
            .map(|item| (&*item.name, pin::of(&item.raw)));
        let odd = seen.compare(pins, digests);
        let named = odd.into_iter().filter_map(|odd| {
            let item = self.items.get(odd.at)?;
            Some((item.name.clone(), odd))
        });
        let mut named: Vec<(Box<str>, Odd)> = named.collect();
        if pins.on_change == OnChange::Refuse {
            self.refused = named.iter().map(|(name, _)| name.clone()).collect();
            let refused = &self.refused;
            self.items.retain(|item| !refused.contains(&item.name));
        }
        named.retain(|(_, odd)| odd.is_news);
        named
    }

    /// Whether a tool is refused, since it is not as it is pinned.
    #[must_use]
    pub fn is_refused(&self, own: &str) -> bool {
        self.refused.contains(own)
    }

    /// What is shown of it.
    pub fn items(&self) -> impl ExactSizeIterator<Item = &Item> {
        self.items.iter()
    }

    /// Those that are refused.
    pub fn refused(&self) -> impl ExactSizeIterator<Item = &str> {
        self.refused.iter().map(|name| &**name)
    }

    /// Whether the server listed this name, shown or left out.
    #[must_use]
    pub fn has(&self, own: &str) -> bool {
        self.names.contains(own)
    }

    /// The item of this name.
    #[must_use]
    pub fn find(&self, own: &str) -> Option<&Item> {
        self.items.iter().find(|item| *item.name == *own)
    }
}

/// A template of URIs (RFC 6570) as a pattern: each expression stands for any text.
fn pattern(template: &str) -> Glob {
    let mut pattern = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((text, after)) = rest.split_once('{') {
        let (_, after) = after.split_once('}').unwrap_or(("", ""));
        pattern.push_str(text);
        pattern.push('*');
        rest = after;
    }
    pattern.push_str(rest);
    Glob(pattern.into())
}

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
    prefix: Prefix,
    may_see: impl FnMut(&str, &str) -> bool,
) -> Vec<u8> {
    let shown = visible(kind, sources, prefix, may_see);
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

/// What clients see of several servers, in order: what two have under one name they see of neither, and of one that says nothing nothing.
#[must_use]
pub fn visible<'a>(
    kind: Kind,
    sources: &[Source<'a>],
    prefix: Prefix,
    may_see: impl FnMut(&str, &str) -> bool,
) -> Vec<Shown<'a>> {
    let mut shown = shown(kind, sources, prefix, may_see);
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
    prefix: Prefix,
    used: &str,
    may_see: impl FnMut(&str, &str) -> bool,
) -> Found<'a> {
    let shown = shown(kind, sources, prefix, may_see);
    let mut same = shown.iter().filter(|shown| shown.name == used);
    match (same.next(), same.next()) {
        (Some(one), None) => Found::One(one.server, &one.item.name),
        (Some(one), Some(other)) => Found::Two(one.server, other.server),
        (None, _) => Found::Nothing,
    }
}

fn shown<'a>(
    kind: Kind,
    sources: &[Source<'a>],
    prefix: Prefix,
    mut may_see: impl FnMut(&str, &str) -> bool,
) -> Vec<Shown<'a>> {
    let mut seen = Vec::new();
    for Source {
        server,
        catalog,
        last,
    } in sources
    {
        let items = catalog.or(*last).map_or(&[][..], |catalog| &*catalog.items);
        let items = items.iter().filter(|item| may_see(server, &item.name));
        seen.extend(items.map(|item| (*server, item)));
    }
    let mut bare: HashMap<&str, usize> = HashMap::new();
    if prefix == Prefix::OnConflict {
        for (_, item) in &seen {
            *bare.entry(&item.name).or_default() += 1;
        }
    }
    let shown = |(server, item): (&'a str, &'a Item)| {
        let own = &*item.name;
        let is_bare = match prefix {
            Prefix::Always => false,
            Prefix::Never => true,
            Prefix::OnConflict => bare.get(own).is_none_or(|count| *count < 2),
        };
        let name = match (kind.has_uri(), is_bare) {
            (true, true) => own.to_owned(),
            (true, false) => name::shown_uri(server, own),
            (false, true) => name::shown(own),
            (false, false) => name::shown(&name::whole(server, own)),
        };
        Shown { server, item, name }
    };
    seen.into_iter().map(shown).collect()
}

#[cfg(test)]
mod tests;
