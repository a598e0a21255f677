//! Which call of files and batches a request is, by its method and path.
//!
//! Invariant: an id is one segment of letters, digits, `-` and `_`, byte for byte: one in escapes is none, and no call.
//! Not here: whether it is allowed (`policy`).

use super::Api;
use crate::dialect::Operation;
use crate::head::Method;

/// Longest id.
const ID_BYTES: usize = 128;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// A file is sent.
    Upload,
    /// Which files there are.
    Files,
    /// What is said of one.
    File,
    /// What is in one.
    Content,
    /// One is to go.
    RemoveFile,
    /// A batch is begun.
    Create,
    /// Which batches there are.
    Batches,
    /// How one stands.
    Batch,
    /// One is to end.
    Cancel,
    /// One is to be forgotten.
    Remove,
    /// What the calls of one came to.
    Results,
}

/// A call, and what it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named<'p> {
    /// What is asked for.
    pub asked: Asked,
    /// Of which file or batch; empty where it names none.
    pub id: &'p str,
    /// Whose API alone has it; files are of both.
    pub api: Option<Api>,
}

impl Named<'_> {
    /// What it is called in records.
    #[must_use]
    pub const fn operation(&self) -> Operation {
        match self.api {
            None => Operation::Files,
            Some(Api::OpenAi | Api::Anthropic) => Operation::Batches,
        }
    }
}

/// The call of files and batches that this is; the methods that its path takes, where it is none of them.
///
/// # Errors
/// The path is one of theirs, and takes other methods.
#[must_use]
pub fn asked(method: Method, path: &str) -> Option<Result<Named<'_>, &'static str>> {
    let rest = path.strip_prefix("/v1/")?;
    let (api, below) = if let Some(below) = below(rest, "files") {
        (None, below)
    } else if let Some(below) = below(rest, "batches") {
        (Some(Api::OpenAi), below)
    } else {
        (Some(Api::Anthropic), below(rest, "messages/batches")?)
    };
    let (id, word) = below.split_once('/').unwrap_or((below, ""));
    let is_bare = below.is_empty();
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    let is_id = (1..=ID_BYTES).contains(&id.len()) && id.bytes().all(is_plain);
    if !is_bare && !is_id || word.is_empty() && below.contains('/') {
        return None;
    }
    use Asked as A;
    let known: &[(Method, Asked)] = match (api, is_bare, word) {
        (None, true, _) => &[(Method::Get, A::Files), (Method::Post, A::Upload)],
        (None, false, "") => &[(Method::Get, A::File), (Method::Delete, A::RemoveFile)],
        (None, false, "content") => &[(Method::Get, A::Content)],
        (Some(_), true, _) => &[(Method::Get, A::Batches), (Method::Post, A::Create)],
        (Some(Api::OpenAi), false, "") => &[(Method::Get, A::Batch)],
        (Some(Api::Anthropic), false, "") => {
            &[(Method::Get, A::Batch), (Method::Delete, A::Remove)]
        }
        (Some(_), false, "cancel") => &[(Method::Post, A::Cancel)],
        (Some(Api::Anthropic), false, "results") => &[(Method::Get, A::Results)],
        _ => return None,
    };
    let found = known.iter().find(|(known, _)| *known == method);
    Some(match (found, known) {
        (Some((_, asked)), _) => Ok(Named {
            asked: *asked,
            id,
            api,
        }),
        (None, [(Method::Get, _), (Method::Post, _)]) => Err("GET, POST"),
        (None, [(Method::Get, _), _]) => Err("GET, DELETE"),
        (None, [(Method::Post, _)]) => Err("POST"),
        (None, _) => Err("GET"),
    })
}

/// What follows a collection in a path: nothing, or a segment and more.
fn below<'p>(rest: &'p str, collection: &str) -> Option<&'p str> {
    let below = rest.strip_prefix(collection)?;
    match below.strip_prefix('/') {
        Some("") => None,
        Some(below) => Some(below),
        None => below.is_empty().then_some(""),
    }
}
