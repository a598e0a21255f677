//! What filters make of a request on its way: at once, or by whoever has the time for a long body.
//!
//! Invariant: a filter gets the request as the one before it left it; what one cannot say is told with the prompt that it asks a count of.
//! Not here: filters themselves ([`wire::filter`]), what of them goes upstream (`request`).

use std::sync::Arc;

use bytes::Bytes;
use wire::dialect::below_root;
use wire::dialect::gemini::Named;
use wire::filter::{self, Answering, Filter, Manner, Unfit};
use wire::head::{Known, RequestHead};

use super::gemini_listed;
use crate::exchange::attempting::filters;
use crate::exchange::{Exchange, Stage, kept};
use crate::operation::Operation;
use crate::snapshot::Snapshot;

impl Exchange {
    /// Whether a filter applies to the attempt under way.
    #[inline]
    #[must_use]
    pub fn is_filtered(&self) -> bool {
        matches!(&self.stage, Stage::Active(active) if active.asked.is_some())
    }

    /// The request as the filters of its route and backend make it, where there are any. `body` is the client's, edited.
    ///
    /// # Errors
    /// A filter cannot say it.
    #[cold]
    pub fn filtered(
        &mut self,
        head: &RequestHead,
        s: &Snapshot,
        body: &[Bytes],
    ) -> Result<Option<Box<filter::Request>>, Unfit> {
        let [first, last] = filters(&self.record, s);
        if first.is_empty() && last.is_empty() {
            return Ok(None);
        }
        let Some((asked, request)) = self.asking(head, s, body) else {
            return Ok(None);
        };
        let filters = first.iter().chain(last);
        self.take_filtered(pass(asked, request, filters))
    }

    /// The same, to be done by whoever has the time and told by [`take_filtered`](Self::take_filtered), where any filter applies.
    #[cold]
    #[must_use]
    pub fn filtering(&self, head: &RequestHead, s: &Snapshot, body: &[Bytes]) -> Option<Filtering> {
        let [first, last] = filters(&self.record, s);
        let filters: Vec<_> = first.iter().chain(last).cloned().collect();
        let mut asked = self.record.operation?;
        let mut is_filtered = false;
        for filter in &filters {
            if filter.applies(asked) {
                is_filtered = true;
                asked = filter.operation(asked);
            }
        }
        let (asked, request) = self.asking(head, s, body).filter(|_| is_filtered)?;
        Some(Filtering {
            asked,
            request,
            filters,
        })
    }

    /// The request as its first filter gets it.
    #[cold]
    fn asking(
        &self,
        head: &RequestHead,
        s: &Snapshot,
        body: &[Bytes],
    ) -> Option<(Operation, Box<filter::Request>)> {
        let record = &self.record;
        let asked = record.operation?;
        let keeping = match (asked, &s.responses) {
            (Operation::Responses, Some(_)) => {
                kept::keeping(record, self.continued.as_deref(), body, s)
            }
            _ => None,
        };
        let backend = record.backend.and_then(|id| s.backend(id));
        let named = match asked.is_named_by_path() {
            true => Named::of(head.path()),
            false => None,
        };
        let below = match (&named, asked) {
            (Some(named), _) => Some(named.below),
            (None, Operation::GeminiModels) => gemini_listed(head),
            (None, form) if form.is_form() => Some(below_root(head.path())),
            (None, _) => None,
        };
        let request = Box::new(filter::Request {
            model: record.model_sent.as_ref().map(|model| {
                let name = backend.map_or(&**model, |backend| backend.model_name(model));
                match std::ptr::eq(name, &**model) {
                    true => Arc::clone(model),
                    false => name.into(),
                }
            }),
            below: below.unwrap_or_default().into(),
            manner: named
                .as_ref()
                .map_or_else(Manner::default, |named| named.manner(head.query())),
            body: body.to_vec(),
            shares_account: record
                .route
                .and_then(|id| s.route(id))
                .is_none_or(|route| !route.is_exclusive),
            keeping,
            ..filter::Request::default()
        });
        Some((asked, request))
    }

    /// What came of the filters.
    ///
    /// # Errors
    /// A filter cannot say it.
    pub fn take_filtered(&mut self, passed: Passed) -> Result<Option<Box<filter::Request>>, Unfit> {
        let Passed {
            result: passed,
            to_count: prompt,
        } = passed;
        if let (Some(prompt), Stage::Active(active)) = (prompt, &mut self.stage) {
            let unsaid = active.unfit.get_or_insert_default();
            unsaid.prompt = unsaid
                .prompt
                .take()
                .or(self.record.backend.map(|id| (prompt, id)));
        }
        let passed = passed?;
        Ok(passed.map(|(request, answering)| {
            if let Stage::Active(active) = &mut self.stage {
                active.answering = answering;
            }
            let dropped = &request.dropped;
            if !dropped.is_empty() {
                let extra = self.record.extra.get_or_insert_default();
                extra.dropped = dropped.as_slice().into();
            } else if let Some(extra) = &mut self.record.extra {
                extra.dropped = Box::default();
            }
            request
        }))
    }

    /// The attempt went without a value of `anthropic-beta` that its client sent.
    #[cold]
    pub fn left_betas_out(&mut self) {
        let extra = self.record.extra.get_or_insert_default();
        let name = Known::AnthropicBeta.name();
        // An attempt may go over another connection.
        if !extra.dropped.contains(&name) {
            let mut dropped = std::mem::take(&mut extra.dropped).into_vec();
            dropped.push(name);
            extra.dropped = dropped.into();
        }
    }
}

/// A request on its way through filters, which take as long as its body is: for whoever has the time.
#[derive(Debug)]
pub struct Filtering {
    asked: Operation,
    request: Box<filter::Request>,
    filters: Vec<Arc<dyn Filter>>,
}

impl Filtering {
    /// Passes it through them.
    #[must_use]
    pub fn run(self) -> Passed {
        pass(self.asked, self.request, self.filters.iter())
    }
}

/// What came of a request's way through filters.
#[derive(Debug)]
pub struct Passed {
    /// The request as they made it, where any applies, and what they left for its response.
    result: Result<Option<Made>, Unfit>,
    /// The prompt whose count it asks for.
    to_count: Option<filter::Prompt>,
}

type Made = (Box<filter::Request>, Vec<Box<dyn Answering>>);

#[cold]
fn pass<'f>(
    mut asked: Operation,
    mut request: Box<filter::Request>,
    filters: impl Iterator<Item = &'f Arc<dyn Filter>>,
) -> Passed {
    let mut answering = Vec::new();
    let mut is_filtered = false;
    for filter in filters {
        if !filter.applies(asked) {
            continue;
        }
        is_filtered = true;
        match filter.request(asked, &mut request) {
            Ok(left) => answering.extend(left),
            Err(unfit) => {
                return Passed {
                    to_count: filter.prompt_to_count(asked, &request),
                    result: Err(unfit),
                };
            }
        }
        asked = filter.operation(asked);
    }
    Passed {
        result: Ok(is_filtered.then_some((request, answering))),
        to_count: None,
    }
}
