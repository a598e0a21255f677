//! Why a body is not the JSON we asked for, and where. Always the sender's fault.
//!
//! Not here: how a fault becomes an answer (`policy`).

use std::fmt;

use super::fold::Spelling;

/// A fault and the absolute byte offset at which it was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct JsonFault {
    /// Bytes from the start of the body.
    pub offset: usize,
    /// What is wrong.
    pub kind: JsonFaultKind,
}

/// What is wrong with the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonFaultKind {
    /// No document at all.
    Empty,
    /// The body starts with a byte order mark.
    ByteOrderMark,
    /// A byte that the grammar does not allow here.
    Unexpected {
        /// The byte.
        found: u8,
        /// What would have been right.
        wanted: &'static str,
    },
    /// The body stops in the middle.
    Ends {
        /// What was expected next.
        wanted: &'static str,
    },
    /// Something follows the document.
    Trailing,
    /// A raw control character inside a string.
    Control(u8),
    /// A backslash followed by something that is not an escape.
    Escape,
    /// More containers inside one another than may be.
    TooDeep {
        /// So many: [`super::DEPTH_LIMIT`], or [`super::REQUEST_DEPTH_LIMIT`].
        most: u32,
    },
    /// A member that must be read appears twice.
    Duplicate {
        /// The member.
        path: &'static str,
    },
    /// A member stands there that some readers take for one that must be read.
    Ambiguous {
        /// The member that must be read.
        path: &'static str,
        /// The name that stands there.
        found: Spelling,
    },
    /// A member that must be read is too long.
    TooLong {
        /// The member.
        path: &'static str,
        /// Most bytes allowed.
        limit: usize,
    },
    /// Text that must be read is not UTF-8, or escapes half a surrogate pair.
    Text {
        /// The member, or nothing where the text is a key.
        path: Option<&'static str>,
    },
}

impl fmt::Display for JsonFaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Empty => f.write_str("the body is empty"),
            Self::ByteOrderMark => f.write_str("the body starts with a byte order mark"),
            Self::Unexpected { found, wanted } if found.is_ascii_graphic() => {
                write!(f, "expected {wanted}, found `{}`", char::from(found))
            }
            Self::Unexpected { found, wanted } => {
                write!(f, "expected {wanted}, found byte 0x{found:02x}")
            }
            Self::Ends { wanted } => write!(f, "the body ends where {wanted} was expected"),
            Self::Trailing => f.write_str("something follows the JSON document"),
            Self::Control(byte) => write!(f, "raw control character 0x{byte:02x} inside a string"),
            Self::Escape => f.write_str("a backslash starts no valid escape"),
            Self::TooDeep { most } => write!(f, "nested deeper than {most} levels"),
            Self::Duplicate { path } => write!(f, "`{path}` appears twice"),
            Self::Ambiguous { path, found } => {
                write!(f, "`{found}` is `{path}` to readers that ignore case")
            }
            Self::TooLong { path, limit } => write!(f, "`{path}` is longer than {limit} bytes"),
            Self::Text { path: Some(path) } => write!(f, "`{path}` is not valid Unicode text"),
            Self::Text { path: None } => f.write_str("a member name is not valid Unicode text"),
        }
    }
}
