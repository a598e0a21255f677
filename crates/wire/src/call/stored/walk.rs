//! A walk through a whole body, to the first id that names what the provider keeps.
//!
//! Invariant: it goes past each byte once, and keeps a few words for each container that is open, of which the grammar allows 128.
//! Not here: which names matter (`rules`), the grammar, which the body has passed.

use super::rules::Rules;
use crate::call::cursor::Cursor;
use crate::json::{is_spelling, unescape};

/// What a refusal calls the id of an item that says no more than it.
const ITEM: &str = "input[].id";
/// What items have besides that which they say.
const SAID_OF_ITEMS: [&str; 4] = ["type", "id", "status", "role"];
/// No address that matters is longer; what stands in a body in its place, a document say, is.
const ADDRESS_BYTES: usize = 4 << 10;

/// The name of the first member that names what the provider keeps.
pub(super) fn named(body: &[u8], rules: &'static Rules) -> Option<&'static str> {
    let mut walk = Walk {
        cursor: Cursor { text: body, at: 0 },
        rules,
        open: Vec::new(),
        under: Under::Nothing,
    };
    while walk.cursor.at < body.len() {
        if let Some(name) = walk.step() {
            return Some(name);
        }
    }
    None
}

struct Walk<'a> {
    cursor: Cursor<'a>,
    rules: &'static Rules,
    open: Vec<Container>,
    /// Under which name the next value stands.
    under: Under,
}

/// What the name over a value makes of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Under {
    Nothing,
    /// An id, or a list of them.
    Ids(&'static str),
    /// Whatever it is, unless it is empty.
    Whole(&'static str),
    /// Whatever it is.
    Asked(&'static str),
    Address(&'static str),
    /// An object whose `id` is one.
    Holder(&'static str),
    Free,
    /// The conversation.
    Input,
    /// A template that the provider keeps, with what it is filled with.
    Template,
    Item(Says),
}

/// A member of an item of a conversation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Says {
    Type,
    /// In other letters, which some servers take for it.
    OtherType,
    Id,
    /// What a piece of reasoning is.
    Content,
    /// What a made image is.
    Result,
    Role,
}

/// A container that is open.
struct Container {
    under: Under,
    item: Option<Item>,
    /// It fills a template: what its members are called is the template's, and none is the caller's own text for that.
    fills: bool,
}

/// What an item of a conversation has said of itself.
#[derive(Default)]
struct Item {
    is_reference: bool,
    is_reasoning: bool,
    is_image: bool,
    has_type: bool,
    has_id: bool,
    has_content: bool,
    has_result: bool,
    has_role: bool,
    /// It has more than its id, its kind and whose it is.
    says_more: bool,
}

impl Container {
    /// What the body itself stands in.
    const OUTERMOST: Self = Self {
        under: Under::Nothing,
        item: None,
        fills: false,
    };
}

impl Walk<'_> {
    /// Goes past one token.
    fn step(&mut self) -> Option<&'static str> {
        match self.cursor.text.get(self.cursor.at)? {
            b'"' => {
                let raw = self.cursor.string();
                if self.cursor.next() == Some(b':') {
                    self.cursor.at += 1;
                    self.under = self.meaning(raw);
                    None
                } else {
                    self.value(Some(raw))
                }
            }
            b'{' | b'[' => self.enter(),
            b'}' | b']' => {
                self.cursor.at += 1;
                let item = self.open.pop().and_then(|closed| closed.item);
                item.filter(Item::is_named_alone).map(|_| ITEM)
            }
            b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' => {
                self.cursor.at += 1;
                None
            }
            first => {
                let says_nothing = matches!(first, b'n' | b'f');
                self.cursor.scalar();
                if says_nothing {
                    self.under = Under::Nothing;
                    return None;
                }
                self.value(None)
            }
        }
    }

    /// What a name makes of the value after it.
    fn meaning(&mut self, raw: &[u8]) -> Under {
        let name = unescape(raw).unwrap_or_default();
        // Some servers take a name in other letters for the one that they know.
        let is_called = |known: &str| is_spelling(name.as_bytes(), known.as_bytes());
        let known = |list: &'static [&'static str]| list.iter().copied().find(|it| is_called(it));
        let is_free = |list: &'static [&'static str]| list.iter().any(|free| **free == *name);
        let rules = self.rules;
        let is_null = self.cursor.next() == Some(b'n');
        let within = self.open.last_mut();
        if let Some(item) = within.and_then(|within| within.item.as_mut()) {
            item.says_more |= !is_null && !SAID_OF_ITEMS.into_iter().any(is_called);
        }
        if let Some(id) = known(rules.ids) {
            return Under::Ids(id);
        }
        if let Some(address) = known(rules.addresses) {
            return Under::Address(address);
        }
        let is_below = self.open.len() > 1;
        let at_top = || known(rules.whole_at_top).filter(|_| !is_below);
        if let Some(whole) = known(rules.whole).or_else(at_top) {
            return Under::Whole(whole);
        }
        if let Some(asked) = known(rules.asked) {
            return Under::Asked(asked);
        }
        let fills = self.open.last().is_some_and(|within| within.fills);
        if !fills && (is_free(rules.free) || (is_below && is_free(rules.free_below))) {
            return Under::Free;
        }
        let mut holders = rules.holders.iter();
        if let Some((_, called)) = holders.find(|(holder, _)| is_called(holder)) {
            return Under::Holder(called);
        }
        if is_called("input") && !fills {
            return Under::Input;
        }
        if is_called("prompt") {
            return Under::Template;
        }
        let Some(within) = self.open.last() else {
            return Under::Nothing;
        };
        match (within.under, &within.item) {
            (Under::Holder(called), _) if is_called("id") => return Under::Ids(called),
            (_, None) => return Under::Nothing,
            _ => {}
        }
        // What makes an item harmless is its own name alone.
        match &*name {
            "type" => Under::Item(Says::Type),
            "content" | "encrypted_content" => Under::Item(Says::Content),
            "result" => Under::Item(Says::Result),
            "role" => Under::Item(Says::Role),
            _ if is_called("id") => Under::Item(Says::Id),
            _ if is_called("type") => Under::Item(Says::OtherType),
            _ => Under::Nothing,
        }
    }

    /// A value that is no container, and neither null nor false; a text's raw bytes are given.
    fn value(&mut self, raw: Option<&[u8]>) -> Option<&'static str> {
        let under = std::mem::replace(&mut self.under, Under::Nothing);
        if raw == Some(b"") {
            return None;
        }
        let within = self.open.last_mut()?;
        // In a list of ids each is one.
        let under = match within.under {
            listed @ Under::Ids(_) if under == Under::Nothing => listed,
            _ => under,
        };
        match under {
            Under::Ids(name) | Under::Whole(name) | Under::Asked(name) => Some(name),
            Under::Address(name) => {
                let text = raw.map(beginning).and_then(unescape);
                let is_of_account = self.rules.is_of_account;
                text.is_none_or(|text| is_of_account(&text)).then_some(name)
            }
            Under::Item(says) => {
                if let Some(item) = &mut within.item {
                    item.hear(says, raw);
                }
                None
            }
            Under::Nothing | Under::Holder(_) | Under::Free | Under::Input | Under::Template => {
                None
            }
        }
    }

    fn enter(&mut self) -> Option<&'static str> {
        let under = std::mem::replace(&mut self.under, Under::Nothing);
        if under == Under::Free {
            self.cursor.container();
            return None;
        }
        if let Under::Asked(name) = under {
            return Some(name);
        }
        let is_list = self.cursor.text.get(self.cursor.at) == Some(&b'[');
        self.cursor.at += 1;
        let is_empty = matches!(self.cursor.next(), Some(b'}' | b']'));
        if let (Under::Whole(name), false) = (under, is_empty) {
            return Some(name);
        }
        let mut outermost = Container::OUTERMOST;
        let within = self.open.last_mut().unwrap_or(&mut outermost);
        if let (Under::Item(says), Some(item), false) = (under, within.item.as_mut(), is_empty) {
            item.hear(says, None);
        }
        let is_item = within.under == Under::Input && !is_list;
        // An object is no id, and what its members are they say themselves; nor is a list one of an item's texts.
        let under = match under {
            Under::Ids(_) | Under::Input if !is_list => Under::Nothing,
            Under::Item(_) | Under::Whole(_) => Under::Nothing,
            under => under,
        };
        let item = is_item.then(Item::default);
        let fills = within.fills || under == Under::Template;
        self.open.push(Container { under, item, fills });
        None
    }
}

