//! Which members a reader asks for: top-level ones, and those one level below.
//!
//! A member that may come once only may not come in other letters either: its other spellings are refused.
//! Not here: the matching while bytes arrive (`scan`), what was found (`found`), what a spelling is (`fold`).

use super::fold::{Spelling, is_lower, is_spelling, more_bytes};

/// One member to find.
#[derive(Debug)]
pub struct Interest {
    /// How faults call it: `model`, or `stream_options.include_usage`.
    pub path: &'static str,
    parent: Option<&'static str>,
    pub(super) name: &'static str,
    pub(super) want: Want,
    pub(super) repeat: Repeat,
}

/// How much of the value is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Kind and place only.
    Place,
    /// The raw bytes of a string or a number, within the limits of this module; longer is a fault.
    Scalar,
    /// The raw bytes of any value up to this many; past it the member says that it is cut.
    Raw(usize),
    /// Of a list, how many values of which kind it holds; of one member only.
    Elements,
}

/// What a second appearance means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// A fault, in any spelling: two readers could differ on which one counts.
    Refuse,
    /// The last one counts.
    LastWins,
}

impl Interest {
    /// A member by its path: a name, or a name within an object named by the path's first part.
    ///
    /// A path of two parts needs its first part in the same list, and that one must not want `Raw`.
    pub const fn new(path: &'static str, want: Want, repeat: Repeat) -> Self {
        let (parent, name) = split_path(path);
        Self {
            path,
            parent,
            name,
            want,
            repeat,
        }
    }
}

/// The most members that can be asked for.
pub(super) const INTEREST_LIMIT: usize = 18;
const NAME_LIMIT_BYTES: usize = 32;

/// A list of members, with what makes most other keys cheap to pass by.
#[derive(Debug)]
pub struct Interests {
    pub(super) list: &'static [Interest],
    /// For each length of a name, the interests whose name is so long.
    by_length: [Set; NAME_LIMIT_BYTES],
    /// Those directly in the document.
    top: Set,
    /// For each interest, those inside of it.
    inside: [Set; INTEREST_LIMIT],
    /// Names directly in the document that nobody asks for here, and that may have one spelling only too.
    others: &'static [&'static str],
    /// Such names of which it is told whether one is there.
    watched: &'static [&'static str],
    /// For each first letter, by its lowest five bits, a bit for each length that a spelling can have of a
    /// name that may have one only.
    spellings: [u64; 32],
}

/// Bit n: the interest at place n of the list.
pub(super) type Set = u32;

impl Interests {
    /// A list of members, each below the length and together below the number that this module allows;
    /// more does not compile.
    pub const fn new(list: &'static [Interest]) -> Self {
        Self::with_others(list, &[])
    }

