//! Which members a reader asks for: top-level ones, and those one level below.
//!
//! Not here: the matching while bytes arrive (`scan`), what was found (`capture`).

/// One member to find.
#[derive(Debug)]
pub struct Interest {
    /// How faults call it: `model`, or `stream_options.include_usage`.
    pub path: &'static str,
    pub(super) parent: Option<&'static str>,
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
}

/// What a second appearance means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// A fault: two readers could differ on which one counts.
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

/// A list of members, with what makes most other keys cheap to pass by.
#[derive(Debug)]
pub struct Interests {
    pub(super) list: &'static [Interest],
    /// Bit n: some interest's name has n bytes.
    lengths: u64,
}

impl Interests {
    /// At most 255 members, with names shorter than 64 bytes.
    pub const fn new(list: &'static [Interest]) -> Self {
        let mut lengths = 0;
        let mut rest = list;
        while let Some((interest, after)) = rest.split_first() {
            lengths |= 1 << (interest.name.len() % 64);
            rest = after;
        }
        Self { list, lengths }
    }

    /// The member of this name, directly in the document or in the object at `parent`.
    #[inline]
    pub(super) fn find(&self, parent: Option<&'static str>, name: &[u8]) -> Option<u8> {
        if name.len() >= 64 || (self.lengths >> name.len()) & 1 == 0 {
            return None;
        }
        let at = self
            .list
            .iter()
            .position(|i| i.name.as_bytes() == name && i.parent == parent)?;
        u8::try_from(at).ok()
    }

    pub(super) fn has_children(&self, path: &'static str) -> bool {
        self.list.iter().any(|i| i.parent == Some(path))
    }
}

const fn split_path(path: &'static str) -> (Option<&'static str>, &'static str) {
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
