//! Sessions of the Realtime API over a WebSocket: which model one is of, and what its client may say.
//!
//! Invariant: a session, and each answer on it, is of a model that its caller's rules lead to its backend.
//! Not here: who may open a session (`exchange::socket`), what its answers hold and cost (`exchange::spoken`), keys among its sub-protocols
//! (`credential`), messages (`wire::call`), who waits for them (the host).

use wire::dialect::model_name;
use wire::head::{RequestHead, percent_decoded};

use crate::caller::Caller;
use crate::id::WorkloadId;
use crate::refusal::Refusal;
use crate::route::{self, Chosen};
use crate::snapshot::Snapshot;

/// What a client may say. Anything else is refused by its name: nobody knows what it would cost.
pub const EVENTS: [&str; 12] = [
    "session.update",
    "transcription_session.update",
    "input_audio_buffer.append",
    "input_audio_buffer.commit",
    "input_audio_buffer.clear",
    "output_audio_buffer.clear",
    "conversation.item.create",
    "conversation.item.retrieve",
    "conversation.item.truncate",
    "conversation.item.delete",
    "response.create",
    "response.cancel",
];

fn members<'q>(query: &'q str, name: &'q str) -> impl Iterator<Item = &'q str> {
    query.split('&').filter_map(move |member| {
        let (named, value) = member.split_once('=').unwrap_or((member, ""));
        (*percent_decoded(named) == *name.as_bytes()).then_some(value)
    })
}

/// The model that the address names.
///
/// # Errors
/// It is no name, or there are several.
pub(crate) fn model(head: &RequestHead) -> Result<Option<String>, Refusal> {
    let mut named = members(head.query().unwrap_or_default(), "model");
    let (Some(value), second) = (named.next(), named.next()) else {
        return Ok(None);
    };
    let decoded = percent_decoded(value);
    match (model_name(&decoded), second) {
        (Some(name), None) => Ok(Some(name.to_owned())),
        _ => {
            let says = "the query names no model, or several: one `model=NAME`";
            Err(Refusal::RealtimeEvent { says: says.into() })
        }
    }
}

/// Whether the session is to be one that the provider has already, of a call by telephone or from a page.
pub(crate) fn names_call(head: &RequestHead) -> bool {
    let query = head.query().unwrap_or_default();
    members(query, "call_id").next().is_some()
}

/// The rule that takes a session, or one answer on it, by its model.
///
/// # Errors
/// No rule takes it, or its caller may not ask for it.
pub fn route<'s>(
    s: &'s Snapshot,
    workload: WorkloadId,
    caller: Option<&Caller>,
    model: Option<&str>,
) -> Result<Chosen<'s>, Refusal> {
    if let Some(caller) = caller.filter(|caller| !caller.models.is_empty()) {
        match model {
            None => return Err(Refusal::OwnModelRequired),
            Some(model) if !caller.may_ask(model) => {
                return Err(Refusal::ModelNotOwn {
                    model: model.to_owned(),
                });
            }
            Some(_) => {}
        }
    }
    match model {
        None => route::unrestricted(s, workload),
        model => route::choose(s, workload, model),
    }
}

#[cfg(test)]
mod tests;
