//! Edits of a body that leave every other byte as it came.
//!
//! Invariant: splices are sorted and do not overlap; what lies between them is shared, not copied.
//! Not here: whether an edit is wanted (`policy`).

use std::ops::Range;

use bytes::Bytes;

use super::head::{CallHead, IncludeUsage, StreamOptions};
use super::inner_models::InnerModel;

/// Replace these bytes of the body (none, for an insertion) with those.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Splice {
    /// Offsets in the body as it came.
    pub at: Range<usize>,
    /// The bytes to put there.
    pub with: Bytes,
}

/// The edits that give the call another model, or make its stream report usage.
///
/// `force_include_usage` does nothing to a call that is not a stream: engines refuse `stream_options`
/// there.
pub fn splices(
    head: &CallHead,
    model_override: Option<&str>,
    force_include_usage: bool,
) -> Vec<Splice> {
    let mut edits = Vec::new();
    if let Some(inner) = &head.by_path {
        let edit = |model| {
            let to = |inner: &InnerModel| Splice {
                at: inner.at.clone(),
                with: inner.naming(model).into(),
            };
            inner.list.iter().map(to).collect()
        };
        return model_override.map_or(edits, edit);
    }
    if head.is_form {
        return of_form(head, model_override);
    }
    let mut first_members: Vec<String> = Vec::new();
    if let Some(model) = model_override {
        match &head.model_at {
            Some(_) if head.model.as_deref() == Some(model) => {}
            Some(at) => edits.push(Splice {
                at: at.clone(),
                with: quoted(model).into(),
            }),
            None => first_members.push(format!("\"model\":{}", quoted(model))),
        }
    }
    if force_include_usage && head.stream {
        match &head.stream_options {
            StreamOptions::Absent => {
                first_members.push(r#""stream_options":{"include_usage":true}"#.to_owned())
            }
            StreamOptions::Null(at) => edits.push(fixed(at.clone(), r#"{"include_usage":true}"#)),
            StreamOptions::Object {
                include_usage: IncludeUsage::Yes,
                ..
            } => {}
            StreamOptions::Object {
                include_usage: IncludeUsage::No(at),
                ..
            } => edits.push(fixed(at.clone(), "true")),
            StreamOptions::Object {
                include_usage: IncludeUsage::Absent,
                open,
                empty: true,
            } => {
                edits.push(fixed(*open..*open, r#""include_usage":true"#));
            }
            StreamOptions::Object {
                include_usage: IncludeUsage::Absent,
                open,
                empty: false,
            } => {
                edits.push(fixed(*open..*open, r#""include_usage":true,"#));
            }
        }
    }
    if !first_members.is_empty() {
        let mut text = first_members.join(",");
        if !head.empty {
            text.push(',');
        }
        edits.push(Splice {
            at: head.open..head.open,
            with: text.into(),
        });
    }
    edits.sort_by_key(|edit| edit.at.start);
    edits
}

/// That of a form's field, which is not quoted. One that names no model cannot be given one.
#[cold]
fn of_form(head: &CallHead, model: Option<&str>) -> Vec<Splice> {
    let model = model.filter(|model| head.model.as_deref() != Some(model));
    let edit = model.zip(head.model_at.clone());
    let edit = edit.map(|(model, at)| Splice {
        at,
        with: model.to_owned().into(),
    });
    edit.into_iter().collect()
}

/// The body's length after the edits, in bytes.
pub fn spliced_len(length: usize, splices: &[Splice]) -> usize {
    let (added, removed) = splices
        .iter()
        .fold((0, 0), |(a, r), s| (a + s.with.len(), r + s.at.len()));
    (length + added).saturating_sub(removed)
}

/// The body after the edits, as slices of the rope with the new bytes between them.
pub fn apply(rope: &[Bytes], splices: &[Splice]) -> Vec<Bytes> {
    let mut body = Vec::with_capacity(rope.len() + 2 * splices.len());
    let mut edits = splices.iter().peekable();
    // Offset in the whole body before which everything is done or replaced.
    let mut done = 0;
    let mut base = 0;
    for piece in rope {
        let end = base + piece.len();
        // An insertion at the very end of a piece belongs to the next one.
        while let Some(edit) = edits.next_if(|edit| edit.at.start < end) {
            push_part(&mut body, piece, base, done..edit.at.start);
            body.push(edit.with.clone());
            done = edit.at.end;
        }
        push_part(&mut body, piece, base, done..end);
        done = done.max(end);
        base = end;
    }
    body.extend(edits.map(|edit| edit.with.clone()));
    body
}

fn push_part(body: &mut Vec<Bytes>, piece: &Bytes, base: usize, part: Range<usize>) {
    let from = part.start.max(base);
    if from < part.end {
        body.push(piece.slice(from - base..part.end - base));
    }
}

fn fixed(at: Range<usize>, with: &'static str) -> Splice {
    Splice {
        at,
        with: Bytes::from_static(with.as_bytes()),
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
