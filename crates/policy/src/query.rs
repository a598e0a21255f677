//! What of a query goes upstream: a list for each kind of operation, and nothing else; of plain HTTP all of it.
//!
//! Invariant: a member is kept byte for byte or dropped whole; a name is compared as it is written,
//! so that no other spelling of it passes, and a member in which a server could see two is dropped.
//! Not here: keys in a query, which are never on a list and count as credentials (`credential`).

use wire::head::percent_decoded;

use crate::operation::Operation;
use crate::snapshot::AddedMember;

/// Of a posted call: what Anthropic's SDK says of beta calls, and Azure's version of the API.
const POSTED: &[&str] = &["beta", "api-version"];
/// Of one whose path names its model: how its answer comes, where that is a form which the gate reads.
const NAMED: &[&str] = &["alt=sse"];
/// Of lists and of what is read back.
const UNREAD: &[&str] = &[
    "after",
    "after_id",
    "api-version",
    "before",
    "before_id",
    "beta",
    "include",
    "include[]",
    "include%5B%5D",
    "limit",
    "order",
    "purpose",
    "starting_after",
    "stream",
];
/// Of a WebSocket of the Realtime API, whose model is said anew.
const REALTIME: &[&str] = &["api-version", "call_id", "intent"];
/// Of the list of models.
const MODELS: &[&str] = &["after_id", "api-version", "before_id", "limit"];
/// Of Google's.
const GEMINI_MODELS: &[&str] = &["pageSize", "pageToken"];

/// The part of a query that goes upstream; `None` when nothing is left.
#[must_use]
pub fn forwarded(operation: Operation, query: &str) -> Option<String> {
    let list = match operation {
        Operation::Mcp => return None,
        Operation::Http => return Some(query.to_owned()),
        Operation::Models => MODELS,
        Operation::GeminiModels => GEMINI_MODELS,
        Operation::Unread => UNREAD,
        Operation::RealtimeSocket => REALTIME,
        Operation::GenerateContent | Operation::CountContent | Operation::EmbedContent => NAMED,
        _ => POSTED,
    };
    let is_kept = |member: &&str| {
        let (name, value) = member.split_once('=').unwrap_or((member, ""));
        (list.contains(&name) || list.contains(member)) && !value.contains([';', '='])
    };
    let kept: Vec<&str> = query.split('&').filter(is_kept).collect();
    (!kept.is_empty()).then(|| kept.join("&"))
}

/// The query of a session of the Realtime API, by the backend's name of its model.
#[must_use]
pub(crate) fn of_session(query: &str, model: Option<&str>) -> Option<String> {
    let kept = forwarded(Operation::RealtimeSocket, query);
    let model = model.map(|model| format!("model={}", encoded(model)));
    let members: Vec<String> = model.into_iter().chain(kept).collect();
    (!members.is_empty()).then(|| members.join("&"))
}

/// A model's name as it stands in a query: of its characters these have a meaning there.
fn encoded(model: &str) -> String {
    model
        .replace('/', "%2F")
        .replace(':', "%3A")
        .replace('@', "%40")
}

/// A query with these members, in place of those that have their names.
#[must_use]
pub(crate) fn with(query: Option<String>, ours: &[AddedMember]) -> Option<String> {
    if ours.is_empty() {
        return query;
    }
    let query = query.unwrap_or_default();
    let is_ours = |member: &&str| {
        let name = member.split('=').next().unwrap_or_default();
        let name = percent_decoded(name);
        ours.iter().any(|of| *of.name.as_bytes() == *name)
    };
    let theirs = query.split('&').filter(|m| !m.is_empty() && !is_ours(m));
    let mut members: Vec<String> = theirs.map(str::to_owned).collect();
    members.extend(ours.iter().map(|of| format!("{}={}", of.name, of.value)));
    Some(members.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Operation::{
        Chat, GeminiModels, GenerateContent, Messages, Models, Unread,
    };

    #[test]
    fn only_members_on_the_list_go_upstream_byte_for_byte() {
        let table = [
            (Messages, "beta=true", Some("beta=true")),
            (Messages, "beta=true&model=other", Some("beta=true")),
            (
                Chat,
                "api-version=2024-10-21",
                Some("api-version=2024-10-21"),
            ),
            (Chat, "limit=5", None),
            (GenerateContent, "alt=sse&key=k", Some("alt=sse")),
            (GenerateContent, "%24alt=json", None),
            (GenerateContent, "alt=proto", None),
            (GenerateContent, "alt=media&alt=sse", Some("alt=sse")),
            (GenerateContent, "alt=json%3Benum-encoding%3Dint", None),
            (GenerateContent, "alt=SSE&alt=json", None),
            (Chat, "a=b&_method=GET&key=k", None),
            (Chat, "Beta=true&%62eta=true&beta =1", None),
            (Chat, "", None),
            (
                Unread,
                "limit=5&after=file-1&key=k",
                Some("limit=5&after=file-1"),
            ),
            (
                Unread,
                "purpose=a%20b&include[]=x&include%5B%5D=y",
                Some("purpose=a%20b&include[]=x&include%5B%5D=y"),
            ),
            (Unread, "limit=5;_method=DELETE", None),
            (Unread, "limit=a=b", None),
            (Unread, "_method=DELETE&x-http-method-override=DELETE", None),
            (Unread, "stream", Some("stream")),
            (
                Models,
                "limit=2&after_id=m&beta=true",
                Some("limit=2&after_id=m"),
            ),
            (
                GeminiModels,
                "pageSize=2&key=k&pageToken=t",
                Some("pageSize=2&pageToken=t"),
            ),
        ];
        for (operation, query, expected) in table {
            assert_eq!(forwarded(operation, query).as_deref(), expected, "{query}");
        }
    }

    #[test]
    fn what_the_backend_adds_takes_the_place_of_the_clients() {
        let member = |name: &str, value: &str| AddedMember {
            name: name.into(),
            value: value.into(),
        };
        let one: &[AddedMember] = &[member("api-version", "2024-10-21")];
        let two = &[one, &[member("a", "x%20y")]].concat();
        let table = [
            (None, one, Some("api-version=2024-10-21")),
            (
                Some("beta=true"),
                one,
                Some("beta=true&api-version=2024-10-21"),
            ),
            (
                Some("api-version=1&beta=true&api-version"),
                one,
                Some("beta=true&api-version=2024-10-21"),
            ),
            (Some("%61pi-version=1"), one, Some("api-version=2024-10-21")),
            (
                Some("beta=true"),
                two,
                Some("beta=true&api-version=2024-10-21&a=x%20y"),
            ),
            (Some("beta=true"), &[], Some("beta=true")),
            (None, &[], None),
        ];
        for (query, ours, expected) in table {
            let query = query.map(str::to_owned);
            assert_eq!(with(query.clone(), ours).as_deref(), expected, "{query:?}");
        }
    }
}
