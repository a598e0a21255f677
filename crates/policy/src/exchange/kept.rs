//! Calls about responses that the gate itself keeps: one that goes on from such a response is made whole, and one that asks for it or has
//! it removed is answered.
//!
//! Invariant: whoever is no more than another caller of the same workload finds nothing of it.
//! Not here: who keeps them, and for whom ([`crate::responses`]).

use std::sync::Arc;

use bytes::Bytes;
use wire::call::{CallHead, GoingOn, ItemPage, is_prompt_elsewhere};
use wire::filter::{Keeping, KeptResponse};
use wire::head::RequestHead;

use super::admission::Opened;
use super::{Exchange, Stage, Verdict};
use crate::disconnect::OnDisconnect;
use crate::levels::Levels;
use crate::operation::Operation;
use crate::record::Record;
use crate::refusal::Refusal;
use crate::responses::{self, Asked, Continued, Found, Principal};
use crate::snapshot::Snapshot;

impl Exchange {
    /// Whether what its call goes on from is with its upstream: nobody here knows what its prompt comes to.
    #[cold]
    pub(super) fn is_prompt_unseen(&self) -> bool {
        matches!(self.continued.as_deref(), Some(Continued::Upstream { .. }))
    }

    /// Looks whether the prompt of its call is more than this body holds, before that goes: whoever leaves early is charged by what was seen of it.
    #[cold]
    pub fn look_for_prompt(&mut self, body: &[Bytes], s: &Snapshot) {
        let Stage::Active(active) = &mut self.stage else {
            return;
        };
        let route = self.record.route.and_then(|id| s.route(id));
        let is_open = route.is_some_and(|route| route.abandon == OnDisconnect::Unsaid);
        if let (true, false, Some(operation)) =
            (is_open, active.is_prompt_unseen, self.record.operation)
        {
            active.is_prompt_unseen = is_prompt_elsewhere(operation, body);
        }
    }

    /// Tokens that the response which its call names has come to, where the gate has seen that answered; 0 where not.
    #[cold]
    pub(super) fn tokens_before(&self, levels: &Levels) -> u64 {
        match self.continued.as_deref() {
            Some(Continued::Upstream {
                previous: Some(previous),
            }) => levels.of_response(previous.as_bytes()),
            _ => 0,
        }
    }

    /// The body of a call that goes on from what is kept of earlier ones, made whole where the gate keeps that: what is told of it from now on is told of
    /// this one.
    ///
    /// # Errors
    /// The response is the gate's, and is kept no longer; or all of it together is too large.
    #[cold]
    pub fn made_whole(
        &mut self,
        call: &CallHead,
        body: &[Bytes],
        s: &Snapshot,
    ) -> Result<Option<Bytes>, Refusal> {
        let Some(operation @ (Operation::Responses | Operation::InputTokens)) =
            self.record.operation
        else {
            return Ok(None);
        };
        if operation == Operation::Responses {
            let previous = call.goes_on().then(|| GoingOn::read(&body.concat()));
            let previous = previous.flatten().and_then(|going| going.previous);
            self.continued = Some(Box::new(Continued::Upstream { previous }));
        }
        let Some(store) = s.responses.as_ref().filter(|_| call.goes_on()) else {
            return Ok(None);
        };
        let Some(of) = principal(&self.record, call.user.as_deref(), s) else {
            return Ok(None);
        };
        let limit = s.bounds.body_bytes;
        match responses::made_whole(&**store, &of, body, limit) {
            Found::Elsewhere => Ok(None),
            Found::Gone => Err(Refusal::ResponseGone),
            Found::TooLarge => Err(Refusal::BodyTooLarge { limit }),
            Found::Whole(whole, continued) => {
                if whole.len() as u64 > limit {
                    return Err(Refusal::BodyTooLarge { limit });
                }
                self.continued = Some(Box::new(continued));
                // What it comes to is what is sent.
                self.record.bytes_in = whole.len() as u64;
                Ok(Some(whole.into()))
            }
        }
    }

    /// The kept response that a call asks for; `None` where the call is another's, whose route lists it.
    ///
    /// # Errors
    /// Nobody else could have it, and it is not there.
    #[cold]
    pub(super) fn kept_response(
        &self,
        opened: Opened,
        head: &RequestHead,
        s: &Snapshot,
    ) -> Result<Option<Arc<KeptResponse>>, Refusal> {
        let found = s.responses.as_ref().and_then(|store| {
            let (_, id) = responses::asked(head)?;
            store.find(&principal(&self.record, None, s)?, id)
        });
        match (found, opened.operation) {
            (None, Operation::KeptResponse) => Err(Refusal::ResponseNotFound),
            (found, _) => Ok(found),
        }
    }

    /// Tells of it, or that it is removed.
    #[cold]
    pub(super) fn tell_kept(
        &mut self,
        kept: Arc<KeptResponse>,
        head: &RequestHead,
        s: &Snapshot,
    ) -> Verdict {
        self.record.operation = Some(Operation::KeptResponse);
        let id = match responses::asked(head) {
            Some((Asked::Removal, id)) => id,
            Some((Asked::Items, id)) => {
                let listed = self.items(id, head, s);
                return match listed {
                    Ok(listed) => {
                        self.record.status = 200;
                        Verdict::Kept(listed)
                    }
                    Err(refusal) => self.refuse_unread(refusal),
                };
            }
            Some((Asked::Document, _)) | None => {
                self.record.status = 200;
                return Verdict::Kept(kept.document.clone());
            }
        };
        self.record.status = 200;
        if let (Some(store), Some(of)) = (&s.responses, principal(&self.record, None, s)) {
            store.remove(&of, id);
        }
        let told = format!(r#"{{"id":"{id}","object":"response.deleted","deleted":true}}"#);
        Verdict::Kept(told.into())
    }

    /// A page of the items that a response was made from: all turns before it, and its own input.
    fn items(&self, id: &str, head: &RequestHead, s: &Snapshot) -> Result<Bytes, Refusal> {
        let page = ItemPage::of(head.query().unwrap_or_default()).ok_or_else(|| {
            let says = "a page of items has `limit` (1 to 100), `order` (asc or desc) and `after`";
            Refusal::ItemsPage { says: says.into() }
        })?;
        let chain = s.responses.as_ref().zip(principal(&self.record, None, s));
        let chain = chain.and_then(|(store, of)| store.chain(&of, id));
        let chain = chain.ok_or(Refusal::ResponseNotFound)?;
        let Some((own, before)) = chain.split_last() else {
            return Err(Refusal::ResponseNotFound);
        };
        let mut items: Vec<&[u8]> = Vec::with_capacity(2 * chain.len());
        for kept in before {
            items.extend([&*kept.input, &*kept.output]);
        }
        items.push(&own.input);
        let listed = page.listed(id, &items).ok_or_else(|| {
            let says = "`after` names no item of this response";
            Refusal::ItemsPage { says: says.into() }
        })?;
        Ok(listed.into())
    }
}

/// Where the response to this call is kept, where it can be.
#[cold]
pub(super) fn keeping(
    record: &Record,
    continued: Option<&Continued>,
    body: &[Bytes],
    s: &Snapshot,
) -> Option<Keeping> {
    let store = s.responses.as_ref()?;
    responses::keeping(store, principal(record, None, s)?, continued, body)
}

/// Whose call it is; `said` is who it says is behind it, before that is recorded.
fn principal(record: &Record, said: Option<&str>, s: &Snapshot) -> Option<Principal> {
    let workload = s.workload(record.workload?)?;
    Some(Principal::of(
        &workload.name,
        record.caller.as_deref(),
        said,
    ))
}