/// The beginning of a text, cut between two of its characters.
fn beginning(raw: &[u8]) -> &[u8] {
    if raw.len() <= ADDRESS_BYTES {
        return raw;
    }
    let mut at = 0;
    while at < ADDRESS_BYTES {
        at += match (raw.get(at), raw.get(at + 1)) {
            (Some(b'\\'), Some(b'u')) => 6,
            (Some(b'\\'), _) => 2,
            _ => 1,
        };
    }
    while matches!(raw.get(at), Some(0x80..=0xbf)) {
        at += 1;
    }
    raw.get(..at).unwrap_or(raw)
}

impl Item {
    fn hear(&mut self, says: Says, raw: Option<&[u8]>) {
        match says {
            Says::Type | Says::OtherType => {
                let text = raw.and_then(unescape).unwrap_or_default();
                self.has_type |= says == Says::Type;
                self.is_reference |= text == "item_reference";
                self.is_reasoning |= text == "reasoning";
                self.is_image |= text == "image_generation_call";
            }
            Says::Id => self.has_id = true,
            Says::Content => self.has_content = true,
            Says::Result => self.has_result = true,
            Says::Role => self.has_role = true,
        }
    }

    /// Whether the provider has to know what it is.
    fn is_named_alone(&self) -> bool {
        let is_bare = !self.has_type && !self.has_role && !self.has_content;
        self.is_reference
            || (self.has_id
                && (is_bare
                    || !self.says_more
                    || (self.is_reasoning && !self.has_content)
                    || (self.is_image && !self.has_result)))
    }
}
