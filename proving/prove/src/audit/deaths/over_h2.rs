//! The same upstream over HTTP/2: streams that are reset or refused, connections that are dropped with all of them.
//!
//! Invariant: a stream that is refused never ran, and is not noted.
//! Not here: what is noted, and fates (`upstream`).

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use experiment::random::Rng;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::upstream::{BODY, Fate, Shared};

/// One stream in so many is refused before anything of it is read.
const REFUSED: u64 = 20;

pub(super) async fn serve(tcp: TcpStream, shared: Arc<Shared>, mut rng: Rng) {
    let Ok(mut connection) = h2::server::handshake(tcp).await else {
        return;
    };
    let dropped = Rc::new(Notify::new());
    let served = Rc::new(Cell::new(0));
    loop {
        let accepted = tokio::select! {
            accepted = connection.accept() => accepted,
            // With the connection go all its streams.
            () = dropped.notified() => return,
        };
        let Some(Ok((request, mut answer))) = accepted else {
            return;
        };
        if rng.below(REFUSED) == 0 {
            answer.send_reset(Reason::REFUSED_STREAM);
            continue;
        }
        let fate = Fate::of(&mut rng, served.get());
        let work = Duration::from_micros(rng.below(3000));
        let (shared, dropped) = (Arc::clone(&shared), Rc::clone(&dropped));
        let served = Rc::clone(&served);
        tokio::task::spawn_local(async move {
            let Some(id) = read(request).await else {
                return;
            };
            shared.ran(&id);
            tokio::time::sleep(work).await;
            served.set(served.get() + 1);
            if fate.is_death() {
                shared.died();
            }
            match fate {
                Fate::Answered | Fate::Last => respond(answer),
                Fate::Reset | Fate::HalfHead => answer.send_reset(Reason::INTERNAL_ERROR),
                Fate::Closed => dropped.notify_one(),
            }
        });
    }
}

/// The call's id, once its body is there whole.
async fn read(request: http::Request<RecvStream>) -> Option<String> {
    let id = request.headers().get("x-request-id")?.to_str().ok()?;
    let id = id.to_owned();
    let mut body = request.into_body();
    while let Some(data) = body.data().await {
        let length = data.ok()?.len();
        body.flow_control().release_capacity(length).ok()?;
    }
    body.is_end_stream().then_some(id)
}

/// An answer that cannot be sent has nobody who waits for it.
fn respond(mut answer: SendResponse<Bytes>) {
    let head = http::Response::builder()
        .header("content-type", "application/json")
        .body(());
    if let Ok(head) = head
        && let Ok(mut body) = answer.send_response(head, false)
    {
        let _gone = body.send_data(Bytes::from_static(BODY.as_bytes()), true);
    }
}
