//! The lease: which of the replicas writes.
//!
//! A lease that nobody renews for as long as it says is free; that time is each replica's own, from when it saw the last renewal.
//! Invariant: who holds it stops before another can believe it is free.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use callout::{Fault, Said};
use http::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::shared::Shared;
use crate::time::now_micro;
use crate::watcher::message;

/// How long a lease is good after each renewal.
const GOOD_FOR: Duration = Duration::from_secs(15);
/// How long its holder believes it: others count from later on.
const BELIEVED_FOR: Duration = Duration::from_secs(10);
/// How often it is looked at, and while the server is away: who waits for it goes by this look.
const EVERY: Duration = Duration::from_secs(2);
/// How often it is looked at as another's renewal is due: its time is counted from when that was seen.
const EVERY_DUE: Duration = Duration::from_millis(250);
const EVERY_AWAY: Duration = Duration::from_millis(500);

/// How long whoever stops may take to give it back.
const RELEASED_WITHIN: Duration = Duration::from_secs(1);

/// How a look at it ended.
enum Held {
    Mine,
    /// Another's, who was not seen to renew it for so long, and for so long at least.
    Other {
        unrenewed: Duration,
        left: Duration,
    },
}

/// When another's lease is looked at next: a renewal is seen soon after it was made, and its last moment is not slept over.
fn next_look(unrenewed: Duration, left: Duration) -> Duration {
    let is_overdue = unrenewed >= 2 * EVERY;
    let until_due = (EVERY - EVERY_DUE).saturating_sub(unrenewed);
    let pause = match is_overdue {
        true => EVERY,
        false => until_due.max(EVERY_DUE),
    };
    pause.min(left)
}

/// Takes the lease when it is free, and keeps it. Never ends.
pub(crate) async fn hold(shared: Arc<Shared>) {
    let mut seen: Option<(String, Instant)> = None;
    loop {
        let began = Instant::now();
        let mut pause = EVERY;
        let looked = timeout(BELIEVED_FOR / 2, look(&shared, &mut seen)).await;
        let late = Fault::Late {
            waited_for: "lease",
            within: BELIEVED_FOR / 2,
        };
        match looked.unwrap_or_else(|_| Err(late.to_string())) {
            Ok(Held::Mine) => shared.leads_until(began + BELIEVED_FOR),
            Ok(Held::Other { unrenewed, left }) => {
                shared.leads_until(began);
                pause = next_look(unrenewed, left);
            }
            // Of a server that is away its objects tell.
            Err(fault) if shared.is_away.load(Ordering::SeqCst) => {
                tracing::debug!(fault, "cannot get the lease");
                pause = EVERY_AWAY;
            }
            Err(fault) => tracing::warn!(
                fault,
                "cannot get the lease for writing the status of objects"
            ),
        }
        let is_mine = shared.leads();
        shared.is_leader.send_if_modified(|before| {
            let is_new = *before != is_mine;
            *before = is_mine;
            if is_new && is_mine {
                tracing::info!("this gate has the lease and writes the status of objects");
            }
            is_new
        });
        sleep(pause).await;
    }
}

/// Gives the lease back, so that another need not wait for its end.
pub(crate) async fn release(shared: &Shared) {
    if !*shared.is_leader.borrow() {
        return;
    }
    let (namespace, name) = &shared.settings.lease;
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}");
    let giving = async {
        let said = shared.objects.ask(Method::GET, &path, None).await;
        let mut lease = body(&said.map_err(|fault| fault.to_string())?)?;
        if lease["spec"]["holderIdentity"] == shared.settings.identity.as_str() {
            lease["spec"]["holderIdentity"] = json!("");
            put(shared, Method::PUT, &path, &lease).await?;
        }
        Ok::<_, String>(())
    };
    // Where that does not succeed, it ends by itself.
    drop(timeout(RELEASED_WITHIN, giving).await);
}

