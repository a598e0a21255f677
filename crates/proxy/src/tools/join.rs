//! Several waits at once, in one task.
//!
//! Not here: what is waited for.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// A wait in a list.
pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// What all of them give, in their order.
pub(crate) async fn all<T>(mut waits: Vec<Boxed<'_, T>>) -> Vec<T> {
    let mut given: Vec<Option<T>> = waits.iter().map(|_| None).collect();
    poll_fn(|cx| {
        let mut are_over = true;
        for (wait, slot) in waits.iter_mut().zip(&mut given) {
            if slot.is_none() {
                match wait.as_mut().poll(cx) {
                    Poll::Ready(value) => *slot = Some(value),
                    Poll::Pending => are_over = false,
                }
            }
        }
        if are_over {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    given.into_iter().flatten().collect()
}
