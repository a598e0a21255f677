//! What a request names: a tool, a prompt, a resource.
//!
//! Invariant: what is read here is what the server reads: a name that stands twice or in another spelling is refused.
//! Not here: whose it is (`name`), whether it may be named ([`policy::mcp`]).

use std::borrow::Cow;
use std::ops::Range;

use wire::json::Kind as Json;

use crate::catalog::Kind;
use crate::envelope::{Fault, members, text_of};

/// What a request names, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target<'a> {
    /// What kind of thing.
    pub kind: Kind,
    /// Its name or URI, as clients see it.
    pub name: Cow<'a, str>,
    /// Where it stands in the message, quotes included.
    pub at: Range<usize>,
}

/// The thing that a request of this method names; `None` where a method names none.
///
/// # Errors
/// [`Fault`] where it should and does not, or does so in two ways.
pub fn of<'a>(
    method: &str,
    message: &'a [u8],
    params: Option<&Range<usize>>,
) -> Result<Option<Target<'a>>, Fault> {
    let (kind, member) = match method {
        "tools/call" => (Kind::Tools, "name"),
        "prompts/get" => (Kind::Prompts, "name"),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
            (Kind::Resources, "uri")
        }
        "completion/complete" => return completed(message, params).map(Some),
        _ => return Ok(None),
    };
    let (text, from) = within(message, params)?;
    let [named] = members(text, [member], from)?;
    let named = named.ok_or(Fault::NotRpc("`params` names nothing"))?;
    let name = text_of(&named).ok_or(Fault::NotRpc("the name in `params` must be a string"))?;
    if kind == Kind::Resources {
        has_one_reading(&name)?;
    }
    let at = named.2;
    Ok(Some(Target { kind, name, at }))
}

/// The prompt or the template of which an argument is to be completed.
fn completed<'a>(message: &'a [u8], params: Option<&Range<usize>>) -> Result<Target<'a>, Fault> {
    let (text, from) = within(message, params)?;
    let [reference] = members(text, ["ref"], from)?;
    let Some((Json::Object, text, at)) = reference else {
        return Err(Fault::NotRpc("`params.ref` must be an object"));
    };
    let [of, name, uri] = members(text, ["type", "name", "uri"], at.start)?;
    let (kind, named) = match of.as_ref().and_then(text_of).as_deref() {
        Some("ref/prompt") => (Kind::Prompts, name),
        Some("ref/resource") => (Kind::Templates, uri),
        _ => {
            return Err(Fault::NotRpc(
                "`params.ref.type` is ref/prompt or ref/resource",
            ));
        }
    };
    let named = named.ok_or(Fault::NotRpc("`params.ref` names nothing"))?;
    let name = text_of(&named).ok_or(Fault::NotRpc("the name in `params.ref` must be a string"))?;
    if kind == Kind::Templates {
        has_one_reading(&name)?;
    }
    let at = named.2;
    Ok(Target { kind, name, at })
}

/// Refuses a URI that parsers read in two ways: with characters that some of them leave out (blanks and controls; the URL Standard), and
/// one of a file that is not written as `file:///` and one name after the other. So it is where percent-encoding hides that, but for blanks.
///
/// # Errors
/// [`Fault`].
pub fn has_one_reading(uri: &str) -> Result<(), Fault> {
    if uri.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(Fault::NotRpc("the URI has a blank or a control character"));
    }
    is_written_once(uri)?;
    let mut read = Cow::Borrowed(uri);
    for _ in 0..policy::mcp::DECODED_TIMES {
        let decoded = wire::head::percent_decoded(&read);
        let decoded = String::from_utf8_lossy(&decoded).into_owned();
        if decoded == *read {
            break;
        }
        if decoded.contains(char::is_control) {
            return Err(Fault::NotRpc("the URI has an encoded control character"));
        }
        is_written_once(&decoded)?;
        read = Cow::Owned(decoded);
    }
    Ok(())
}

/// Whether a file's URI is written in the one way that every parser reads alike.
fn is_written_once(uri: &str) -> Result<(), Fault> {
    // A server's own prefix may stand before it.
    let lower = uri.to_ascii_lowercase();
    for (at, _) in lower.match_indices("file:") {
        let before = lower
            .get(..at)
            .and_then(|before| before.chars().next_back());
        if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '-' | '.')) {
            // The end of another scheme's name.
            continue;
        }
        let rest = lower.get(at + 5..).unwrap_or_default();
        let path = rest.strip_prefix("///");
        if path.is_none_or(|path| path.starts_with('/') || path.contains("//")) {
            return Err(Fault::NotRpc(
                "a file's URI is written file:///, without a host and with one slash between names",
            ));
        }
    }
    Ok(())
}

fn within<'a>(
    message: &'a [u8],
    params: Option<&Range<usize>>,
) -> Result<(&'a [u8], usize), Fault> {
    let params = params.ok_or(Fault::NotRpc("`params` is missing"))?;
    let text = message.get(params.clone()).unwrap_or_default();
    Ok((text, params.start))
}

#[cfg(test)]
mod tests;
