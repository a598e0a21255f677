//! The request of one attempt: what goes to one endpoint in place of what the client sent.
//!
//! Invariant: whichever version of HTTP writes it, the fields are these, in this order; those that hold a secret are
//! given apart and come last.
//! Not here: framing (`proxy`), which headers pass ([`crate::credential`]), edits of the body ([`wire::call`]).

use wire::head::{Known, Method, RequestHead};

use super::{Exchange, Plan};
use crate::credential::{self, UpstreamAuth};
use crate::query;
use crate::record::Record;
use crate::secret::Secret;
use crate::snapshot::{Endpoint, Snapshot};
use crate::trace;

/// The head of an attempt's request.
pub struct AttemptRequest<'a> {
    /// Where it goes.
    pub endpoint: &'a Endpoint,
    /// The client's method, which frames the answer.
    pub method: Method,
    /// The same as text.
    pub method_text: &'a str,
    /// What follows the endpoint's base path: `/chat/completions`; the host puts a translation's in its place.
    pub path: &'a str,
    /// The query, with its `?`; empty where there is none.
    pub query: String,
    /// It goes in another dialect than the client's.
    is_translated: bool,
    plan: &'a Plan,
    head: &'a RequestHead,
    record: &'a Record,
    snapshot: &'a Snapshot,
}

impl<'a> AttemptRequest<'a> {
    /// The request that `plan` means, made of what the client sent; `None` for a plan of another snapshot.
    #[must_use]
    #[inline]
    pub fn new(
        plan: &'a Plan,
        exchange: &'a Exchange,
        head: &'a RequestHead,
        snapshot: &'a Snapshot,
    ) -> Option<Self> {
        let record = exchange.record();
        let endpoint = snapshot.endpoint(plan.endpoint)?;
        let backend = snapshot.backend(endpoint.backend)?;
        let query = head
            .query()
            .zip(record.operation)
            .and_then(|(query, operation)| query::forwarded(operation, query));
        Some(Self {
            endpoint,
            method: head.method,
            method_text: head.method_text(),
            path: head.path().strip_prefix("/v1").unwrap_or_default(),
            query: query.map_or_else(String::new, |query| format!("?{query}")),
            is_translated: backend.translator.is_some(),
            plan,
            head,
            record,
            snapshot,
        })
    }

    /// Whether it has a body, be it an empty one.
    #[must_use]
    pub fn has_body(&self) -> bool {
        self.record.bytes_in > 0 || self.method == Method::Post
    }

    /// Gives `put` each field but `host`, the body's length and those with secrets; names in lower case.
    #[inline]
    pub fn fields(&self, mut put: impl FnMut(&[u8], &[u8])) {
        let identity = &self.snapshot.identity.header;
        let route = self.record.route.and_then(|id| self.snapshot.route(id));
        let listed = route.map_or(&[][..], |route| &route.forward_headers);
        let trace = self.record.trace;
        for field in self.head.fields.iter() {
            // A coded response could not be translated.
            if self.is_translated && field.known == Known::AcceptEncoding {
                continue;
            }
            if credential::forwards(&field, &self.head.fields, identity.as_bytes(), listed)
                && trace.is_none_or(|trace| trace::forwards(&trace, field.known))
            {
                put(field.name, field.value);
            }
        }
        put(b"x-request-id", self.record.id.as_bytes());
        if let (Some(trace), Some(span)) = (trace, self.plan.span) {
            put(b"traceparent", &trace.traceparent(span));
        }
    }

    /// Gives `put` each field with a secret: the credential, and the one for a proxy that reads the request.
    #[inline]
    pub fn secrets(&self, mut put: impl FnMut(&str, &Secret)) {
        match (&self.plan.minted, &self.endpoint.auth) {
            (Some(minted), _) => put(&minted.name, &minted.value),
            (None, UpstreamAuth::Header { name, value }) => put(name, value),
            (None, UpstreamAuth::None | UpstreamAuth::Minted(_)) => {}
        }
        let proxy = self.endpoint.origin.proxy.as_deref();
        let proxy = proxy.filter(|_| self.endpoint.origin.is_relayed());
        if let Some(value) = proxy.and_then(|proxy| proxy.authorization.as_ref()) {
            put("proxy-authorization", value);
        }
    }
}
