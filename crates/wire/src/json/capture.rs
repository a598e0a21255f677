//! What the scanner captures of the members of interest: their kind and place, and bytes to keep.
//!
//! Invariant: nothing is captured of values deeper than two containers.
//! Not here: the grammar (`scan`), what was captured (`found`).

use super::fault::JsonFaultKind;
use super::fold::Spelling;
use super::found::{COUNTED, Kind, Member};
use super::interest::{Repeat, Want};
use super::scan::{At, Keeping, Scanner};
use super::text::unescape;
use super::{NUMBER_LIMIT_BYTES, STRING_LIMIT_BYTES};

/// Longer keys are never compared: no name of interest can be written in so many bytes.
pub(super) const KEY_LIMIT_BYTES: usize = 64 * 6;

impl Scanner {
    /// A value starts directly in the document, or in a member of it.
    pub(super) fn capture_start(&mut self, at: usize, kind: Kind) {
        let depth = self.stack.depth;
        if depth == 0 {
            self.found.open = (kind == Kind::Object).then_some(self.base + at + 1);
            return;
        }
        if depth > 2 {
            return;
        }
        if !self.stack.in_object() {
            self.capture_not_empty();
            return;
        }
        let Some((interest, asked)) = self
            .open_at(depth)
            .and_then(|i| Some((i, self.interests.list.get(usize::from(i))?)))
        else {
            return;
        };
        self.found.keep_from_here(interest);
        if let Some(member) = self.found.slot(interest) {
            member.kind = kind;
            member.value.start = self.base + at;
        }
        let bound = match (asked.want, kind) {
            (Want::Scalar, Kind::String) => STRING_LIMIT_BYTES + 2,
            (Want::Scalar, Kind::Number) => NUMBER_LIMIT_BYTES,
            (Want::Raw(bound), _) => bound,
            (Want::Elements, Kind::Array) => COUNTED,
            (Want::Scalar | Want::Place | Want::Elements, _) => 0,
        };
        if bound > 0 {
            self.keeping = Some(Keeping {
                interest,
                depth,
                bound,
                from: at,
            });
        }
        if depth == 1 && kind == Kind::Object && self.interests.inside(interest) != 0 {
            self.parent = Some(interest);
        }
    }

    /// The content of a container of interest, with the bracket that closes it.
    pub(super) fn capture_content(&mut self, content: &[u8]) {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
        let first = content.iter().find(|byte| !blank(byte));
        if let Some(member) = self
            .open_at(self.stack.depth)
            .and_then(|i| self.found.slot(i))
        {
            member.empty = matches!(first, Some(b'}' | b']'));
        }
    }

    /// Something stands in the container that is the value of a member.
    fn capture_not_empty(&mut self) {
        if let Some(member) = self
            .open_at(1)
            .filter(|_| self.stack.depth == 2)
            .and_then(|i| self.found.slot(i))
        {
            member.empty = false;
        }
    }

    #[inline]
    pub(super) fn capture_end(&mut self, chunk: &[u8], end: usize) -> Result<(), At> {
        let slot = match self.stack.depth {
            1 => self.open.first_mut(),
            _ if self.stack.in_object() => self.open.last_mut(),
            _ => None,
        };
        match slot.and_then(Option::take) {
            None => Ok(()),
            Some(interest) => self.end_member(chunk, end, interest),
        }
    }

    fn end_member(&mut self, chunk: &[u8], end: usize, interest: u8) -> Result<(), At> {
        let depth = self.stack.depth;
        if let Some(keeping) = self
            .keeping
            .take_if(|k| k.interest == interest && k.depth == depth)
        {
            let last = chunk.get(keeping.from..end).unwrap_or_default();
            self.found.keep(interest, last, keeping.bound);
        }
        let base = self.base;
        let Some(member) = self.found.slot(interest) else {
            return Ok(());
        };
        member.value.end = base + end;
        let place = usize::from(interest);
        let found = &self.found;
        match (self.interests.list.get(place), found.member(place)) {
            (Some(asked), Some(member)) if asked.want == Want::Scalar => {
                let is_text = || found.text(member).is_some();
                check_scalar(asked.path, member, is_text)
            }
            _ => Ok(()),
        }
    }

