//! What travels to the writer: an admission or a row, all of it in one piece of memory.
//!
//! A worker encodes it where it was made, and frees what it was made of. The writer, on another core, then
//! reads a few lines of memory in order, hashes them as they are, and binds values that lie in them.
//! Invariant: what is stored is what is hashed, because both are these values in this order.
//! Not here: what the columns of a row are (`columns`), what becomes of an entry (`store`).

use std::borrow::Cow;
use std::sync::Arc;

use policy::attribution::{Attribution, kept};
use policy::record::{Extra, Names, Record};
use policy::snapshot::Snapshot;
use policy::usage_ledger::Estimate;
use rusqlite::types::ValueRef;

use crate::chain::{Hash, Link};
use crate::columns::{number, some_number, some_text, text, values, whole_text};
use crate::encoded::{Encoded, Encoder, Values};
use crate::id::RecordId;
use crate::row::{Admission, Settlement};

/// Columns that an admission fills, before its sum.
pub(crate) const ADMITTED: usize = 18;
/// Those of them that do not say which tool is called, nor the issuer of a user's name.
const WITHOUT_LATER: usize = 15;
/// Those of these that do not say who.
const WITHOUT_WHO: usize = 12;

/// An admission on its way to the disk.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    pub(crate) id: RecordId,
    encoded: Encoded,
}

impl Opening {
    pub(crate) fn of(open: &Admission) -> Self {
        let named = &open.named;
        Self::encode(
            open.id,
            &[
                number(open.started_unix_ms),
                text(&open.request_id),
                some_text(named.trace_id.as_deref()),
                some_text(named.workload.as_deref()),
                some_text(named.budget_group.as_deref()),
                some_text(named.route.as_deref()),
                some_text(named.backend.as_deref()),
                some_text(open.model_asked.as_deref()),
                some_text(open.model_sent.as_deref()),
                number(open.reserved),
                some_number(open.at_most),
            ],
            &named.who,
            [
                named.method.as_deref(),
                named.tool.as_deref(),
                named.issuer.as_deref(),
            ],
        )
    }

    /// Of an exchange that is let in, with what its snapshot calls everything. A worker makes one for each call: nothing
    /// is copied but into the encoding.
    pub(crate) fn of_record(
        id: RecordId,
        record: &Record,
        estimate: Estimate,
        snapshot: &Snapshot,
    ) -> Self {
        let names = Names::of(snapshot, record);
        let trace = record.trace.map(|trace| trace.id_text());
        let extra = record.extra.as_ref();
        let (method, tool) = extra.map_or((None, None), |extra| tool(extra));
        Self::encode(
            id,
            &[
                number(record.started_unix_ms),
                text(&record.id),
                some_text(trace.as_deref()),
                some_name(names.workload),
                some_name(names.group),
                some_name(names.route),
                some_name(names.backend),
                some_text(record.model_asked.as_deref()),
                some_name(record.model_sent.as_ref()),
                number(estimate.reserved),
                some_number(estimate.at_most),
            ],
            &Attribution::of(record.caller.as_deref(), record.hides_user),
            [method, tool.as_deref(), issuer(record)],
        )
    }

    fn encode(
        id: RecordId,
        values: &[ValueRef<'_>; WITHOUT_WHO - 1],
        who: &Attribution,
        later: [Option<&str>; ADMITTED - WITHOUT_LATER],
    ) -> Self {
        // Where nothing of that or nobody is known, the sum is the one that earlier builds made.
        let summed = if later.iter().any(Option::is_some) {
            ADMITTED
        } else if who.is_empty() {
            WITHOUT_WHO
        } else {
            WITHOUT_LATER
        };
        let mut encoder = Encoder::new();
        encoder.push(&ValueRef::Blob(&id.0));
        values.iter().for_each(|value| encoder.push(value));
        encoder.push(&some_text(who.key.as_deref()));
        encoder.push(&some_text(who.user.as_deref()));
        encoder.push(&whole_text(who.tags.as_deref()));
        later
            .iter()
            .for_each(|text| encoder.push(&some_text(*text)));
        Self {
            id,
            encoded: encoder.finish(summed),
        }
    }

    pub(crate) fn values(&self) -> Values<'_> {
        self.encoded.values()
    }

    /// What tells whether it is as it was written.
    pub(crate) fn sum(&self) -> i64 {
        self.encoded.sum()
    }
}

/// Who issued the token that names the user, where a user is kept.
pub(crate) fn issuer(record: &Record) -> Option<&str> {
    let caller = record.caller.as_deref().filter(|_| !record.hides_user)?;
    caller.user.as_ref().and(caller.issuer())
}

/// What a message to servers of tools asks for, and what of. Most exchanges are none.
#[cold]
fn tool(extra: &Extra) -> (Option<&str>, Option<Cow<'_, str>>) {
    let method = Some(extra.method).filter(|method| !method.is_empty());
    (method, extra.named.as_deref().and_then(kept))
}

fn some_name(name: Option<&Arc<str>>) -> ValueRef<'_> {
    some_text(name.map(|name| &**name))
}

/// A row on its way to the disk.
#[derive(Debug, Clone)]
pub(crate) struct Ending {
    pub(crate) id: RecordId,
    link: Link,
}

impl Ending {
    /// Of a row that is written by `node`.
    pub(crate) fn of(row: &Settlement, node: &str) -> Self {
        Self {
            id: row.id,
            link: Link::of(values(row, node)),
        }
    }

    pub(crate) fn values(&self) -> Values<'_> {
        self.link.values()
    }

    /// The hash that it has as row `seq`.
    pub(crate) fn hash(&self, before: Hash, seq: i64) -> Hash {
        self.link.hash(before, seq)
    }
}
