//! From the record that policy leaves to the row that the ledger keeps.
//!
//! Invariant: ids become the names that the record's own snapshot gives them.
//! Not here: the gate's own count: policy's record has none, and whoever has it sets it on the row.

use std::borrow::Cow;
use std::sync::Arc;

use policy::attribution::{Attribution, kept};
use policy::record::{Count, Extra, Names, Record, Said};
use policy::snapshot::Snapshot;

use crate::columns::micros;
use crate::entry::issuer;
use crate::id::RecordId;
use crate::row::{Named, Price, Settlement, State, Witnesses};

impl Named {
    fn of(names: &Names<'_>, record: &Record) -> Self {
        Self {
            trace_id: record.trace.map(|trace| trace.id_text()),
            workload: owned(names.workload),
            budget_group: owned(names.group),
            route: owned(names.route),
            backend: owned(names.backend),
            who: Attribution::of(record.caller.as_deref(), record.hides_user),
            issuer: issuer(record).map(Into::into),
            method: record.extra.as_ref().and_then(|extra| method(extra)),
            tool: record.extra.as_ref().and_then(|extra| tool(extra)),
        }
    }
}

impl Settlement {
    /// The row of a record that ended, with what its snapshot calls everything.
    #[must_use]
    pub fn of(id: RecordId, record: &Record, snapshot: &Snapshot) -> Self {
        // A new field of the record is asked for here: it is in the row (`columns`), or is not.
        let Record {
            id: _,
            upstream_id: _,
            trace: _,
            started_unix_ms: _,
            operation: _,
            workload: _,
            caller: _,
            hides_user: _,
            route: _,
            endpoint: _,
            backend: _,
            model_asked: _,
            model_sent: _,
            streamed: _,
            status: _,
            outcome: _,
            code: _,
            attempts: _,
            tokens: _,
            charge: _,
            unconfirmed: _,
            estimate_reason: _,
            uncounted: _,
            bytes_in: _,
            bytes_out: _,
            duration: _,
            first_byte: _,
            own: _,
            upstream: _,
            // Not in it.
            client: _,
            reason: _,
            limited: _,
            prompt_doubt: _,
            extra: _,
            listed: _,
            mcp_path: _,
        } = record;
        let names = Names::of(snapshot, record);
        let uncounted = Some(record.uncounted).filter(|why| !why.is_empty());
        let (tokens, took_ms) = (&record.tokens, micros(record.duration) / 1000);
        let mut row = Self {
            id,
            state: State::Settled,
            ended_unix_ms: record.started_unix_ms.saturating_add(took_ms),
            named: Named::of(&names, record),
            endpoint: owned(names.endpoint.map(|endpoint| &endpoint.name)),
            price: names.price.map(|price| Price {
                id: (*price.id).into(),
                currency: (*price.currency).into(),
                cost: record.charge.and_then(|charge| charge.cost),
            }),
            prompt: witnesses(tokens.prompt, tokens.prompt_said),
            completion: witnesses(tokens.completion, tokens.completion_said),
            reserved: None,
            at_least: None,
            at_most: None,
            record: record.clone(),
        };
        row.uncounted(uncounted, uncounted);
        row
    }
}

/// Most exchanges have none.
#[cold]
fn method(extra: &Extra) -> Option<Cow<'static, str>> {
    (!extra.method.is_empty()).then_some(Cow::Borrowed(extra.method))
}

/// The same.
#[cold]
fn tool(extra: &Extra) -> Option<Box<str>> {
    extra.named.as_deref().and_then(kept).map(Into::into)
}

fn owned(name: Option<&Arc<str>>) -> Option<Box<str>> {
    name.map(|name| (**name).into())
}

/// `said` is what the engine reported where another number is billed.
fn witnesses(billed: Count, said: Said) -> Witnesses {
    let of = |is: bool| billed.tokens().filter(|_| is);
    Witnesses {
        reported: of(matches!(billed, Count::Reported(_))).or(said.tokens()),
        counted: of(matches!(billed, Count::Counted(_))),
        uncounted: None,
        doubt: None,
    }
}
