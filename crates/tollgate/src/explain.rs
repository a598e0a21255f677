//! `tollgate explain`: what the gate would make of a call, without making it.
//!
//! The call goes through the machine that decides over calls in a gate (`policy::exchange`), with limits and budgets of
//! which nothing is used. Nothing is sent upstream, nothing is written.
//! Not here: what a call is decided by (`policy`), how the answer reads (`said`).

mod arguments;
mod asked;
mod attempts;
mod batches;
mod decided;
mod said;
mod tools;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use policy::caller::Peer;
use policy::clock::Mono;
use policy::exchange::{Answer, Env, Exchange, Machine, Question, Verdict};
use policy::record::Record;
use policy::refusal::{LocalReply, Refusal};
use policy::revision::Revision;
use policy::shard::Shard;
use policy::snapshot::Snapshot;
use wire::head::RequestHead;
use wire::http1::{Limits, Step, parse_request};

pub(crate) use self::arguments::Explain;
use self::asked::Used;
use self::decided::Decided;
use crate::running::{load_with, publication};
use crate::services::{Moment, Services, now_s};
use crate::source::Source;
use crate::width;
use crate::world::World;

/// How long the keys of issuers are waited for.
const KEYS_WITHIN: Duration = Duration::from_secs(5);

/// What became of the call.
struct Outcome {
    record: Record,
    /// The call has the header that may name its workload.
    is_named: bool,
    /// The gate's refusal; none where the call would go upstream, or is answered with names of models.
    refused: Option<LocalReply>,
    /// Of a call of a tool.
    tool: Option<tools::ToolOutcome>,
    /// The rule that allows it, where the configuration has rules.
    rule: Option<Arc<str>>,
}

/// Says what the gate would make of a call; the second part is whether it would let it in.
///
/// # Errors
/// The configuration is faulty, or the call cannot be read.
pub(crate) fn explain(asked: &Explain) -> Result<(String, bool), String> {
    let source = Source::of(asked.config.as_deref());
    let servers = asked.tools.servers()?;
    let loaded = load_with(source.file(), servers.as_ref(), &World);
    let loaded = loaded.map_err(|faults| faults.to_string())?;
    let services = Services::default();
    let moment = Moment::Start(&services);
    let decided = Decided::default();
    let first = |mut snapshot: Snapshot| {
        decided.listen(&mut snapshot);
        Revision::first(snapshot)
    };
    let (_, current) = publication(loaded, first, &World, moment)?;
    let revision = &current.revision;
    let text = asked::request(asked, revision.snapshot.mcp.as_deref())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let mut outcome = runtime.block_on(judged(asked, &text, revision))?;
    outcome.rule = decided.by();
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
        let tool = asked::tool(asked, body);
        let call = (&head, tool.as_ref());
        let outcome = once((asked.from, unix_ms), call, body, revision).await;
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
    (head, tool): (&RequestHead, Option<&Used>),
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
        .named(&snapshot.identity.header)
        .next()
        .is_some();
    let outcome = |refused, exchange: &Exchange| Outcome {
        record: exchange.record().clone(),
        is_named,
        refused,
        tool: None,
        rule: None,
    };
    loop {
        verdict = match verdict {
            // It would be entered in the ledger, and go where somebody can be told it.
            Verdict::Ask(ask) if matches!(ask.question, Question::Enter { .. }) => {
                let let_in = outcome(None, &exchange);
                let refused = attempts::refusal(&mut exchange, (head, &peer), body, env);
                return match refused {
                    Some(refused) => outcome(Some(refused), &exchange),
                    None => let_in,
                };
            }
            Verdict::Ask(ask) => {
                match answered(ask.question, &exchange, head, from, snapshot).await {
                    Some(answer) => exchange.answer(answer, head, &peer, env),
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
            Verdict::HandOver(Machine::Batches) => {
                let (record, refused) = batches::once((head, &peer), unix_ms, body, env).await;
                return Outcome {
                    record,
                    is_named,
                    refused,
                    tool: None,
                    rule: None,
                };
            }
            Verdict::HandOver(Machine::Tools) => {
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
                    rule: None,
                };
            }
            Verdict::Refuse(refusal) => return outcome(Some(refusal.reply()), &exchange),
            _ => return outcome(None, &exchange),
        };
    }
}

/// Asks as a gate would; `None` for what is asked of a call that was let in.
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
