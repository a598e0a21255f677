//! Work beside a worker takes turns, and keeps its place while it runs.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::mpsc;
use std::task::Poll;
use std::thread;

use bytes::Bytes;
use tokio::runtime::Builder;

use super::*;

/// Whether it is not done at once.
async fn waits<T>(mut work: Pin<&mut impl Future<Output = T>>) -> bool {
    poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx).is_pending())).await
}

#[test]
fn what_is_done_beside_a_worker_is_done_on_another_thread_one_after_the_other() {
    let runtime = Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let places = Places::default();
        let (begun, has_begun) = mpsc::channel();
        let (go, may_end) = mpsc::channel::<()>();
        let mut first = Box::pin(places.run(move || {
            begun.send(thread::current().id()).expect("a test");
            may_end.recv().expect("a test");
        }));
        assert!(waits(first.as_mut()).await);
        let other = has_begun.recv().expect("it runs");
        assert_ne!(other, thread::current().id());
        // Nobody waits for it any more, and it keeps its place.
        drop(first);
        let mut second = Box::pin(places.run(|| 7));
        assert!(waits(second.as_mut()).await);
        assert_eq!(places.0.available_permits(), 0);
        go.send(()).expect("it waits");
        assert_eq!(second.await, Some(7));
        assert_eq!(places.run(|| panic!("of the test")).await, None::<()>);
        assert_eq!(places.run(|| 8).await, Some(8), "a place is given back");
    });
}

#[test]
fn a_body_is_long_by_all_of_its_pieces() {
    let piece = Bytes::from(vec![0; STINT_BYTES / 2]);
    let mut body = vec![piece.clone(), piece];
    assert!(!is_long(&body));
    body.push(Bytes::from_static(b"}"));
    assert!(is_long(&body));
}
