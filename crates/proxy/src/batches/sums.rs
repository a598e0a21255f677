//! What a batch that is over used: what its provider says of all of it, or else what its result tells line by line as it comes.
//!
//! Invariant: what is not known is no sum: zeros that stand until the provider knows, a result that is not named yet, or that breaks off.
//! Not here: who asks when, and what becomes of the sums (`settle`); reading lines (`wire::batch`); what they cost (`policy::batches`).

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use policy::batch_store::Thing;
use policy::batches::{Late, Used, answered, pieces, price_of};
use policy::id::{BackendId, PriceId};
use policy::operation::Operation;
use policy::snapshot::Snapshot;
use wire::batch::{Api, Object, ResultLines, Told, told};
use wire::usage::Reading;

use super::send;
use crate::deadline::Deadline;
use crate::tools::{Asker, Failed, next};
use crate::worker::Worker;
use crate::worker_snapshot::WorkerSnapshot;

/// What the gate's own questions are called.
pub(super) const ID: &str = "batches";

/// What the calls of a batch that is over used, by model.
///
/// # Errors
/// Why that is not known, in words.
pub(super) async fn used(
    worker: &Rc<Worker>,
    view: &WorkerSnapshot,
    backend: BackendId,
    thing: &Thing,
    object: &Object,
    late: Late<'_>,
) -> Result<BTreeMap<Arc<str>, Used>, String> {
    let s = view.snapshot();
    let mut sums = Sums {
        late,
        view,
        of: thing,
        prices: HashMap::new(),
        used: BTreeMap::new(),
        counts_pieces: thing.calls.iter().any(|(of, _)| *of == Operation::Images),
        served: 0,
        unread: 0,
    };
    let path = match (thing.api, &object.output_file) {
        (Api::OpenAi, Some(file)) => Some(format!("/files/{file}/content")),
        (Api::OpenAi, None) => None,
        (Api::Anthropic, _) => object
            .has_results()
            .then(|| format!("/messages/batches/{}/results", thing.id)),
    };
    if let Some(model) = only_model(thing)
        && let Some(sum) = object.sum()
        && sums.is_by_token(&model, s)
    {
        sums.add(&model, sum, None);
        return Ok(sums.used);
    }
    let Some(path) = path else {
        return match object.lacks_result() {
            true => Err("its provider says that calls were answered, and names no result".into()),
            false => Ok(sums.used),
        };
    };
    let request = send::ToProvider::own(thing.api, path);
    let began = send::asked(worker, view, ID, backend, &request).await;
    let mut began = began.map_err(|failed| says(&failed))?;
    let status = began.response.head.as_ref().map_or(0, |head| head.status);
    if status != 200 {
        return Err(format!(
            "its provider answers with status {status} where it is asked for its result"
        ));
    }
    let asker = Asker::of_gate(worker, view, ID);
    let mut deadline = Deadline::new(&worker.clock.wheel);
    let mut lines = ResultLines::default();
    let mut is_over = false;
    while !is_over {
        deadline.set(began.timeouts.idle);
        let take = |data: &[u8]| lines.push(data, |line| sums.line(&line));
        let read = next(asker, &mut began.response.body, &mut deadline, take).await;
        is_over = read.map_err(|failure| says(&Failed::Upstream(failure)))?;
        if is_over {
            lines.finish(|line| sums.line(&line));
        }
        // Calls go on meanwhile.
        tokio::task::yield_now().await;
    }
    match (lines.skipped, sums.unread) {
        (0, 0) => match object.answered {
            Some(answered) if sums.served < answered => {
                let served = sums.served;
                Err(format!(
                    "its result tells of {served} calls that were answered, and its provider of {answered}"
                ))
            }
            _ => Ok(sums.used),
        },
        (0, lines) => Err(format!("{lines} lines of its result cannot be read")),
        (lines, _) => Err(format!(
            "{lines} lines of its result are longer than 1 MiB without what no bill needs"
        )),
    }
}

/// Sums of what is told.
struct Sums<'a> {
    late: Late<'a>,
    view: &'a WorkerSnapshot,
    of: &'a Thing,
    prices: HashMap<Arc<str>, Option<PriceId>>,
    used: BTreeMap<Arc<str>, Used>,
    /// Some of its calls are billed by the images that came.
    counts_pieces: bool,
    /// Lines of calls that were answered: others are not among those that its provider counts.
    served: u64,
    /// Lines that are none.
    unread: u64,
}

impl Sums<'_> {
    fn line(&mut self, line: &[u8]) {
        self.told(told(self.of.api, self.counts_pieces, line));
    }

    fn told(&mut self, told: Told) {
        match told {
            Told::Served(served) => {
                let (view, calls) = (self.view, &self.of.calls);
                let answered = answered(calls, &served, |model| self.price(model), view.snapshot());
                let (operation, model) = answered.unwrap_or((Operation::Chat, "unknown".into()));
                let pieces = pieces(operation, &served);
                self.add(&model, &served.usage, pieces);
                self.served += 1;
            }
            Told::Unserved => {}
            Told::Unreadable => self.unread += 1,
        }
    }

    fn add(&mut self, model: &Arc<str>, told: &Reading, pieces: Option<u32>) {
        let price = self.price(model);
        let used = self.used.entry(Arc::clone(model)).or_default();
        used.add(told, pieces, price, self.view.snapshot());
    }

    fn price(&mut self, model: &Arc<str>) -> Option<PriceId> {
        if let Some(price) = self.prices.get(model) {
            return *price;
        }
        let of = Late { model, ..self.late };
        let revision = &self.view.revision;
        let price = price_of(&of, &revision.snapshot, &revision.levels);
        self.prices.insert(Arc::clone(model), price);
        price
    }

    /// Whether a sum costs what its calls do.
    fn is_by_token(&mut self, model: &Arc<str>, s: &Snapshot) -> bool {
        let price = self.price(model).and_then(|id| s.prices.get(id));
        price.is_none_or(|price| price.tiers.is_empty() && price.request.0 == 0)
    }
}

/// The only model that a batch asks for, where it is one.
fn only_model(thing: &Thing) -> Option<Arc<str>> {
    let mut models = thing.calls.iter().map(|(_, model)| &**model);
    let first = models.next()?;
    models.all(|model| model == first).then(|| first.into())
}

/// Why something was not told.
pub(super) fn says(failed: &Failed) -> String {
    let reason = failed.reason().map(String::from);
    reason.unwrap_or_else(|| failed.refusal().to_string())
}
