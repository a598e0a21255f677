//! One exchange, driven: each verdict of policy is applied, and what came of it is told.
//!
//! Invariant: an [`ActiveExchange`] leaves exactly one record and settles what it held, also when its task is dropped
//! half-way.
//! Not here: what is decided (`policy::exchange`), how either side frames its bytes (`downstream`, `upstream`).

mod active;
mod amend;
mod ask;
mod attempt;
mod beside;
mod body;
mod mirror;
mod opening;
mod realtime;
mod relay;
mod tunnel;
mod unfinished;
mod websocket;

use std::rc::Rc;

use policy::exchange::{Machine, Verdict};
use policy::operation::Operation;
use policy::record::Closed;
use policy::refusal::Refusal;
use wire::head::RequestHead;
use wire::meter::Meter;

use self::active::ActiveExchange;
use crate::batches;
use crate::client::Downstream;
use crate::deadline::Deadline;
use crate::reply;
use crate::tools;
use crate::upstream::Response;
use crate::worker::{Untaken, Worker};
use crate::worker_snapshot::WorkerSnapshot;

/// Serves one request whose head was read.
pub(crate) async fn serve<D: Downstream>(
    worker: &Rc<Worker>,
    view: Rc<WorkerSnapshot>,
    head: &RequestHead,
    length: Option<u64>,
    client: &mut D,
    deadline: &mut Deadline,
) {
    let peer = client.peer();
    let mut active = ActiveExchange::begin(worker, view, head, peer.address);
    let awaits_continue = client.awaits_continue();
    let mut verdict =
        active.tell(|exchange, env| exchange.read_head(head, &peer, length, awaits_continue, env));
    let mut body = Vec::new();
    let mut response: Option<Response> = None;
    let mut is_mirrored = false;
    loop {
        verdict = match verdict {
            Verdict::Read { within } => {
                body::read(&mut active, head, within, &mut body, client, deadline).await
            }
            Verdict::Ask(asked) => match ask::at_once(&mut active, &asked) {
                Some(verdict) => verdict,
                // Boxed: its state would make every exchange larger.
                None => {
                    Box::pin(ask::wait(&mut active, asked, head, &peer, client, deadline)).await
                }
            },
            Verdict::Attempt(mut plan) => {
                match active.exchange.record().operation {
                    Some(Operation::Http) if !std::mem::replace(&mut is_mirrored, true) => {
                        mirror::send(&active, head, &body);
                    }
                    // Its connection becomes another thing.
                    Some(Operation::RealtimeSocket) => plan.may_reuse = false,
                    _ => {}
                }
                let response = &mut response;
                let verdict =
                    attempt::run(&mut active, plan, head, &body, response, client, deadline).await;
                if !matches!(verdict, Verdict::Attempt(_) | Verdict::Ask(_)) {
                    if matches!(&verdict, Verdict::Relay(relay) if relay.is_stream) {
                        active.look_for_prompt(&body);
                    }
                    if let Some(most) = active.backpressure(&body) {
                        // Boxed: rare, and its state would make every exchange larger.
                        Box::pin(active.await_room_to_count(&body, most)).await;
                    }
                    active.count(std::mem::take(&mut body));
                }
                verdict
            }
            // Boxed: rare, and its state would make every exchange larger.
            Verdict::Amend(amended) => {
                let response = response.as_mut();
                Box::pin(amend::wait(&mut active, *amended, response, client)).await
            }
            Verdict::Relay(relay) => match &mut response {
                Some(response) => relay::run(&mut active, relay, response, client, deadline).await,
                None => active.refuse_unread(Refusal::Bug("a relay of no response")),
            },
            Verdict::Tunnel(relay) => match &mut response {
                Some(response)
                    if active.exchange.record().operation == Some(Operation::RealtimeSocket) =>
                {
                    let of = (head, &relay);
                    // Boxed: rare, and its state would make every exchange larger.
                    let session = realtime::run(&mut active, of, response, client, deadline);
                    Box::pin(session).await
                }
                // Boxed: rare, and its state would make every exchange larger.
                Some(response) => {
                    Box::pin(tunnel::run(&mut active, &relay, response, client, deadline)).await
                }
                None => active.refuse_unread(Refusal::Bug("a tunnel of no response")),
            },
            Verdict::ReadToEnd { form, .. } => {
                // Whichever way it came to that: of what was relayed a part may be read already.
                if active.meter.is_unread() {
                    active.meter = Meter::new(form);
                }
                deadline.clear();
                client.abandon();
                return relay::read_to_end(active, response);
            }
            Verdict::HandOver(machine) => {
                active.hand_over();
                let page = active.exchange.page().map(Box::from);
                let view = Rc::clone(active.view());
                deadline.clear();
                // Boxed: its state would make every exchange larger.
                let request = (head, length);
                match machine {
                    Machine::Tools => {
                        let served = tools::serve(worker, view, request, page, client, deadline);
                        Box::pin(served).await;
                    }
                    Machine::Batches => {
                        let served = batches::serve(worker, view, request, page, client, deadline);
                        Box::pin(served).await;
                    }
                }
                Verdict::Finish
            }
            Verdict::Socket => {
                deadline.clear();
                // Boxed: rare, and its state would make every exchange larger.
                let session = websocket::serve(&mut active, head, client, deadline);
                Box::pin(session).await
            }
            Verdict::Cut => {
                client.cut();
                Verdict::Finish
            }
            Verdict::Abandon => {
                client.abandon();
                Verdict::Finish
            }
            Verdict::Finish => break,
            own @ (Verdict::Refuse(_)
            | Verdict::Models { .. }
            | Verdict::Counted(..)
            | Verdict::Kept(_)
            | Verdict::Login(_)
            | Verdict::Preflight(_)) => {
                response = None;
                deadline.clear();
                // Boxed: rare, and its state would make every exchange larger.
                Box::pin(answer(&mut active, own, head, client)).await
            }
        }
    }
    deadline.clear();
    drop(response);
    active.finish();
}

