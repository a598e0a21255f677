//! How many exchanges of HTTP/2 a worker makes before they begin.
//!
//! One read brings the heads of many requests, of which most can be answered at once: made all together they would all be kept, 13 KiB
//! each, before the first of them runs.
//! Invariant: at most [`MAX`] exchanges of a worker are made and have not begun; those that wait begin in the order in which they came.
//! Not here: how many run (`policy`'s limits, `bounds.streams`).

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;

use tokio::sync::Semaphore;

const MAX: usize = 32;

/// Those of one worker.
#[derive(Clone)]
pub(crate) struct Turns(Rc<Semaphore>);

impl Default for Turns {
    fn default() -> Self {
        Self(Rc::new(Semaphore::new(MAX)))
    }
}

impl Turns {
    /// The next turn.
    pub(crate) async fn next(&self) -> Turn {
        if let Ok(permit) = self.0.acquire().await {
            permit.forget();
        }
        Turn(self.clone())
    }
}

/// The right to make an exchange that has not begun.
pub(crate) struct Turn(Turns);

impl Turn {
    /// `exchange`; where it stops first, another one may be made.
    pub(crate) async fn begun(self, mut exchange: Pin<&mut impl Future<Output = ()>>) {
        let mut turn = Some(self);
        poll_fn(|cx| {
            let polled = exchange.as_mut().poll(cx);
            turn = None;
            polled
        })
        .await;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.0.add_permits(1);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn more_is_made_as_soon_as_one_has_begun_or_is_given_up() {
        let turns = Turns::default();
        let mut cx = Context::from_waker(Waker::noop());
        let next = || match pin!(turns.next()).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turn) => Some(turn),
            Poll::Pending => None,
        };
        let mut made: Vec<Turn> = std::iter::from_fn(next).collect();
        assert_eq!(made.len(), MAX);

        let turn = made.pop().expect("MAX of them");
        let mut running = pin!(std::future::pending());
        let mut begun = pin!(turn.begun(running.as_mut()));
        assert!(next().is_none(), "it was made, and has not begun");
        assert!(begun.as_mut().poll(&mut cx).is_pending());
        made.extend(next());
        assert_eq!(made.len(), MAX, "it runs on, and is counted no more");

        drop(made.pop());
        assert!(next().is_some(), "its client left before it began");
    }
}
