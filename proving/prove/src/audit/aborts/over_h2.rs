//! A client that leaves over HTTP/2: it resets its stream.
//!
//! Not here: when it leaves (`client`).

use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::{Reason, RecvStream};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::client::{Left, PATIENCE, Phase, Plan};
use super::events::Events;

/// By then the reset has left; the connection closes after it.
const RESET_LEAVES: Duration = Duration::from_millis(200);

/// Calls and leaves.
pub(super) async fn leave(tcp: TcpStream, plan: Plan, mut left: Left) -> Left {
    // A call that cannot be made has not left anything, and says so by having no moment.
    let _never_made = call(tcp, plan, &mut left).await;
    left
}

async fn call(tcp: TcpStream, plan: Plan, left: &mut Left) -> Result<(), h2::Error> {
    let (sender, connection) = h2::client::handshake(tcp).await?;
    let driving = tokio::task::spawn_local(connection);
    let mut sender = sender.ready().await?;
    let request = http::Request::post(format!("http://localhost{}", plan.path))
        .header("x-workload-app", "audit")
        .header("x-request-id", &*left.id)
        .header("x-engine-tokens", plan.tokens)
        .header("content-type", "application/json")
        .body(());
    let Ok(request) = request else { return Ok(()) };
    let (answer, mut sending) = sender.send_request(request, false)?;
    let is_whole = plan.phase != Phase::Uploading;
    sending.send_data(Bytes::from(plan.body), is_whole)?;
    let mut events = Events::default();
    let mut body = None;
    if is_whole && plan.after > 0 {
        let Ok(answer) = timeout(PATIENCE, answer).await else {
            return Ok(());
        };
        let (head, stream) = answer?.into_parts();
        left.status = head.status.as_u16();
        let stream = body.insert(stream);
        let reading = until(stream, &mut events, plan.after);
        if timeout(PATIENCE, reading).await != Ok(true) {
            return Ok(());
        }
    }
    tokio::time::sleep(plan.wait).await;
    left.at = Some(Instant::now());
    left.events = events.count;
    left.text = events.text;
    sending.send_reset(Reason::CANCEL);
    drop((body, sending, sender));
    // The library keeps a stream that it reset for half a minute, and the connection with it.
    let aborting = driving.abort_handle();
    let _ended = timeout(RESET_LEAVES, driving).await;
    aborting.abort();
    Ok(())
}

/// Reads until so many events came; false when the answer ended before.
async fn until(body: &mut RecvStream, events: &mut Events, count: u64) -> bool {
    while events.count < count {
        let Some(Ok(data)) = body.data().await else {
            return false;
        };
        events.feed(&data);
        if body.flow_control().release_capacity(data.len()).is_err() {
            return false;
        }
    }
    true
}
