//! The models that a call of Google's names within, besides the one of its path: `requests[].model` of
//! `batchEmbedContents`, `generateContentRequest.model` of `countTokens`
//! (<https://ai.google.dev/api/embeddings>, <https://ai.google.dev/api/tokens>).
//!
//! Invariant: each is the one of the path, or the call is refused: limits, prices and rules are asked for one model. A member
//! of this name counts wherever such a request could stand: in an object directly in the document, or in one of a list there.
//! Not here: the grammar (`json`, which has read the same bytes before and refuses what is no JSON).

use std::ops::Range;

use super::fault::{CallFault, CallFaultKind};
use crate::json::{Spelling, is_spelling, unescape};

/// How faults call it.
const MEMBER: &str = "model";
/// What stands before a name that is not of a collection of its own.
const COLLECTION: &str = "models/";
/// Most raw bytes of a text that is kept: the longest name, each of its characters escaped, with its collection.
const TEXT_LIMIT_BYTES: usize = 6 * (256 + COLLECTION.len());
/// Most models that one call names within.
const MODELS_LIMIT: usize = 4096;

/// Where a body names models within, and whether with their collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct InnerModel {
    /// The value, with its quotes.
    pub(super) at: Range<usize>,
    pub(super) has_collection: bool,
}

impl InnerModel {
    /// The value that names another model instead.
    pub(super) fn naming(&self, model: &str) -> String {
        let collection = if self.has_collection { COLLECTION } else { "" };
        serde_json::Value::from(format!("{collection}{model}")).to_string()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Container {
    Object,
    List,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Where a name or a value begins or has ended.
    Between,
    Text,
    Escape,
}

/// All of them, behind one pointer: most calls have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct InnerModels {
    pub(super) list: Vec<InnerModel>,
}

/// A look for them, beside the scan that checks the grammar.
#[derive(Debug)]
pub(super) struct InnerModelScanner {
    /// Bytes read.
    at: usize,
    depth: usize,
    /// The containers of the second and third depth; the first is an object.
    inner: [Container; 2],
    place: Place,
    /// A text that begins is the name of a member.
    is_name: bool,
    /// The value that follows is that of a member `model`.
    is_model: bool,
    /// The text being read, without its quotes, where it is looked at.
    text: Option<Vec<u8>>,
    text_at: usize,
    found: Vec<InnerModel>,
}

impl Default for InnerModelScanner {
    fn default() -> Self {
        Self {
            at: 0,
            depth: 0,
            inner: [Container::Object; 2],
            place: Place::Between,
            is_name: false,
            is_model: false,
            text: None,
            text_at: 0,
            found: Vec::new(),
        }
    }
}

impl InnerModelScanner {
    /// Reads the next bytes of a body, where its path names this model.
    pub(super) fn push(&mut self, chunk: &[u8], model: &str) -> Result<(), CallFault> {
        for byte in chunk {
            match self.place {
                Place::Escape => {
                    self.keep(*byte);
                    self.place = Place::Text;
                }
                Place::Text if *byte == b'"' => {
                    self.place = Place::Between;
                    self.text_ended(model)?;
                }
                Place::Text => {
                    self.keep(*byte);
                    if *byte == b'\\' {
                        self.place = Place::Escape;
                    }
                }
                Place::Between => self.between(*byte)?,
            }
            self.at += 1;
        }
        Ok(())
    }

    /// Where the body named models, once it is whole.
    pub(super) fn finish(self) -> InnerModels {
        InnerModels { list: self.found }
    }

    fn between(&mut self, byte: u8) -> Result<(), CallFault> {
        if matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b':') {
            return Ok(());
        }
        if self.is_model && !self.is_name && !matches!(byte, b'"' | b'n') {
            return Err(self.wrong_type());
        }
        match byte {
            b'"' => {
                self.place = Place::Text;
                self.text_at = self.at;
                let is_watched = self.is_model || (self.is_name && self.may_hold_a_model());
                self.text = is_watched.then(Vec::new);
            }
            b'{' => self.enter(Container::Object),
            b'[' => self.enter(Container::List),
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.is_name = false;
            }
            b',' => self.is_name = self.is_in_object(),
            // Of a number or a word.
            _ => self.is_model = false,
        }
        Ok(())
    }

    fn enter(&mut self, container: Container) {
        self.depth += 1;
        match self.depth {
            2 => self.inner[0] = container,
            3 => self.inner[1] = container,
            _ => {}
        }
        self.is_name = container == Container::Object;
    }

    /// Whether the next text is a name: of what is deeper than the third depth, that makes no difference.
    fn is_in_object(&self) -> bool {
        match self.depth {
            2 => self.inner[0] == Container::Object,
            3 => self.inner[1] == Container::Object,
            _ => true,
        }
    }

    /// Whether the members here are those of a request within.
    fn may_hold_a_model(&self) -> bool {
        match self.depth {
            2 => self.inner[0] == Container::Object,
            3 => self.inner == [Container::List, Container::Object],
            _ => false,
        }
    }

    fn keep(&mut self, byte: u8) {
        if let Some(text) = &mut self.text
            && text.len() <= TEXT_LIMIT_BYTES
        {
            text.push(byte);
        }
    }

    fn text_ended(&mut self, model: &str) -> Result<(), CallFault> {
        let raw = self.text.take();
        if self.is_name {
            self.is_name = false;
            let name = raw.as_deref().and_then(unescape);
            return match name.as_deref() {
                Some(MEMBER) => {
                    self.is_model = true;
                    Ok(())
                }
                Some(name) if is_spelling(name.as_bytes(), MEMBER.as_bytes()) => {
                    let kind = CallFaultKind::AmbiguousMember {
                        member: MEMBER,
                        found: Spelling::of(name.as_bytes()),
                    };
                    Err(CallFault::at(MEMBER, self.text_at, kind))
                }
                _ => Ok(()),
            };
        }
        if !std::mem::take(&mut self.is_model) {
            return Ok(());
        }
        let named = raw.as_deref().and_then(unescape);
        let is_the_same = |named: &str| named.strip_prefix(COLLECTION).unwrap_or(named) == model;
        match named.filter(|named| is_the_same(named)) {
            Some(named) if self.found.len() < MODELS_LIMIT => {
                self.found.push(InnerModel {
                    at: self.text_at..self.at + 1,
                    has_collection: named.starts_with(COLLECTION),
                });
                Ok(())
            }
            _ => {
                let kind = CallFaultKind::AnotherModelThanThePaths;
                Err(CallFault::at(MEMBER, self.text_at, kind))
            }
        }
    }

    fn wrong_type(&self) -> CallFault {
        let kind = CallFaultKind::WrongType {
            member: MEMBER,
            wanted: "a string",
        };
        CallFault::at(MEMBER, self.at, kind)
    }
}
