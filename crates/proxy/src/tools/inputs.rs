//! What a server without sessions wants to know before it answers, asked of a client that has one: requests on the stream of its call, and
//! its answers, which come in messages of their own.
//!
//! Invariant: a call waits for its own client alone, and no longer than [`ANSWERED_WITHIN`].
//! Not here: how the request is made again (`mcp::bridge`), the way of an answer to its call (`policy::mcp`).

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use mcp::bridge::{Needs, result_of};
use mcp::events::write_event;
use mcp::name::shown_id;
use mcp::reply::string;
use policy::mcp::Asked;
use policy::refusal::Refusal;

use super::answer;
use super::rule::principal;
use super::session_id;
use super::stream::{Answering, QUIET, QUIET_EVERY, begin, refused};
use crate::call::{Call, OUT_OF_ORDER, Stop, while_there};
use crate::client::Downstream;
use crate::deadline::Deadline;

/// How long a client may take: it may have to ask a person.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10 * 60);

/// What the client answers, each under the server's key.
pub(super) async fn answers<D: Downstream>(
    call: &mut Call,
    of: &Answering<'_>,
    needs: &Needs,
    client: &mut D,
) -> Result<Vec<(String, Vec<u8>)>, Stop> {
    if needs.requests.is_empty() {
        return Ok(Vec::new());
    }
    let name = &of.server.name;
    let cannot = needs
        .requests
        .iter()
        .find(|need| !of.can.answers(&need.method));
    let says = match cannot {
        Some(need) => Some(format!(
            "the server {name} asks for {}, which its client did not offer",
            need.method
        )),
        None if !of.takes_events => Some(format!(
            "the server {name} asks something of its client, which takes no text/event-stream"
        )),
        None => None,
    };
    if let Some(says) = says {
        let refusal = Refusal::McpNotBridged { says: says.into() };
        return Err(refused(call, of, refusal, client).await?);
    }
    let view = call.view.clone();
    let Some((config, _)) = Call::config(&view) else {
        return Err(call.refuse(OUT_OF_ORDER));
    };
    let mark = mcp::session::mark_of_session(session_id(of.arrived.head));
    let caller = call.record().map(|record| principal(record, &view));
    let caller = caller.map(|who| (who.workload, who.by, who.key, who.user));
    let (mut asked, mut out): (Vec<Asked<'_>>, _) = (Vec::new(), Vec::new());
    // What the server wants to hear again is kept as long as the first question, which is as long as all of them.
    let mut state = needs.state.as_ref().map_or(0, Vec::len);
    for need in &needs.requests {
        let bytes = need.bytes() + std::mem::take(&mut state);
        let question = match config.waiting.ask(mark, caller, bytes) {
            Ok(question) => question,
            Err(full) => {
                let says = full.to_string().into();
                let refusal = Refusal::McpNoRoom { says };
                return Err(refused(call, of, refusal, client).await?);
            }
        };
        let number = question.number.to_string();
        let id = shown_id(name, number.as_bytes()).unwrap_or_default();
        let params = need.params.as_deref().unwrap_or(b"{}");
        let message = [
            br#"{"jsonrpc":"2.0","id":"#.as_slice(),
            &string(&id),
            br#","method":"#,
            &string(&need.method),
            br#","params":"#,
            params,
            b"}",
        ];
        write_event(&message.concat(), None, &mut out);
        asked.push(question);
    }
    begin(call, client).await?;
    answer::sent(call, client, &out, false).await?;
    let heard = heard(call, &asked, client).await?;
    let mut answers = Vec::new();
    for (need, heard) in needs.requests.iter().zip(heard.into_iter().flatten()) {
        match result_of(&heard) {
            Some(result) => answers.push((need.key.clone(), result.to_vec())),
            None => break,
        }
    }
    if answers.len() < needs.requests.len() {
        let says = format!("the client did not answer what the server {name} asked of it");
        let refusal = Refusal::McpNotBridged { says: says.into() };
        return Err(refused(call, of, refusal, client).await?);
    }
    Ok(answers)
}

/// The answers, in the order of the questions; none where the client took too long.
async fn heard<D: Downstream>(
    call: &mut Call,
    asked: &[Asked<'_>],
    client: &mut D,
) -> Result<Option<Vec<Vec<u8>>>, Stop> {
    let worker = call.worker.clone();
    let mut heard: Vec<Option<Vec<u8>>> = asked.iter().map(|_| None).collect();
    let (mut late, mut quiet) = (
        Deadline::new(&worker.clock.wheel),
        Deadline::new(&worker.clock.wheel),
    );
    late.set(ANSWERED_WITHIN);
    loop {
        quiet.set(QUIET_EVERY);
        let turn = poll_fn(|cx| {
            let mut is_whole = true;
            for (question, slot) in asked.iter().zip(&mut heard) {
                if slot.is_none() {
                    match question.poll(cx) {
                        Poll::Ready(answer) => *slot = Some(answer),
                        Poll::Pending => is_whole = false,
                    }
                }
            }
            if is_whole {
                return Poll::Ready(Some(true));
            }
            if late.poll(cx).is_ready() {
                return Poll::Ready(Some(false));
            }
            quiet.poll(cx).map(|()| None)
        });
        match while_there(turn, &worker, client).await? {
            Some(true) => return Ok(Some(heard.into_iter().flatten().collect())),
            Some(false) => return Ok(None),
            None => answer::sent(call, client, QUIET, false).await?,
        }
    }
}
