//! What policy asks of the world: the ledger here, anything else of whoever the host was given for it.
//!
//! Invariant: a call that nothing is asked for waits for nothing.
//! Not here: what an answer means (`policy::exchange`).

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use policy::exchange::{Answer, Ask, Event, Question, Verdict};
use tokio::sync::oneshot;

use super::active::ActiveExchange;
use super::attempt::told;
use crate::client::Downstream;
use crate::deadline::Deadline;

/// Answers what can be answered without waiting.
#[inline]
pub(super) fn at_once(active: &mut ActiveExchange, ask: &Ask) -> Option<Verdict> {
    match ask.question {
        Question::Enter {
            estimate,
            is_durable: false,
        } => {
            active.enter(estimate, None);
            Some(active.tell(Event::Answer(Answer::Entered)))
        }
        Question::Enter { .. } | Question::Authorize(_) | Question::Mint(_) => None,
    }
}

/// Asks, and waits for the answer as long as it is worth waiting for.
pub(super) async fn wait<D: Downstream>(
    active: &mut ActiveExchange,
    ask: Ask,
    client: &mut D,
    deadline: &mut Deadline,
) -> Verdict {
    let worker = Rc::clone(&active.worker);
    let mut asking = begin(active, ask.question);
    active.exchange.timing.pause(worker.now());
    deadline.set(ask.within);
    let answered = poll_fn(|cx| {
        if let Poll::Ready(answer) = asking.as_mut().poll(cx) {
            return Poll::Ready(Some(Event::Answer(answer)));
        }
        if client.poll_gone(&worker.buffers, cx).is_ready() {
            return Poll::Ready(None);
        }
        deadline.poll(cx).map(|()| Some(Event::Stalled))
    });
    let event = answered.await;
    deadline.clear();
    active.exchange.timing.resume(worker.now());
    let Some(event) = event else {
        return active.disconnected();
    };
    if let Question::Enter { .. } = ask.question {
        match &event {
            Event::Stalled => active.withdraw(true),
            Event::Answer(Answer::Unanswered) => active.withdraw(false),
            _ => {}
        }
    }
    let verdict = active.tell(event);
    // A credential that could not be had ends an attempt.
    told(active);
    verdict
}

type Asking = Pin<Box<dyn Future<Output = Answer>>>;

fn begin(active: &mut ActiveExchange, question: Question) -> Asking {
    let Question::Enter { estimate, .. } = question else {
        let (worker, record) = (&active.worker, active.exchange.record());
        let asked = worker.callout(|callout| callout.ask(question, record));
        return asked.unwrap_or_else(|| Box::pin(std::future::ready(Answer::Unanswered)));
    };
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
