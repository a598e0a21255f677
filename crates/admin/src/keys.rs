//! The resource of the gate's own keys.
//!
//! Invariant: a secret is in one answer, the one to who had it made, which nobody keeps a copy of; files are waited for
//! beside the runtime: by one change at a time, by one who reads at a time, and no longer than a bound for a turn; who
//! reads never waits for who changes.
//! Not here: what a key is and where it is kept (`gateway::Keys`).

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Request, StatusCode, header};
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::access::Principal;
use crate::body::{self, bad};
use crate::gateway::{Changed, Gateway, KeyFault};
use crate::reply::{Refusal, Reply, broken, json as page, private, refusal};

/// Keys of a page unless said.
const PAGE_DEFAULT: usize = 1000;
/// Most keys of a page.
const PAGE_MAX: usize = 10_000;
/// Longest wait for those who came first: as long as the first of them may wait for another process.
const TURN_WITHIN: Duration = Duration::from_secs(10);

/// The gateway, and the order of who waits for its files.
pub(crate) struct KeyDesk<G> {
    pub(crate) gateway: Arc<G>,
    changes: Arc<Semaphore>,
    /// A file may be large: one copy is enough.
    reads: Arc<Semaphore>,
}

/// What is done with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Change,
    Rotate,
    Revoke,
}

impl<G: Gateway> KeyDesk<G> {
    pub(crate) fn new(gateway: Arc<G>) -> Self {
        Self {
            gateway,
            changes: Arc::new(Semaphore::new(1)),
            reads: Arc::new(Semaphore::new(1)),
        }
    }

    /// Changes the file.
    async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&G) -> Result<T, KeyFault> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.wait(&self.changes, work).await
    }

    /// Reads the file.
    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&G) -> Result<T, KeyFault> + Send + 'static,
    ) -> Result<T, Refusal> {
        self.wait(&self.reads, work).await
    }

    /// Does something that waits for files.
    async fn wait<T: Send + 'static>(
        &self,
        turns: &Arc<Semaphore>,
        work: impl FnOnce(&G) -> Result<T, KeyFault> + Send + 'static,
    ) -> Result<T, Refusal> {
        let turn = turn_of(turns).await?;
        let gateway = Arc::clone(&self.gateway);
        let done = tokio::task::spawn_blocking(move || {
            // To the end of the work, whoever leaves.
            let _turn = turn;
            work(&gateway)
        })
        .await;
        done.map_err(|_| broken())?.map_err(refused)
    }
}

/// A turn, where it comes soon enough.
async fn turn_of(turns: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Refusal> {
    let turn = Arc::clone(turns).acquire_owned();
    match tokio::time::timeout(TURN_WITHIN, turn).await {
        Ok(turn) => turn.map_err(|_| broken()),
        Err(_) => Err(refused(KeyFault::Unavailable(
            "others have been waiting for the file of keys for more than 10 seconds; nothing was done".to_owned(),
        ))),
    }
}

pub(crate) async fn create<G: Gateway>(
    request: Request<Incoming>,
    caller: &Principal,
    desk: &KeyDesk<G>,
) -> Result<Reply, Refusal> {
    let wanted = body::json::<G::NewKey>(request).await?;
    let wanted =
        wanted.ok_or_else(|| bad("send what the key is to be, at least {\"workload\": …}"))?;
    let by = caller.shown();
    let changed = desk.change(move |gateway| told_of(gateway.create_key(wanted)?, &by, "key made"));
    let changed = changed.await?;
    let mut reply = private(StatusCode::CREATED, &with_secret(&changed));
    let at = format!("/api/v1/keys/{}", text(&changed.key, "id"));
    if let Ok(at) = HeaderValue::from_str(&at) {
        reply.headers_mut().insert(header::LOCATION, at);
    }
    Ok(reply)
}

pub(crate) async fn change<G: Gateway>(
    request: Request<Incoming>,
    caller: &Principal,
    desk: &KeyDesk<G>,
    id: String,
    verb: Verb,
) -> Result<Reply, Refusal> {
    let by = caller.shown();
    let changed = match verb {
        Verb::Change => {
            let change = body::json::<G::KeyChange>(request).await?;
            let says = "send what is to change, such as {\"budgets\": [{…}]}; null takes away";
            let change = change.ok_or_else(|| bad(says))?;
            desk.change(move |gateway| {
                told_of(gateway.change_key(&id, change)?, &by, "key changed")
            })
            .await?
        }
        Verb::Rotate => {
            let how = body::json::<G::Rotation>(request)
                .await?
                .unwrap_or_default();
            desk.change(move |gateway| told_of(gateway.rotate_key(&id, how)?, &by, "key rotated"))
                .await?
        }
        Verb::Revoke => {
            desk.change(move |gateway| told_of(gateway.revoke_key(&id)?, &by, "key revoked"))
                .await?
        }
    };
    Ok(private(StatusCode::OK, &with_secret(&changed)))
}

/// Logs a change where it is done: who asked for it may have left.
fn told_of(changed: Changed, by: &str, what: &str) -> Result<Changed, KeyFault> {
    let (id, workload) = (text(&changed.key, "id"), text(&changed.key, "workload"));
    tracing::info!(by, id, workload, "{what} over the admin API");
    Ok(changed)
}

pub(crate) async fn one<G: Gateway>(desk: &KeyDesk<G>, id: String) -> Result<Reply, Refusal> {
    let key = desk.read(move |gateway| gateway.key(&id)).await?;
    Ok(page(&key))
}

/// A page of keys in the order made, from the one after `after`.
pub(crate) async fn list<G: Gateway>(
    request: Request<Incoming>,
    desk: &KeyDesk<G>,
) -> Result<Reply, Refusal> {
    let (after, most) =
        asked(request.uri().query().unwrap_or_default()).map_err(|says| bad(&says))?;
    let mut keys = desk
        .read(move |gateway| gateway.keys(after.as_deref(), most + 1))
        .await?;
    let is_more = keys.len() > most;
    keys.truncate(most);
    let next = keys.last().filter(|_| is_more).map(|last| &last["id"]);
    Ok(page(&json!({ "keys": keys, "next": next })))
}

/// `after` and `limit` of a query.
fn asked(query: &str) -> Result<(Option<String>, usize), String> {
    let (mut after, mut most) = (None, PAGE_DEFAULT);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("after", id)) => after = Some(id.to_owned()),
            Some(("limit", number)) => {
                let read = number.parse().ok().filter(|n| (1..=PAGE_MAX).contains(n));
                most = read.ok_or_else(|| format!("limit: write a number from 1 to {PAGE_MAX}"))?;
            }
            _ => return Err("the query: its members are after and limit".to_owned()),
        }
    }
    Ok((after, most))
}