/// Looks at the lease, and takes it where it is this one's, or free.
async fn look(shared: &Shared, seen: &mut Option<(String, Instant)>) -> Result<Held, String> {
    let (namespace, name) = &shared.settings.lease;
    let all = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
    let one = format!("{all}/{name}");
    let said = shared
        .objects
        .ask(Method::GET, &one, None)
        .await
        .map_err(|fault| fault.to_string())?;
    if said.status < 500 {
        shared.hears();
    }
    let me = shared.settings.identity.as_str();
    if said.status == 404 {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "namespace": namespace, "name": name },
            "spec": spec(me, None, 0),
        });
        return put(shared, Method::POST, &all, &lease).await;
    }
    let lease = body(&said)?;
    let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
    let version = lease["metadata"]["resourceVersion"]
        .as_str()
        .unwrap_or_default();
    if holder != me && !holder.is_empty() {
        let good_for = lease["spec"]["leaseDurationSeconds"].as_u64();
        let good_for = good_for.map_or(GOOD_FOR, Duration::from_secs);
        match seen {
            Some((known, since)) if known == version => {
                let unrenewed = since.elapsed();
                let left = good_for.saturating_sub(unrenewed);
                if !left.is_zero() {
                    return Ok(Held::Other { unrenewed, left });
                }
            }
            _ => {
                *seen = Some((version.to_owned(), Instant::now()));
                return Ok(Held::Other {
                    unrenewed: Duration::ZERO,
                    left: good_for,
                });
            }
        }
    }
    let transitions = lease["spec"]["leaseTransitions"].as_u64().unwrap_or(0);
    let since = lease["spec"]["acquireTime"]
        .as_str()
        .filter(|_| holder == me);
    let mut next = lease.clone();
    next["spec"] = spec(me, since, transitions + u64::from(holder != me));
    put(shared, Method::PUT, &one, &next).await
}

fn spec(me: &str, since: Option<&str>, transitions: u64) -> Value {
    let now = now_micro();
    json!({
        "holderIdentity": me,
        "leaseDurationSeconds": GOOD_FOR.as_secs(),
        "acquireTime": since.unwrap_or(&now),
        "renewTime": now,
        "leaseTransitions": transitions,
    })
}

/// Writes it; who comes second has a conflict.
async fn put(shared: &Shared, method: Method, path: &str, lease: &Value) -> Result<Held, String> {
    let json = Bytes::from(lease.to_string());
    let said = shared
        .objects
        .ask(method, path, Some(("application/json", json)))
        .await;
    let said = said.map_err(|fault| fault.to_string())?;
    if said.status == 409 {
        return Ok(Held::Other {
            unrenewed: Duration::ZERO,
            left: EVERY_DUE,
        });
    }
    body(&said).map(|_| Held::Mine)
}

fn body(said: &Said) -> Result<Value, String> {
    let body = serde_json::from_slice(&said.body).unwrap_or(Value::Null);
    match said.status {
        200 | 201 => Ok(body),
        status => Err(format!(
            "the API server answers {status}: {}",
            message(&body)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who renews every 2 s, a little late, is looked at by another one who begins at any moment.
    #[test]
    fn a_renewal_is_seen_soon_after_it_was_made_and_a_lease_that_nobody_renews_is_taken_as_it_ends()
    {
        let ms = Duration::from_millis;
        let every = EVERY + ms(13);
        for begins in (0..2000).step_by(7).map(ms) {
            // The last renewal that was made before, and as it was seen.
            let made = |at: Duration| at.as_millis() / every.as_millis();
            let (mut now, mut seen, mut looks) = (begins, (made(begins), begins), 0);
            // It is killed after its fourteenth.
            let last = every * 14;
            let taken = loop {
                let renewed = made(now).min(14);
                if renewed != seen.0 {
                    seen = (renewed, now);
                }
                let unrenewed = now - seen.1;
                let left = GOOD_FOR.saturating_sub(unrenewed);
                if left.is_zero() {
                    break now;
                }
                looks += 1;
                now += next_look(unrenewed, left);
            };
            let late = taken - last - GOOD_FOR;
            assert!(late <= EVERY_DUE, "{begins:?}: {late:?}");
            assert!(looks < 70, "{begins:?}: {looks} looks");
        }
    }
}
