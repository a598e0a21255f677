//! The client's own fields that go upstream with a request: by lists, or to a service of plain HTTP.
//!
//! Invariant: a field that a backend, a filter or an action of the route writes is not the client's too.
//! Not here: the lists ([`crate::credential`], [`crate::plain::fields`]), the gate's own fields (`request`).

use wire::head::Known;

use super::AttemptRequest;
use crate::operation::Operation;
use crate::plain::fields;
use crate::snapshot::AddedHeader;
use crate::{credential, trace};

impl AttemptRequest<'_> {
    /// Those of the client's that pass by lists.
    #[inline(always)]
    pub(super) fn listed_fields(&self, put: &mut impl FnMut(&[u8], &[u8])) {
        let identity = &self.snapshot.identity.header;
        let route = self.record.route.and_then(|id| self.snapshot.route(id));
        let listed = route.map_or(&[][..], |route| &route.forward_headers);
        let trace = self.record.trace;
        let ours = &self.backend.headers;
        let is_read = self.record.operation.is_some_and(Operation::reads_body);
        let withheld = match is_read && self.record.listed.is_none() {
            // It was decoded.
            true => self.backend.withheld_headers.with(Known::ContentEncoding),
            false => self.backend.withheld_headers,
        };
        let api = (self.path(), withheld);
        let filtered = self.filtered;
        for field in self.head.fields.of_any(credential::MAY_GO) {
            if let Some(filtered) = filtered {
                let mut made = filtered.headers.iter();
                if made.any(|(name, _)| name.as_bytes() == field.name) {
                    continue;
                }
            }
            if !ours.is_empty() && ours.iter().any(|ours| *ours.name == *field.name) {
                continue;
            }
            if credential::forwards(&field, &self.head.fields, identity.as_bytes(), listed, api)
                && trace.is_none_or(|trace| trace::forwards(&trace, field.known))
            {
                put(field.name, field.value);
            }
        }
    }

    /// What is left of a header of the API where the backend names its values.
    #[cold]
    #[inline(never)]
    pub(super) fn narrowed(&self, ours: &AddedHeader, put: &mut impl FnMut(&[u8], &[u8])) {
        if let Some(value) = ours.value.of(self.lines_of(ours)) {
            put(&ours.name, &value);
        }
    }

    /// The client's lines of such a header, where they would pass.
    fn lines_of(&self, ours: &AddedHeader) -> impl Iterator<Item = &[u8]> {
        let fields = self.head.fields.iter();
        let its = fields.filter(|field| *ours.name == *field.name);
        its.filter(|field| credential::is_of_api(field.known, self.path()))
            .map(|field| field.value)
    }

    /// Whether a value of `anthropic-beta` stays behind that its client sent, since the backend does not name it.
    #[must_use]
    #[inline]
    pub fn leaves_betas_out(&self) -> bool {
        !self.backend.headers.is_empty() && self.takes_betas_out()
    }

    #[cold]
    fn takes_betas_out(&self) -> bool {
        let mut ours = self.backend.headers.iter();
        ours.any(|ours| ours.value.leaves_out(self.lines_of(ours)))
    }

    /// Those of the client's that go to a service of plain HTTP; cookies go in one line (RFC 9113, 8.2.3).
    #[cold]
    #[inline(never)]
    pub(super) fn plain_fields(&self, put: &mut impl FnMut(&[u8], &[u8])) {
        let (s, ours) = (self.snapshot, &self.backend.headers);
        let mut cookies: Vec<u8> = Vec::new();
        // A credential of the gate's in a header of its own name has that to itself.
        let mut secrets: Vec<&str> = Vec::new();
        self.secrets(|name, _| secrets.push(name));
        for field in self.head.fields.iter() {
            let is_replaced = ours.iter().any(|ours| *ours.name == *field.name);
            let passes = |trace| trace::forwards(trace, field.known);
            let user = s.identity.user_header.as_deref();
            let names_user = user.is_some_and(|user| user.as_bytes() == field.name);
            let own = self.endpoint.edits.as_ref();
            let is_kept = self.actions.is_none_or(|of| of.request.keeps(field.name))
                && own.is_none_or(|edits| edits.keeps(field.name));
            let is_secret = secrets
                .iter()
                .any(|name| name.as_bytes().eq_ignore_ascii_case(field.name));
            if !is_kept
                || is_secret
                || names_user
                || is_replaced
                || !self.record.trace.as_ref().is_none_or(passes)
            {
                continue;
            }
            if !fields::forwards(&field, &self.head.fields, s.identity.header.as_bytes()) {
                continue;
            }
            if field.known != Known::Cookie {
                put(field.name, field.value);
                continue;
            }
            let kept = match &s.login {
                Some(site) => fields::cookies_but(field.value, site.login.cookies()),
                None => Some(field.value.to_vec()),
            };
            for kept in kept.into_iter().filter(|kept| !kept.is_empty()) {
                if !cookies.is_empty() {
                    cookies.extend_from_slice(b"; ");
                }
                cookies.extend_from_slice(&kept);
            }
        }
        if !cookies.is_empty() {
            put(b"cookie", &cookies);
        }
        if let Some(actions) = self.actions {
            let own = self.endpoint.edits.as_ref();
            actions.request.put(|name, value| {
                if own.is_none_or(|edits| edits.keeps(name)) {
                    put(name, value);
                }
            });
        }
        if let Some(edits) = &self.endpoint.edits {
            edits.put(|name, value| put(name, value));
        }
    }
}
