//! `tollgate explain`: what the gate would make of a call, without making it.
//!
//! The call goes through the machine that decides over calls in a gate (`policy::exchange`), with limits and budgets of
//! which nothing is used. Nothing is sent upstream, nothing is written.
//! Not here: what a call is decided by (`policy`), how the answer reads (`said`).

mod arguments;
mod said;
mod tools;

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use policy::caller::Peer;
use policy::clock::Mono;
use policy::exchange::{Answer, Env, Exchange, Question, Verdict};
use policy::record::Record;
use policy::refusal::{LocalReply, Refusal};
use policy::revision::Revision;
use policy::shard::Shard;
use policy::snapshot::Snapshot;
use wire::dialect::gemini::Named;
use wire::head::RequestHead;
use wire::http1::{Limits, Step, parse_request};

pub(crate) use self::arguments::Explain;
use crate::running::{load, publication};
use crate::services::{Moment, Services, now_s};
use crate::source::Source;
use crate::width;
use crate::world::World;

/// How long the keys of issuers are waited for.
const KEYS_WITHIN: Duration = Duration::from_secs(5);
/// The variable that may hold the client's credential.
const CREDENTIAL: &str = "TOLLGATE_CREDENTIAL";

/// What became of the call.
struct Outcome {
    record: Record,
    /// The call has the header that may name its workload.
    is_named: bool,
    /// The gate's refusal; none where the call would go upstream, or is answered with names of models.
    refused: Option<LocalReply>,
    /// Of a call of a tool.
    tool: Option<tools::ToolOutcome>,
}

/// Says what the gate would make of a call; the second part is whether it would let it in.
///
/// # Errors
/// The configuration is faulty, or the call cannot be read.
pub(crate) fn explain(asked: &Explain) -> Result<(String, bool), String> {
    let source = Source::of(asked.config.as_deref());
    let loaded = load(source.file(), &World).map_err(|faults| faults.to_string())?;
    let services = Services::default();
    let moment = Moment::Start(&services);
    let (_, current) = publication(loaded, Revision::first, &World, moment)?;
    let revision = &current.revision;
    let text = request(asked)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let outcome = runtime.block_on(judged(asked, &text, revision))?;
    let is_let_in = outcome.refused.is_none();
    let snapshot = &revision.snapshot;
    let said = if asked.json {
        said::json(&outcome, snapshot)
    } else {
        let width = width::of(std::io::stdout());
        said::text(&outcome, snapshot, width)
    };
    Ok((said, is_let_in))
}

