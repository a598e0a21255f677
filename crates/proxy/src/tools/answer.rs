//! What a client is answered: messages whole, and refusals as errors of JSON-RPC.
//!
//! Invariant: an error says what was refused in its request's own terms, with its id, and in HTTP's by the status beside it.
//! Not here: which refusal has which status (`policy::refusal`), streams (`stream`).

use std::rc::Rc;

use mcp::reply;
use mcp::version::Version;
use policy::refusal::Refusal;

use crate::call::{self, Call, Stop};
use crate::client::{BodyLength, Downstream};
use crate::reply::{PIECE_BYTES, hints};
use crate::worker_snapshot::WorkerSnapshot;

/// Answers with a message, and says the session that it opens.
pub(super) async fn message<D: Downstream>(
    call: &mut Call,
    client: &mut D,
    body: &[u8],
    session: Option<&str>,
) -> Result<(), Stop> {
    let code = call.facts.is_modern.then(|| reply::code_of(body));
    let status = match code.flatten() {
        Some(reply::METHOD_NOT_FOUND) => 404,
        Some(reply::HEADER_MISMATCH | reply::CAPABILITY_MISSING | reply::VERSION_UNSUPPORTED) => {
            400
        }
        _ => 200,
    };
    client.begin(status, BodyLength::Length(body.len() as u64));
    client.date();
    client.field(b"content-type", b"application/json");
    if let Some(session) = session {
        client.field(b"mcp-session-id", session.as_bytes());
    }
    call.head_ends(client, status);
    sent(call, client, body, true).await
}

/// Answers that a message was taken: 202 for what is not answered, 200 for the end of a session.
pub(super) async fn taken<D: Downstream>(
    call: &mut Call,
    client: &mut D,
    status: u16,
) -> Result<(), Stop> {
    client.begin(status, BodyLength::Length(0));
    client.date();
    call.head_ends(client, status);
    sent(call, client, b"", true).await
}

/// Says why a message was refused; `id` is its request's as written, or `null`.
pub(super) async fn refused<D: Downstream>(call: &mut Call, client: &mut D, id: &[u8]) {
    let Some(refusal) = call.refusal() else {
        return;
    };
    let mut told = refusal.reply();
    let challenge = told.challenge.and_then(|_| challenge(call, &refusal));
    if challenge.is_some() {
        told.challenge = None;
    }
    let is_modern = call.facts.is_modern;
    let number = number(&refusal, is_modern);
    let further = match &refusal {
        Refusal::McpVersionUnknown { requested } => versions(requested),
        _ => Vec::new(),
    };
    let body = reply::error_with(id, number, &told.message, told.code, &further);
    let status = match &refusal {
        // As the version without sessions has it.
        Refusal::McpMethod { .. } if is_modern => 404,
        _ => told.status,
    };
    client.begin(status, BodyLength::Length(body.len() as u64));
    client.date();
    client.field(b"content-type", b"application/json");
    hints(client, &told);
    if let Some(challenge) = challenge {
        client.field(b"www-authenticate", challenge.as_bytes());
    }
    call.head_ends(client, status);
    // Whoever is gone is told nothing, and the record says why it was refused.
    let _gone = sent(call, client, &body, true).await;
}

/// The code of a refusal in JSON-RPC.
fn number(refusal: &Refusal, is_modern: bool) -> i32 {
    match refusal {
        Refusal::McpMessage { number, .. } => *number,
        Refusal::McpMethod { .. } => reply::METHOD_NOT_FOUND,
        Refusal::McpHeader { .. } => reply::HEADER_MISMATCH,
        Refusal::McpVersionUnknown { .. } => reply::VERSION_UNSUPPORTED,
        Refusal::McpNotFound { what, .. } if *what == "resource" && !is_modern => {
            reply::RESOURCE_NOT_FOUND
        }
        Refusal::McpNotFound { .. } | Refusal::McpAmbiguous { .. } | Refusal::McpState => {
            reply::INVALID_PARAMS
        }
        refusal if refusal.is_failure() => reply::INTERNAL,
        _ if is_modern => reply::REFUSED_MODERN,
        _ => reply::REFUSED,
    }
}

/// What an error says of the versions that are spoken here.
fn versions(requested: &str) -> Vec<u8> {
    let spoken = Version::OF_CLIENTS.map(|version| format!("\"{}\"", version.as_str()));
    let mut out = format!(r#","supported":[{}],"requested":"#, spoken.join(",")).into_bytes();
    out.extend(reply::string(requested));
    out
}

/// How a client finds who gives it a token, where the gate tells that.
fn challenge(call: &Call, refusal: &Refusal) -> Option<String> {
    let (config, _) = Call::config(&call.view)?;
    let path = call.record().map_or(0, |record| record.mcp_path);
    let resource = config.oauth.as_ref()?.resources.get(usize::from(path))?;
    let fault = match refusal {
        Refusal::CredentialMissing => "",
        _ => ", error=\"invalid_token\"",
    };
    Some(format!(
        "Bearer resource_metadata=\"{}\"{fault}",
        resource.metadata_url
    ))
}

/// Sends part of an answer.
pub(super) async fn sent<D: Downstream>(
    call: &mut Call,
    client: &mut D,
    body: &[u8],
    end: bool,
) -> Result<(), Stop> {
    let _waiting = Waiting::new(&call.view, body.len());
    call::sent(call, client, body, end).await
}

/// A long answer counts among the answers that a worker holds until its client has it.
pub(super) struct Waiting {
    view: Rc<WorkerSnapshot>,
    bytes: usize,
}

impl Waiting {
    pub(super) fn new(view: &Rc<WorkerSnapshot>, bytes: usize) -> Self {
        let bytes = if bytes > PIECE_BYTES { bytes } else { 0 };
        if let Some((_, tools)) = Call::config(view).filter(|_| bytes > 0) {
            tools.waits(bytes);
        }
        Self {
            view: Rc::clone(view),
            bytes,
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some((_, tools)) = Call::config(&self.view).filter(|_| self.bytes > 0) {
            tools.waits_no_more(self.bytes);
        }
    }
}