    /// The same, with names besides of which only the spelling is looked at.
    #[expect(
        clippy::indexing_slicing,
        reason = "evaluated when compiling, where a fault is a compile error"
    )]
    pub const fn with_others(list: &'static [Interest], others: &'static [&'static str]) -> Self {
        assert!(
            list.len() <= INTEREST_LIMIT,
            "too many members are asked for"
        );
        let mut interests = Self {
            list,
            by_length: [0; NAME_LIMIT_BYTES],
            top: 0,
            inside: [0; INTEREST_LIMIT],
            others,
            watched: &[],
            spellings: [0; 32],
        };
        let mut at = 0;
        while at < list.len() {
            interests.by_length[list[at].name.len()] |= 1 << at;
            if matches!(list[at].repeat, Repeat::Refuse) {
                interests.add_spellings(list[at].name);
            }
            match list[at].parent {
                None => interests.top |= 1 << at,
                Some(parent) => {
                    let mut outer = 0;
                    while !is_same(list[outer].path.as_bytes(), parent.as_bytes()) {
                        outer += 1;
                    }
                    interests.inside[outer] |= 1 << at;
                }
            }
            at += 1;
        }
        at = 0;
        while at < others.len() {
            interests.add_spellings(others[at]);
            at += 1;
        }
        interests
    }

    /// The same, with names besides of which it is told whether one is there ([`super::Found::has_watched`]), and which may have one
    /// spelling only.
    #[expect(
        clippy::indexing_slicing,
        reason = "evaluated when compiling, where a fault is a compile error"
    )]
    pub const fn watching(mut self, watched: &'static [&'static str]) -> Self {
        self.watched = watched;
        let mut at = 0;
        while at < watched.len() {
            self.add_spellings(watched[at]);
            at += 1;
        }
        self
    }

    /// Whether this name, directly in the document, is one that is watched for.
    #[inline]
    pub(super) fn is_watched(&self, name: &[u8]) -> bool {
        self.watched
            .iter()
            .any(|watched| watched.as_bytes() == name)
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "evaluated when compiling, where a fault is a compile error"
    )]
    const fn add_spellings(&mut self, name: &str) {
        let longest = name.len() + more_bytes(name);
        assert!(longest <= Spelling::LIMIT_BYTES, "a name is too long");
        let mut length = name.len();
        while length <= longest {
            self.spellings[name.as_bytes()[0] as usize & 0x1f] |= 1 << length;
            length += 1;
        }
    }

    /// The path of the member that some reader takes this name for, which is the name of no member: `find`
    /// has found none.
    #[inline]
    pub(crate) fn spelled(&self, parent: Option<u8>, name: &[u8]) -> Option<&'static str> {
        let first = *name.first()?;
        let lengths = self.spellings.get(usize::from(first & 0x1f))?;
        let may_be = first >= 0x80 || name.len() < 64 && lengths >> name.len() & 1 == 1;
        if !may_be || is_lower(name) {
            return None;
        }
        self.look_up(parent, name)
    }

    #[cold]
    fn look_up(&self, parent: Option<u8>, name: &[u8]) -> Option<&'static str> {
        let among = parent.map_or(self.top, |parent| self.inside(parent));
        let listed = self.list.iter().enumerate().find(|(at, asked)| {
            among >> at & 1 == 1
                && asked.repeat == Repeat::Refuse
                && is_spelling(name, asked.name.as_bytes())
        });
        if let Some((_, asked)) = listed {
            return Some(asked.path);
        }
        // Of a name that has capital letters itself nobody can say which other ones are meant.
        let watched = self.watched.iter().filter(|name| is_lower(name.as_bytes()));
        let others = self.others.iter().chain(watched);
        let mut others = others.filter(|_| parent.is_none());
        others
            .find(|other| is_spelling(name, other.as_bytes()))
            .copied()
    }

    /// The member of this name, directly in the document or in the object that is interest `parent`.
    #[inline]
    pub(super) fn find(&self, parent: Option<u8>, name: &[u8]) -> Option<u8> {
        let among = parent.map_or(self.top, |parent| self.inside(parent));
        let mut left = self.by_length.get(name.len())? & among;
        while left != 0 {
            let at = left.trailing_zeros() as u8;
            if self.list.get(usize::from(at))?.name.as_bytes() == name {
                return Some(at);
            }
            left &= left - 1;
        }
        None
    }

    /// The members asked for inside of this one.
    #[inline]
    pub(super) fn inside(&self, interest: u8) -> Set {
        self.inside
            .get(usize::from(interest))
            .copied()
            .unwrap_or_default()
    }
}

/// Whether two names are equal, when compiling.
pub(crate) const fn is_same(mut a: &[u8], mut b: &[u8]) -> bool {
    while let ([first, after @ ..], [other, beyond @ ..]) = (a, b) {
        if *first != *other {
            return false;
        }
        (a, b) = (after, beyond);
    }
    a.is_empty() && b.is_empty()
}

/// The object that holds a member, where it is not directly in the document, and the member's name in it.
pub(crate) const fn split_path(path: &'static str) -> (Option<&'static str>, &'static str) {
    let mut at = 0;
    let mut rest = path.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        if *byte == b'.' {
            let (parent, dotted) = path.split_at(at);
            let (_, name) = dotted.split_at(1);
            return (Some(parent), name);
        }
        at += 1;
        rest = after;
    }
    (None, path)
}
