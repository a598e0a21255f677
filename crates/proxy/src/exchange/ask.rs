//! What policy asks of the world: the ledger here, anything else of whoever comes along with the question.
//!
//! Invariant: a call that nothing is asked for waits for nothing.
//! Not here: what an answer means (`policy::exchange`).

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use policy::caller::Peer;
use policy::exchange::{Answer, Ask, Question, Verdict};
use policy::usage_ledger::Estimate;
use tokio::sync::oneshot;
use wire::head::RequestHead;

use super::active::ActiveExchange;
use crate::client::Downstream;
use crate::deadline::Deadline;

/// Answers what can be answered without waiting.
#[inline]
pub(super) fn at_once(active: &mut ActiveExchange, ask: &Ask) -> Option<Verdict> {
    let Question::Enter {
        estimate,
        is_durable: false,
    } = ask.question
    else {
        return None;
    };
    active.enter(estimate, None);
    Some(active.tell(|exchange, env| exchange.entered(env)))
}

/// Asks, and waits for the answer as long as it is worth waiting for.
pub(super) async fn wait<D: Downstream>(
    active: &mut ActiveExchange,
    ask: Ask,
    head: &RequestHead,
    peer: &Peer,
    client: &mut D,
    deadline: &mut Deadline,
) -> Verdict {
    let worker = Rc::clone(active.worker());
    let is_entry = matches!(ask.question, Question::Enter { .. });
    let (what, began) = (ask.question.wait(), worker.now());
    let mut asking = begin(active, ask.question, head, peer);
    active.pause();
    deadline.set(ask.within);
    let waited = poll_fn(|cx| {
        if let Poll::Ready(answer) = asking.as_mut().poll(cx) {
            return Poll::Ready(Waited::Answered(answer));
        }
        if client.poll_gone(&worker.buffers, cx).is_ready() {
            return Poll::Ready(Waited::Left);
        }
        deadline.poll(cx).map(|()| Waited::TooLong)
    });
    let waited = waited.await;
    deadline.clear();
    active.resume();
    if let Some(what) = what {
        let took = worker.now().since(began);
        worker.sink(|sink| sink.waited(what, took));
    }
    match waited {
        Waited::Left => active.disconnected(),
        Waited::TooLong => {
            if is_entry {
                active.withdraw(true);
            }
            active.stalled()
        }
        Waited::Answered(answer) => {
            if is_entry && matches!(answer, Answer::Unanswered) {
                active.withdraw(false);
            }
            active.tell(|exchange, env| exchange.answer(answer, head, peer, env))
        }
    }
}

type Asking = Pin<Box<dyn Future<Output = Answer>>>;

/// What came of the wait for an answer.
enum Waited {
    Answered(Answer),
    Left,
    TooLong,
}

fn begin(
    active: &mut ActiveExchange,
    question: Question,
    head: &RequestHead,
    peer: &Peer,
) -> Asking {
    match question {
        Question::Enter { estimate, .. } => enter(active, estimate),
        Question::Identify(verifier, credential) => {
            let asked = verifier.ask(credential);
            Box::pin(async { Answer::Identified(asked.await) })
        }
        Question::LogIn(login, step) => {
            let asked = step.ask(&*login, head);
            Box::pin(async { Answer::LoggedIn(Box::new(asked.await)) })
        }
        Question::Authorize(authorizer) => {
            let snapshot = active.view().snapshot();
            let call = active.exchange.asked(head, peer.address, snapshot);
            let asked = authorizer.ask(&call);
            Box::pin(async { Answer::Authorized(asked.await) })
        }
        Question::Mint(minter, caller) => {
            let asked = minter.mint(caller.as_ref());
            Box::pin(async { asked.await.map_or(Answer::Unanswered, Answer::Minted) })
        }
        Question::Count(counter, prompt) => {
            let asked = counter.count(*prompt);
            Box::pin(async { Answer::Counted(asked.await) })
        }
        Question::Pick(picker, call) => {
            let asked = picker.pick(*call);
            Box::pin(async { Answer::Picked(asked.await) })
        }
    }
}

fn enter(active: &mut ActiveExchange, estimate: Estimate) -> Asking {
    let (tell, told) = oneshot::channel();
    let is_kept = move |is_kept| {
        // Nobody listens any more when the client has left.
        let _gone = tell.send(is_kept);
    };
    active.enter(estimate, Some(Box::new(is_kept)));
    Box::pin(async move {
        match told.await {
            Ok(true) => Answer::Entered,
            Ok(false) | Err(_) => Answer::Unanswered,
        }
    })
}
