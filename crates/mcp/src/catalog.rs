//! Lists of servers: tools, prompts, resources and their templates.
//!
//! A list is taken apart once, and kept by whoever asks.
//! Invariant: an item is as its server wrote it, and a name stands for one.
//! Not here: several lists as one (`shown`), how long a list is kept (the host).

mod called;
mod shown;

use std::collections::HashSet;
use std::ops::Range;
use std::sync::OnceLock;

use policy::mcp::{Glob, Odd, OnChange, Pins, Seen as SeenPins};
use serde_json::value::RawValue;
use wire::json::Kind as Json;

use self::called::Called;
use crate::discover::Fresh;
use crate::envelope::{members, text_of};
use crate::handshake::Abilities;
use crate::header::is_well_annotated;
use crate::index::Index;
use crate::{name, pin};

pub use self::shown::{
    Found, Naming, Seen, Shown, Source, alike, found, fresh, merged, seen, visible,
};

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
    /// The words of its tools, cut when they are first looked for.
    index: OnceLock<Index>,
    /// Its items by what somebody may call them.
    called: Called,
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
    pub fn compare(&mut self, pins: &Pins, seen: &SeenPins) -> Vec<(Box<str>, Odd)> {
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

    /// Bytes of its items, as their server wrote them.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The words of its tools: once all pages are in it, and what nobody sees is left out.
    pub fn index(&self) -> &Index {
        let items = self.items.iter();
        let of = items.map(|item| (&*item.name, &*item.raw));
        self.index.get_or_init(|| Index::of(of))
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

#[cfg(test)]
mod tests;
