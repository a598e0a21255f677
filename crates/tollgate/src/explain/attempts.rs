//! Whether any backend of its route can be told a call that the gate lets in.
//!
//! Invariant: nobody is asked for a credential, and nothing is sent.
//! Not here: what a call becomes at a backend of another API (`translate`), what it is refused for before (`explain`).

use std::sync::Arc;

use bytes::Bytes;
use policy::caller::Peer;
use policy::credential::Credential;
use policy::exchange::{Answer, Env, Exchange, Question, Verdict};
use policy::refusal::LocalReply;
use policy::secret::Secret;
use wire::call::apply;
use wire::head::RequestHead;

/// The gate's refusal of a call that was let in; `None` where it would go to a backend, or the gate would answer it.
pub(super) fn refusal(
    exchange: &mut Exchange,
    (head, peer): (&RequestHead, &Peer),
    body: &[u8],
    env: &mut Env<'_>,
) -> Option<LocalReply> {
    let body = [Bytes::copy_from_slice(body)];
    let mut verdict = exchange.answer(Answer::Entered, head, peer, env);
    loop {
        verdict = match verdict {
            Verdict::Attempt(plan) => {
                let edited = apply(&body, &plan.edits);
                match exchange.filtered(head, env.snapshot, &edited) {
                    Ok(_) => return None,
                    Err(unfit) => exchange.unfit(unfit, env),
                }
            }
            Verdict::Ask(ask) if matches!(ask.question, Question::Mint(..)) => {
                exchange.answer(Answer::Minted(Arc::new(none())), head, peer, env)
            }
            Verdict::Refuse(refusal) => return Some(refusal.reply()),
            _ => return None,
        };
    }
}

/// In the place of a credential that nobody is asked for.
fn none() -> Credential {
    Credential::Header {
        name: "authorization".to_owned(),
        value: Secret::new(Vec::new()),
    }
}
