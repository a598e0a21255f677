//! What was found: each member's kind and place, and the bytes that were kept.
//!
//! Invariant: all kept bytes lie in one place (`keep`), bounded by the sum of what the interests may keep.
//! Not here: when to keep (`scan`).

use std::borrow::Cow;
use std::ops::Range;

use super::elements::Elements;
use super::interest::{INTEREST_LIMIT, Interests};
use super::keep::Kept;
use super::text::unescape;

/// The bound of a member whose bytes are counted and not kept.
pub(super) const COUNTED: usize = usize::MAX;

/// The kind of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true`
    True,
    /// `false`
    False,
    /// A number, as written.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// One member that was asked for and is there. Offsets are absolute, in bytes of the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Where the opening quote of the key is.
    pub key: usize,
    /// The value, quotes or brackets included.
    pub value: Range<usize>,
    /// What the value is.
    pub kind: Kind,
    /// Whether a container holds nothing. True for other kinds.
    pub empty: bool,
    /// Whether bytes were asked for and the value was longer than the bound.
    pub cut: bool,
    kept: Range<u32>,
}

impl Member {
    pub(super) fn at(key: usize) -> Self {
        Self {
            key,
            value: 0..0,
            kind: Kind::Null,
            empty: true,
            cut: false,
            kept: 0..0,
        }
    }
}

/// The members of a complete, valid document.
#[derive(Clone, Debug)]
pub struct Found {
    /// The offset right after the opening brace, where the document is an object.
    pub open: Option<usize>,
    /// Whether the document is an object without members.
    pub empty: bool,
    /// Length of the body in bytes.
    pub length: usize,
    /// What the list holds that is the value of the member that wants this.
    pub elements: Elements,
    /// Whether a member has a name that is watched for ([`Interests::watching`]).
    pub has_watched: bool,
    members: [Option<Member>; INTEREST_LIMIT],
    kept: Kept,
}

impl Found {
    pub(super) const fn new() -> Self {
        Self {
            open: None,
            empty: true,
            length: 0,
            elements: Elements::NONE,
            has_watched: false,
            members: [const { None }; INTEREST_LIMIT],
            kept: Kept::new(),
        }
    }

    /// The member at this place in the list of interests.
    pub fn member(&self, interest: usize) -> Option<&Member> {
        self.members.get(interest)?.as_ref()
    }

    /// The kept bytes of a member: a string with its quotes, or any other value as written.
    pub fn raw(&self, member: &Member) -> &[u8] {
        let kept = member.kept.start as usize..member.kept.end as usize;
        self.kept.bytes().get(kept).unwrap_or_default()
    }

    /// The text of a string member whose bytes were kept. `None` where it is no text.
    pub fn text(&self, member: &Member) -> Option<Cow<'_, str>> {
        unescape(self.raw(member).strip_prefix(b"\"")?.strip_suffix(b"\"")?)
    }

    pub(super) fn slot(&mut self, interest: u8) -> Option<&mut Member> {
        self.members.get_mut(usize::from(interest))?.as_mut()
    }

    /// Enters a member, forgetting an earlier one of the same name and its children.
    pub(super) fn enter(&mut self, interests: &Interests, interest: u8, key: usize) {
        if self.has(interest) {
            self.forget(usize::from(interest));
            let inside = interests.inside(interest);
            (0..INTEREST_LIMIT)
                .filter(|child| inside >> child & 1 == 1)
                .for_each(|child| self.forget(child));
        }
        if let Some(slot) = self.members.get_mut(usize::from(interest)) {
            *slot = Some(Member::at(key));
        }
    }

    pub(super) fn has(&self, interest: u8) -> bool {
        self.member(usize::from(interest)).is_some()
    }

    /// Starts keeping bytes for a member.
    pub(super) fn keep_from_here(&mut self, interest: u8) {
        let end = place(self.kept.len());
        if let Some(member) = self.slot(interest) {
            member.kept = end..end;
        }
    }

    /// Keeps bytes of a member, unless that passes its bound; then it keeps nothing of it.
    pub(super) fn keep(&mut self, interest: u8, bytes: &[u8], bound: usize) {
        if bound == COUNTED {
            return self.elements.read(bytes);
        }
        let Some(member) = self
            .members
            .get_mut(usize::from(interest))
            .and_then(Option::as_mut)
        else {
            return;
        };
        if member.cut {
            return;
        }
        if member.kept.len() + bytes.len() > bound {
            member.cut = true;
            self.kept
                .remove(member.kept.start as usize..self.kept.len());
            member.kept.end = member.kept.start;
            return;
        }
        self.kept.extend(bytes);
        member.kept.end = place(self.kept.len());
    }

    #[cold]
    fn forget(&mut self, at: usize) {
        let Some(gone) = self.members.get_mut(at).and_then(Option::take) else {
            return;
        };
        let kept = gone.kept;
        self.kept.remove(kept.start as usize..kept.end as usize);
        for member in self
            .members
            .iter_mut()
            .flatten()
            .filter(|m| m.kept.start >= kept.end)
        {
            member.kept.start -= kept.end - kept.start;
            member.kept.end -= kept.end - kept.start;
        }
    }
}

/// Kept bytes are bounded far below this.
fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