/// The key as it is now, with its secret where it has a new one.
fn with_secret(changed: &Changed) -> Value {
    let mut shown = changed.key.clone();
    if let Some(members) = shown.as_object_mut() {
        if let Some(secret) = &changed.secret {
            let secret = String::from_utf8_lossy(secret.expose());
            members.insert("key".to_owned(), secret.into());
        }
        members.insert("in_force".to_owned(), changed.is_in_force.into());
    }
    shown
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn refused(fault: KeyFault) -> Refusal {
    let says = fault.to_string();
    let (status, code) = match fault {
        KeyFault::NotConfigured => (StatusCode::NOT_FOUND, "no_keys"),
        KeyFault::Unknown(_) => (StatusCode::NOT_FOUND, "unknown_key"),
        KeyFault::Wrong(_) => (StatusCode::BAD_REQUEST, "invalid_request"),
        KeyFault::Revoked(_) => (StatusCode::CONFLICT, "key_revoked"),
        KeyFault::Rotating { .. } => (StatusCode::CONFLICT, "key_rotating"),
        KeyFault::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "keys_unavailable"),
    };
    refusal(status, code, &says)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn six_who_wait_for_a_turn_wait_ten_seconds_side_by_side_and_not_in_a_row() {
        let turns = Arc::new(Semaphore::new(1));
        let held = turn_of(&turns).await.expect("the first");
        let begun = tokio::time::Instant::now();
        let waiting = (0..6).map(|_| {
            let turns = Arc::clone(&turns);
            tokio::spawn(async move { turn_of(&turns).await.map(drop) })
        });
        for waiting in waiting.collect::<Vec<_>>() {
            let refused = waiting.await.expect("no panic").expect_err("nobody left");
            assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        }
        assert_eq!(begun.elapsed(), TURN_WITHIN);
        drop(held);
        drop(turn_of(&turns).await.expect("it is free"));
    }

    #[test]
    fn a_page_is_asked_for_by_its_members_alone() {
        let is = |query| asked(query).ok();
        assert_eq!(is(""), Some((None, PAGE_DEFAULT)));
        assert_eq!(is("after=a&limit=2"), Some((Some("a".to_owned()), 2)));
        assert_eq!(is("limit=10000"), Some((None, PAGE_MAX)));
        for query in [
            "limit=0",
            "limit=10001",
            "limit=x",
            "limit",
            "page=1",
            "after",
        ] {
            assert_eq!(is(query), None, "{query}");
        }
    }
}