/// The call's head and body as a client would send them.
fn request(asked: &Explain) -> Result<(Vec<u8>, Vec<u8>), String> {
    let body = match (&asked.body, &asked.model) {
        (Some(file), _) => std::fs::read(file)
            .map_err(|error| format!("cannot read {}: {error}", file.display()))?,
        (None, Some(_)) if names_model(&asked.path) => b"{}".to_vec(),
        (None, Some(model)) => serde_json::json!({ "model": model })
            .to_string()
            .into_bytes(),
        (None, None) => b"{}".to_vec(),
    };
    let names_host = |header: &String| {
        let name = header.split(':').next().unwrap_or_default();
        name.eq_ignore_ascii_case("host")
    };
    let host = if asked.header.iter().any(names_host) {
        ""
    } else {
        "host: localhost\r\n"
    };
    let path = if asked.tool.is_some() {
        policy::mcp::PATH
    } else {
        &asked.path
    };
    let mut head = format!("{} {path} HTTP/1.1\r\n{host}", asked.method);
    if asked.method == "POST" {
        head.push_str(&format!(
            "content-type: application/json\r\ncontent-length: {}\r\n",
            body.len()
        ));
    }
    if let Ok(credential) = std::env::var(CREDENTIAL) {
        head.push_str(&format!("authorization: Bearer {}\r\n", credential.trim()));
    }
    for header in &asked.header {
        head.push_str(header);
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    Ok((head.into_bytes(), body))
}

/// Whether a path names the model, and the body none.
fn names_model(target: &str) -> bool {
    let path = target.split('?').next().unwrap_or_default();
    Named::of(path).is_some()
}

async fn judged(
    asked: &Explain,
    (text, body): &(Vec<u8>, Vec<u8>),
    revision: &Revision,
) -> Result<Outcome, String> {
    let mut head = RequestHead::new();
    match parse_request(text, &Limits::default(), &mut head) {
        Ok(Step::Done { .. }) => {}
        Ok(Step::Partial) => return Err("the call's head is not whole".to_owned()),
        Err(fault) => return Err(Refusal::Head(fault).to_string()),
    }
    let began = std::time::Instant::now();
    loop {
        let unix_ms = asked.at.unwrap_or_else(|| now_s() * 1000);
        let tool = asked.tool.as_deref();
        let outcome = once((asked.from, unix_ms), (&head, tool), body, revision).await;
        let is_pending = outcome.record.code == "identity_unavailable";
        if !is_pending || began.elapsed() > KEYS_WITHIN {
            return Ok(outcome);
        }
        // The keys of an issuer may be on their way.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The call from its head to the moment at which it would go upstream.
async fn once(
    (from, unix_ms): (IpAddr, u64),
    (head, tool): (&RequestHead, Option<&str>),
    body: &[u8],
    revision: &Revision,
) -> Outcome {
    let Revision { snapshot, levels } = revision;
    let mut shard = Shard::new(snapshot, None, 1);
    let env = &mut Env {
        snapshot,
        levels,
        shard: &mut shard,
        now: Mono(1),
    };
    let peer = Peer::from(from);
    let mut exchange = Exchange::begin(head, from, unix_ms, env);
    let takes_body = head.method.takes_body();
    let length = takes_body.then_some(body.len() as u64);
    let mut verdict = exchange.read_head(head, &peer, length, false, env);
    let mut is_read = false;
    let is_named = head
        .fields
        .by_name(snapshot.identity.header.as_bytes())
        .next()
        .is_some();
    let outcome = |refused, exchange: &Exchange| Outcome {
        record: exchange.record().clone(),
        is_named,
        refused,
        tool: None,
    };
    loop {
        verdict = match verdict {
            Verdict::Ask(ask) => {
                match answered(ask.question, &exchange, head, from, snapshot).await {
                    Some(answer) => exchange.answer(answer, head, &peer, env),
                    // It would be entered in the ledger, and go.
                    None => return outcome(None, &exchange),
                }
            }
            Verdict::Read { .. } if takes_body && !is_read => {
                is_read = true;
                exchange.read_body(body.len(), env)
            }
            Verdict::Read { .. } => {
                let mut scanner = exchange.scanner(head);
                let read = scanner.as_mut().map(|scanner| {
                    scanner.push(body)?;
                    scanner.finish()
                });
                match read.transpose() {
                    Ok(call) => exchange.end_body(head, call, &[Bytes::copy_from_slice(body)], env),
                    Err(fault) => exchange.refuse_unread(Refusal::Call(fault)),
                }
            }
            Verdict::HandOver => {
                let message = tools::Message {
                    head,
                    peer: &peer,
                    unix_ms,
                    tool,
                };
                let (record, refused, found) = tools::once(&message, env).await;
                return Outcome {
                    record,
                    is_named,
                    refused,
                    tool: tool.map(|_| found),
                };
            }
            Verdict::Refuse(refusal) => return outcome(Some(refusal.reply()), &exchange),
            _ => return outcome(None, &exchange),
        };
    }
}

/// Asks as a gate would; `None` for the ledger.
async fn answered(
    question: Question,
    exchange: &Exchange,
    head: &RequestHead,
    from: IpAddr,
    snapshot: &Snapshot,
) -> Option<Answer> {
    match question {
        // A login is of a browser, and not explained.
        Question::Enter { .. }
        | Question::Mint(..)
        | Question::LogIn(..)
        | Question::Count(..)
        | Question::Pick(..) => None,
        Question::Identify(verifier, credential) => {
            Some(Answer::Identified(verifier.ask(credential).await))
        }
        Question::Authorize(authorizer) => {
            let asked = authorizer.ask(&exchange.asked(head, from, snapshot));
            Some(Answer::Authorized(asked.await))
        }
    }
}