    #[inline]
    pub(super) fn start_key(&mut self, at: usize) {
        let depth = self.stack.depth;
        self.watch_key = depth == 1 || depth == 2 && self.parent.is_some();
        if depth > 1 {
            self.capture_not_empty();
        }
        self.found.empty = false;
        self.key_at = self.base + at;
    }

    /// The closing quote of the watched key, which is not plain or came in parts, is at `end` in this chunk.
    pub(super) fn match_key(&mut self, chunk: &[u8], end: usize) -> Result<(), At> {
        let mut raw = std::mem::take(&mut self.key_start);
        if self.base + end - self.key_at - 1 > KEY_LIMIT_BYTES {
            return Ok(());
        }
        let here = chunk
            .get((self.key_at + 1).saturating_sub(self.base)..end)
            .unwrap_or_default();
        raw.extend_from_slice(here);
        let name = unescape(&raw).ok_or((self.key_at, JsonFaultKind::Text { path: None }))?;
        self.match_name(name.as_bytes())
    }

    /// The watched key is this one.
    pub(super) fn match_name(&mut self, name: &[u8]) -> Result<(), At> {
        let parent = self.parent.filter(|_| self.stack.depth > 1);
        let Some(interest) = self.interests.find(parent, name) else {
            if parent.is_none() && self.interests.is_watched(name) {
                self.found.has_watched = true;
                return Ok(());
            }
            let Some(path) = self.interests.spelled(parent, name) else {
                return Ok(());
            };
            let found = Spelling::of(name);
            return Err((self.key_at, JsonFaultKind::Ambiguous { path, found }));
        };
        if let Some(asked) = self.interests.list.get(usize::from(interest))
            && asked.repeat == Repeat::Refuse
            && self.found.has(interest)
        {
            return Err((self.key_at, JsonFaultKind::Duplicate { path: asked.path }));
        }
        self.found.enter(self.interests, interest, self.key_at);
        let [outer, inner] = &mut self.open;
        let slot = if self.stack.depth == 1 { outer } else { inner };
        *slot = Some(interest);
        Ok(())
    }

    /// Copies what is needed of this chunk before it goes.
    pub(super) fn carry(&mut self, chunk: &[u8], in_key: bool) {
        if let Some(keeping) = &mut self.keeping {
            let rest = chunk.get(keeping.from..).unwrap_or_default();
            self.found.keep(keeping.interest, rest, keeping.bound);
            keeping.from = 0;
        }
        if in_key && self.watch_key && self.key_start.len() <= KEY_LIMIT_BYTES {
            let here = chunk
                .get((self.key_at + 1).saturating_sub(self.base)..)
                .unwrap_or_default();
            let room = (KEY_LIMIT_BYTES + 1).saturating_sub(self.key_start.len());
            self.key_start
                .extend_from_slice(here.get(..room).unwrap_or(here));
        }
    }

    #[inline]
    pub(super) fn open_at(&self, depth: u32) -> Option<u8> {
        let [outer, inner] = self.open;
        if depth == 1 { outer } else { inner }
    }
}

fn check_scalar(
    path: &'static str,
    member: &Member,
    is_text: impl FnOnce() -> bool,
) -> Result<(), At> {
    let fault = match member.kind {
        Kind::String if member.cut => JsonFaultKind::TooLong {
            path,
            limit: STRING_LIMIT_BYTES,
        },
        _ if member.cut => JsonFaultKind::TooLong {
            path,
            limit: NUMBER_LIMIT_BYTES,
        },
        Kind::String if !is_text() => JsonFaultKind::Text { path: Some(path) },
        _ => return Ok(()),
    };
    Err((member.value.start, fault))
}