/// Answers a request that could not even be read.
pub(crate) async fn refuse<D: Downstream>(worker: &Rc<Worker>, refusal: Refusal, client: &mut D) {
    let (view, head) = (worker.view(), RequestHead::new());
    let mut active = ActiveExchange::begin(worker, view, &head, client.peer().address);
    let refused = active.refuse_unread(refusal);
    if let Verdict::Abandon = answer(&mut active, refused, &head, client).await {
        client.abandon();
    }
    active.finish();
}

/// Answers for the gate itself.
async fn answer<D: Downstream>(
    active: &mut ActiveExchange,
    verdict: Verdict,
    head: &RequestHead,
    client: &mut D,
) -> Verdict {
    active.drop_body();
    let bytes = match &verdict {
        Verdict::Kept(document) if document.len() > reply::PIECE_BYTES => document.len(),
        _ => 0,
    };
    let Some(_untaken) = Untaken::new(active.worker(), bytes) else {
        return active.refuse_unread(Refusal::AnswersUntaken);
    };
    let patience = reply::Patience {
        worker: active.worker(),
        stall: active.view().snapshot().bounds.write_stall,
    };
    let (id, cors) = (&active.exchange.record().id, active.cors());
    let sent = match &verdict {
        Verdict::Refuse(refusal) => {
            let (reply, limits) = (refusal.reply(), active.rate_limits());
            reply::refuse(client, &reply, head, id, &limits, &cors, patience).await
        }
        Verdict::Models { names, one } => {
            reply::models(client, (names, one.as_ref()), head, id, &cors, patience).await
        }
        Verdict::Counted(asked, tokens) => {
            reply::counted(client, *asked, *tokens, id, &cors, patience).await
        }
        Verdict::Kept(document) => reply::document(client, document, id, &cors, patience).await,
        Verdict::Login(told) => reply::login(client, told, id, &cors, patience).await,
        Verdict::Preflight(told) => {
            let told = match told {
                Some(told) => reply::told(client, told, id, patience).await,
                None => reply::preflight(client, &cors, head, id, patience).await,
            };
            told.map(|()| 0)
        }
        _ => return active.refuse_unread(Refusal::Bug("no answer of the gate's own")),
    };
    match sent {
        Ok(bytes) => {
            active.exchange.forwarded(bytes);
            active.exchange.sent_whole(false)
        }
        Err(error) => {
            // Nothing more is answered to a client that does not take this.
            if error.kind() == std::io::ErrorKind::TimedOut {
                active.worker().closed(Closed::WriteStall);
            }
            active.disconnected()
        }
    }
}
