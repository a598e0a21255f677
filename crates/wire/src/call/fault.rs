//! Why a request body is refused: always the client's fault, with text good enough to answer with.
//!
//! Not here: the HTTP status (`policy`); every one of these is a 400.

use super::form::FormFault;
use crate::json::{JsonFault, JsonFaultKind, NUMBER_LIMIT_BYTES, Spelling};

/// A body that cannot be acted on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} (at byte {offset})")]
pub struct CallFault {
    /// The member at fault, where it is one.
    pub member: Option<&'static str>,
    /// Bytes from the start of the body.
    pub offset: u64,
    /// What is wrong.
    pub kind: CallFaultKind,
}

/// What is wrong with the call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallFaultKind {
    /// The body is not one JSON document.
    #[error("the request body is not valid JSON: {0}")]
    InvalidJson(JsonFaultKind),
    /// The body is JSON, but no object.
    #[error("the request body must be a JSON object")]
    NotAnObject,
    /// A member that is read here appears twice.
    #[error("the member `{0}` appears twice")]
    DuplicateMember(&'static str),
    /// A member stands there that some engines take for one that is read here.
    #[error(
        "the member `{found}` is read as `{member}` by some engines and not by others: \
         write `{member}`, once, or leave it out"
    )]
    AmbiguousMember {
        /// The member that is read here.
        member: &'static str,
        /// The name that stands there.
        found: Spelling,
    },
    /// A member has a value of the wrong kind.
    #[error("the member `{member}` must be {wanted}")]
    WrongType {
        /// The member.
        member: &'static str,
        /// What would have been right.
        wanted: &'static str,
    },
    /// A number is negative or too large.
    #[error("the member `{0}` must be an integer from 0 to 4294967295")]
    OutOfRange(&'static str),
    /// The model's name cannot be one.
    #[error("the member `model` must be 1 to 256 characters of A-Z a-z 0-9 . _ : / @ -")]
    BadModelName,
    /// The body is no form that every server reads in the same way.
    #[error("the request body is no form that can be read: {0}")]
    InvalidForm(FormFault),
    /// The body names a model, and the path does.
    #[error("the model is named in the path: leave the member `model` out")]
    ModelIsInPath,
    /// A request within the body names another model than the path does.
    #[error("a member `model` within the body must name the model of the path, or be left out")]
    AnotherModelThanThePaths,
}

impl CallFault {
    /// A stable name for clients, metrics and records.
    pub const fn code(&self) -> &'static str {
        match self.kind {
            CallFaultKind::InvalidJson(_) | CallFaultKind::NotAnObject => "invalid_json",
            CallFaultKind::DuplicateMember(_) => "duplicate_member",
            CallFaultKind::AmbiguousMember { .. } => "ambiguous_member",
            CallFaultKind::WrongType { .. } => "wrong_type",
            CallFaultKind::OutOfRange(_) => "out_of_range",
            CallFaultKind::BadModelName => "bad_model_name",
            CallFaultKind::InvalidForm(_) => "invalid_form",
            CallFaultKind::ModelIsInPath | CallFaultKind::AnotherModelThanThePaths => {
                "ambiguous_member"
            }
        }
    }

    pub(super) fn at(member: &'static str, offset: usize, kind: CallFaultKind) -> Self {
        Self {
            member: Some(member),
            offset: offset as u64,
            kind,
        }
    }
}

impl From<JsonFault> for CallFault {
    fn from(fault: JsonFault) -> Self {
        let (member, kind) = match fault.kind {
            JsonFaultKind::Duplicate { path } => (Some(path), CallFaultKind::DuplicateMember(path)),
            JsonFaultKind::Ambiguous { path, found } => (
                Some(path),
                CallFaultKind::AmbiguousMember {
                    member: path,
                    found,
                },
            ),
            JsonFaultKind::TooLong { path: "model", .. } => {
                (Some("model"), CallFaultKind::BadModelName)
            }
            JsonFaultKind::Text {
                path: Some("model"),
            } => (Some("model"), CallFaultKind::BadModelName),
            // All other members whose text is kept are counts: too long a number, or not even one.
            JsonFaultKind::TooLong {
                path,
                limit: NUMBER_LIMIT_BYTES,
            } => (Some(path), CallFaultKind::OutOfRange(path)),
            JsonFaultKind::TooLong { path, .. } | JsonFaultKind::Text { path: Some(path) } => (
                Some(path),
                CallFaultKind::WrongType {
                    member: path,
                    wanted: "an integer",
                },
            ),
            kind => (None, CallFaultKind::InvalidJson(kind)),
        };
        Self {
            member,
            offset: fault.offset as u64,
            kind,
        }
    }
}
