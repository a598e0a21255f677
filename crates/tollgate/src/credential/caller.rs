//! A credential that is given for the caller's own token: the upstream sees on whose behalf the gate calls.
//!
//! Invariant: a caller without a token of its own gets none, and never another caller's: what is kept is found by the
//! SHA-256 of the whole token. A caller's token is proven before each call, so that what was given for it is used no
//! longer than both live.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use callout::{CallerExchange, OAuthRequest};
use policy::caller::Later;
use policy::credential::{Credential, Minter};
use policy::secret::Secret;

use super::kept::{Carrier, Line};
use super::{ANSWER_WITHIN, Asks};
use crate::services::{Maker, now_s};

/// Of questions without an answer one is logged in so many seconds.
const TOLD_EVERY_S: u64 = 10;

pub(super) fn maker(
    asks: Asks<'_>,
    request: OAuthRequest,
) -> Result<Option<Arc<dyn Maker>>, String> {
    let client = asks.client(false)?;
    let Some(handle) = &asks.handle()? else {
        return Ok(None);
    };
    Ok(Some(Arc::new(Exchanged {
        exchange: CallerExchange::new(handle, client, request),
        how: Arc::new(How {
            account: asks.made.account.clone(),
            line: Line::of(&asks),
            told_s: AtomicU64::new(0),
        }),
    })))
}

#[derive(Debug)]
struct Exchanged {
    exchange: CallerExchange,
    how: Arc<How>,
}

#[derive(Debug)]
struct How {
    account: String,
    line: Line,
    /// When a question without an answer was last logged.
    told_s: AtomicU64,
}

impl How {
    fn tell(&self, fault: &callout::Fault) {
        let (now, last) = (now_s(), self.told_s.load(Ordering::Relaxed));
        let is_due = now.saturating_sub(last) >= TOLD_EVERY_S;
        let order = Ordering::Relaxed;
        if is_due
            && self
                .told_s
                .compare_exchange(last, now, order, order)
                .is_ok()
        {
            let account = &self.account;
            tracing::warn!(account, why = %fault, "a caller's token cannot be exchanged");
        }
    }
}

/// Nothing is held ready: what is made is each caller's.
impl Maker for Exchanged {}

impl Minter for Exchanged {
    fn account(&self) -> &str {
        &self.how.account
    }

    fn is_for_caller(&self) -> bool {
        true
    }

    fn ready(&self, _: Option<&Secret>) -> Option<Arc<Credential>> {
        None
    }

    fn mint(&self, caller: Option<&Secret>) -> Later<Option<Arc<Credential>>> {
        let Some(caller) = caller else {
            return Box::pin(std::future::ready(None));
        };
        let asked = self.exchange.ask(caller, ANSWER_WITHIN);
        let how = Arc::clone(&self.how);
        Box::pin(async move {
            match asked.await {
                Ok(token) => Some(Arc::new(how.line.credential(&token.value))),
                Err(fault) => {
                    how.tell(&fault);
                    None
                }
            }
        })
    }

    fn refused(&self, status: u16, caller: Option<&Secret>) {
        if let (401, Some(caller)) = (status, caller) {
            self.exchange.renew(caller);
        }
    }
}
