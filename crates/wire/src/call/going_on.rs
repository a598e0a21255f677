//! A call of the Responses API that goes on from a response that is kept, made into one that says all of it itself.
//!
//! Invariant: what the client says stands in the body byte for byte; the items before it are put where they belong, and the response that
//! they are of is named no more.
//! Not here: what is kept, and for whom (`policy`), what an item means (`translate`).

use std::ops::Range;

use crate::json::{self, Interest, Interests, Kind, Member, Repeat, Want};

/// An id is no longer.
const ID_BYTES: usize = 256;

static ASKED: Interests = Interests::new(&[
    Interest::new("input", Want::Place, Repeat::Refuse),
    Interest::new("previous_response_id", Want::Raw(ID_BYTES), Repeat::Refuse),
]);

/// What of a call says where it goes on from, and what it adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoingOn {
    /// The id of the response before it.
    pub previous: Option<Box<str>>,
    previous_at: Option<Range<usize>>,
    input: Option<Range<usize>>,
    /// Right after the brace that opens the body, and whether members follow.
    open: usize,
    is_empty: bool,
}

impl GoingOn {
    /// Reads a whole body. `None` where it is no object, or says a member twice.
    #[must_use]
    #[cold]
    pub fn read(body: &[u8]) -> Option<Self> {
        let mut scanner = json::Scanner::new(&ASKED);
        scanner.push(body).ok()?;
        let found = scanner.finish().ok()?;
        let said = |at| found.member(at).filter(|m: &&Member| m.kind != Kind::Null);
        let previous = said(1);
        let id = previous.and_then(|member| found.text(member));
        Some(Self {
            previous: id.map(|id| id.into()),
            previous_at: previous.map(|member| member.value.clone()),
            input: found.member(0).map(|member| member.value.clone()),
            open: found.open?,
            is_empty: found.empty,
        })
    }

    /// Its own input: a text or a list, as it stands in the body; empty where there is none.
    #[must_use]
    pub fn input<'b>(&self, body: &'b [u8]) -> &'b [u8] {
        let input = self.input.clone();
        input.and_then(|at| body.get(at)).unwrap_or_default()
    }

    /// Its own items, behind which stand these: a list.
    #[must_use]
    pub fn items_with(&self, body: &[u8], behind: &[u8]) -> Vec<u8> {
        let mut list = vec![b'['];
        put_items(self.input(body), &mut list);
        put_items(behind, &mut list);
        list.push(b']');
        list
    }

    /// The body with these items before its own: each a text or a list, as inputs and outputs are. It names no response.
    #[must_use]
    pub fn with_items<'i>(
        &self,
        body: &'i [u8],
        before: impl Iterator<Item = &'i [u8]>,
    ) -> Vec<u8> {
        let mut input = vec![b'['];
        before
            .chain([self.input(body)])
            .for_each(|items| put_items(items, &mut input));
        input.push(b']');
        let mut edits: Vec<(Range<usize>, Vec<u8>)> = Vec::new();
        match &self.input {
            Some(at) => edits.push((at.clone(), input)),
            None => {
                let comma: &[u8] = if self.is_empty { b"" } else { b"," };
                let member = [b"\"input\":", &*input, comma].concat();
                edits.push((self.open..self.open, member));
            }
        }
        if let Some(at) = &self.previous_at {
            edits.push((at.clone(), b"null".to_vec()));
        }
        edits.sort_by_key(|(at, _)| at.start);
        let more: usize = edits.iter().map(|(_, put)| put.len()).sum();
        let mut made = Vec::with_capacity(body.len() + more);
        let mut done = 0;
        for (at, put) in edits {
            made.extend_from_slice(body.get(done..at.start).unwrap_or_default());
            made.extend_from_slice(&put);
            done = at.end;
        }
        made.extend_from_slice(body.get(done..).unwrap_or_default());
        made
    }
}

/// Puts the items of an input or an output behind those that stand in an open list.
pub(super) fn put_items(items: &[u8], list: &mut Vec<u8>) {
    const MESSAGE: &[u8] = b"{\"type\":\"message\",\"role\":\"user\",\"content\":";
    let items = items.trim_ascii();
    let (before, inner, after): (&[u8], &[u8], &[u8]) = match items {
        [b'[', inner @ .., b']'] => (b"", inner.trim_ascii(), b""),
        [b'"', ..] => (MESSAGE, items, b"}"),
        _ => return,
    };
    if inner.is_empty() {
        return;
    }
    if list.len() > 1 {
        list.push(b',');
    }
    for part in [before, inner, after] {
        list.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    //! Bodies as clients write them.

    use super::GoingOn;

    #[test]
    fn items_before_stand_first_and_the_rest_is_byte_for_byte() {
        for (body, made) in [
            (
                r#"{"model":"m","previous_response_id":"resp_1","input":"and?"}"#,
                r#"{"model":"m","previous_response_id":null,"input":[{"a":1},{"b":2},{"type":"message","role":"user","content":"and?"}]}"#,
            ),
            (
                r#"{"input": [ {"c":3} ] , "previous_response_id" : "resp_1" }"#,
                r#"{"input": [{"a":1},{"b":2},{"c":3}] , "previous_response_id" : null }"#,
            ),
            (
                r#"{"previous_response_id":"resp_1","input":[]}"#,
                r#"{"previous_response_id":null,"input":[{"a":1},{"b":2}]}"#,
            ),
            (
                r#"{"previous_response_id":"resp_1","input":null}"#,
                r#"{"previous_response_id":null,"input":[{"a":1},{"b":2}]}"#,
            ),
            (
                r#"{"previous_response_id":"\u0072esp_1"}"#,
                r#"{"input":[{"a":1},{"b":2}],"previous_response_id":null}"#,
            ),
        ] {
            let going = GoingOn::read(body.as_bytes()).expect("a body");
            assert_eq!(going.previous.as_deref(), Some("resp_1"), "{body}");
            let before: [&[u8]; 3] = [br#"[{"a":1}]"#, b"[ ]", br#" [{"b":2}]"#];
            let whole = going.with_items(body.as_bytes(), before.into_iter());
            assert_eq!(String::from_utf8(whole).expect("text"), made);
        }
    }

    #[test]
    fn a_body_that_names_nothing_or_says_it_twice_goes_on_from_nothing() {
        for body in [r#"{"input":"a"}"#, r#"{"previous_response_id":null}"#] {
            assert_eq!(
                GoingOn::read(body.as_bytes()).expect("a body").previous,
                None
            );
        }
        for body in [
            r#"{"previous_response_id":"a","previous_response_id":"b"}"#,
            "[]",
            "{",
        ] {
            assert_eq!(GoingOn::read(body.as_bytes()), None, "{body}");
        }
    }
}
