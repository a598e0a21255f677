//! From the record that policy leaves to the row that the ledger keeps.
//!
//! Invariant: ids become the names that the record's own snapshot gives them.
//! Not here: the gate's own count: policy's record has none, and whoever has it sets it on the row.

use std::time::Duration;

use policy::record::{Count, Record};
use policy::snapshot::Snapshot;

use crate::id::RecordId;
use crate::row::{Price, Settlement, State, Witnesses};

impl Settlement {
    /// The row of a record that ended, with what its snapshot calls everything.
    #[must_use]
    pub fn of(id: RecordId, record: &Record, snapshot: &Snapshot) -> Self {
        let duration_us = micros(record.duration);
        Self {
            id,
            state: State::Settled,
            request_id: record.id.clone(),
            trace_id: record.trace.map(|trace| trace.id_text()),
            started_unix_ms: record.started_unix_ms,
            ended_unix_ms: record.started_unix_ms.saturating_add(duration_us / 1000),
            workload: name(
                &snapshot.workloads,
                record.workload.map(|id| id.index()),
                |w| &w.name,
            ),
            budget_group: record
                .workload
                .and_then(|id| snapshot.budgets.group(id))
                .map(|group| (**group).into()),
            route: name(&snapshot.routes, record.route.map(|id| id.index()), |r| {
                &r.name
            }),
            backend: name(
                &snapshot.backends,
                record.backend.map(|id| id.index()),
                |b| &b.name,
            ),
            endpoint: name(
                &snapshot.endpoints,
                record.endpoint.map(|id| id.index()),
                |e| &e.name,
            ),
            operation: record.operation.map(|operation| operation.as_str().into()),
            model_asked: record.model_asked.clone(),
            model_sent: record.model_sent.as_deref().map(Into::into),
            streamed: record.streamed,
            status: record.status,
            outcome: record.outcome,
            code: record.code.into(),
            attempts: record.attempts,
            prompt: witnesses(record.tokens.prompt, record.tokens.prompt_said),
            completion: witnesses(record.tokens.completion, record.tokens.completion_said),
            cached: record.tokens.cached,
            reasoning: record.tokens.reasoning,
            cache_write_5m: record.tokens.cache_write_5m,
            cache_write_1h: record.tokens.cache_write_1h,
            audio_prompt: record.tokens.audio_prompt,
            audio_completion: record.tokens.audio_completion,
            usage_invalid: record.tokens.invalid,
            usage_doubtful: record.tokens.doubtful,
            unconfirmed_attempts: record.unconfirmed.attempts,
            unconfirmed_tokens: record.unconfirmed.tokens(),
            estimate_reason: record.estimate_reason.into(),
            upstream_request_id: None,
            reserved: None,
            at_least: None,
            at_most: None,
            price: policy::record::charge(snapshot, record).map(|charge| Price {
                id: (*charge.price.id).into(),
                currency: (*charge.price.currency).into(),
                cost: charge.cost,
            }),
            bytes_in: record.bytes_in,
            bytes_out: record.bytes_out,
            duration_us,
            first_byte_us: record.first_byte.map(micros),
            upstream_us: record.upstream.map(micros),
            own_us: record.own.map(micros),
        }
    }
}

fn name<T>(
    all: &[T],
    index: Option<usize>,
    name: fn(&T) -> &std::sync::Arc<str>,
) -> Option<Box<str>> {
    index
        .and_then(|i| all.get(i))
        .map(|one| (**name(one)).into())
}

/// `said` is what the engine reported where that is not believed.
fn witnesses(billed: Count, said: Option<u64>) -> Witnesses {
    Witnesses {
        billed,
        reported: matches!(billed, Count::Reported(_))
            .then(|| billed.tokens())
            .flatten()
            .or(said),
        counted: matches!(billed, Count::Counted(_))
            .then(|| billed.tokens())
            .flatten(),
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
