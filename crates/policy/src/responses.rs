//! Responses that the gate keeps for clients of the Responses API whose backends keep none: a later call goes on from one by its id.
//!
//! Invariant: a response is kept for one principal, and no other one ever finds it: whoever asks for it is told that it is not there, as
//! of one that never was.
//! Not here: where they lie and how long (the host), what is put together of them (`wire::call`), writing one (`translate`).

use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;
use wire::call::GoingOn;
use wire::dialect::below_root;
use wire::filter::{Keeper, Keeping, KeptResponse};
use wire::head::{Method, RequestHead};

use crate::caller::{Caller, Proven};

/// Whose a response is: a caller of a workload, as far as anything tells callers of it apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Principal {
    workload: Arc<str>,
    /// What proves it: a name at one issuer is somebody else at another, and one that is said is nobody who is proven.
    by: Proven,
    issuer: Option<Arc<str>>,
    key: Option<Arc<str>>,
    user: Option<Arc<str>>,
    is_user_said: bool,
}

impl Principal {
    /// Of a caller of this workload; `said` is who the call itself says is behind it, where it is believed.
    #[must_use]
    pub fn of(workload: &Arc<str>, caller: Option<&Caller>, said: Option<&str>) -> Self {
        let (user, is_user_said) = match (said, caller) {
            (Some(said), _) => (Some(said.into()), true),
            (None, Some(caller)) => (caller.user.clone(), caller.is_user_said),
            (None, None) => (None, false),
        };
        Self {
            workload: Arc::clone(workload),
            by: caller.map_or_else(Proven::default, |caller| caller.by),
            issuer: caller.and_then(Caller::issuer).map(Arc::from),
            key: caller.and_then(|caller| caller.key.clone()),
            user,
            is_user_said,
        }
    }
}

/// Keeps responses, within bounds of its own.
pub trait ResponseStore: Debug + Send + Sync {
    /// An id for a response that begins, which nobody can guess.
    fn fresh_id(&self) -> Arc<str>;

    /// Whether an id is one of those.
    fn is_own(&self, id: &str) -> bool;

    /// Keeps a response, where there is room for it.
    fn keep(&self, of: &Principal, response: KeptResponse);

    /// The response of this id.
    fn find(&self, of: &Principal, id: &str) -> Option<Arc<KeptResponse>>;

    /// The response of this id behind all that it goes on from; `None` where any of them is not there.
    fn chain(&self, of: &Principal, id: &str) -> Option<Vec<Arc<KeptResponse>>>;

    /// Forgets a response; whether it was there.
    fn remove(&self, of: &Principal, id: &str) -> bool;
}

/// Keeps responses of one caller.
#[derive(Debug)]
struct OfCaller {
    store: Arc<dyn ResponseStore>,
    of: Principal,
}

impl Keeper for OfCaller {
    fn keep(&self, response: KeptResponse) {
        self.store.keep(&self.of, response);
    }
}

/// From what a call goes on.
#[derive(Debug)]
pub(crate) enum Continued {
    /// A response that the gate keeps.
    Kept {
        previous: Arc<str>,
        /// What the call adds to it.
        input: Bytes,
    },
    /// What its upstream keeps: its prompt is not in its body.
    Upstream {
        /// The response that it names.
        previous: Option<Box<str>>,
    },
}

/// What comes of a call that names an earlier response.
pub(crate) enum Found {
    /// It is made whole.
    Whole(Vec<u8>, Continued),
    /// The response is none of the store's: whoever made it may have it.
    Elsewhere,
    /// It is not kept, or no longer.
    Gone,
    /// All of it together is more than a body may have.
    TooLarge,
}

/// Makes a call whole that goes on from a kept response, in so many bytes at most: nothing is copied of what is longer.
pub(crate) fn made_whole(
    store: &dyn ResponseStore,
    of: &Principal,
    body: &[Bytes],
    most: u64,
) -> Found {
    let body = body.concat();
    let Some(going) = GoingOn::read(&body) else {
        return Found::Elsewhere;
    };
    let Some(previous) = going.previous.as_deref() else {
        return Found::Elsewhere;
    };
    let Some(chain) = store.chain(of, previous) else {
        return match store.is_own(previous) {
            true => Found::Gone,
            false => Found::Elsewhere,
        };
    };
    let items = chain.iter().flat_map(|kept| [&*kept.input, &*kept.output]);
    let turns: usize = items.clone().map(<[u8]>::len).sum();
    if (turns.saturating_add(body.len())) as u64 > most {
        return Found::TooLarge;
    }
    let whole = going.with_items(&body, items);
    let continued = Continued::Kept {
        previous: previous.into(),
        input: Bytes::copy_from_slice(going.input(&body)),
    };
    Found::Whole(whole, continued)
}

/// Where the response to this call is kept.
pub(crate) fn keeping(
    store: &Arc<dyn ResponseStore>,
    of: Principal,
    continued: Option<&Continued>,
    body: &[Bytes],
) -> Option<Keeping> {
    let (previous, input) = match continued {
        Some(Continued::Kept { previous, input }) => (Some(Arc::clone(previous)), input.clone()),
        Some(Continued::Upstream { .. }) | None => {
            let body = body.concat();
            let input = Bytes::copy_from_slice(GoingOn::read(&body)?.input(&body));
            (None, input)
        }
    };
    Some(Keeping {
        id: store.fresh_id(),
        previous,
        input,
        keeper: Arc::new(OfCaller {
            store: Arc::clone(store),
            of,
        }),
    })
}

/// What is asked of a kept response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    Document,
    Removal,
    /// What it was made from.
    Items,
}

/// The response that a request asks for or has removed, by its id.
pub(crate) fn asked(head: &RequestHead) -> Option<(Asked, &str)> {
    let asked = match head.method {
        Method::Get => Asked::Document,
        Method::Delete => Asked::Removal,
        _ => return None,
    };
    let id = below_root(head.path()).strip_prefix("/responses/")?;
    let (asked, id) = match (asked, id.strip_suffix("/input_items")) {
        (Asked::Document, Some(id)) => (Asked::Items, id),
        _ => (asked, id),
    };
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    let is_id = (1..=128).contains(&id.len()) && id.bytes().all(is_plain);
    is_id.then_some((asked, id))
}

#[cfg(test)]
mod tests;
