//! `identity`: how callers are recognised, in the order written.
//!
//! Invariant: a bare header is believed only where the document says whose word counts, or where nobody but this
//! machine can say it.
//! Not here: verifiers themselves (the host makes them of [`CredentialSource`]), proving (`policy::identity`).

use std::sync::Arc;
use std::time::Duration;

use policy::caller::{Caller, Proven};
use policy::identity::{Certificates, HeaderSource, Identity, Source, Trusted, UserRule};
use policy::snapshot::Snapshot;

use super::host::data_address;
use crate::decode::{At, Field, MapOf, Place};
use crate::host::{
    ClaimNames, CredentialKind, CredentialSource, Fetched, JwksSource, JwtSource, WorkloadFrom,
};
use crate::scalar::{Name, Text};
use crate::schema::Document;
use crate::schema::identity::{IdentitySource, Jwks, Jwt};

const LEEWAY_DEFAULT: Duration = Duration::from_secs(30);
const LEEWAY_MAX: Duration = Duration::from_secs(60);
const STALE_DEFAULT: Duration = Duration::from_secs(24 * 60 * 60);

impl super::Lowering<'_> {
    /// Puts the sources that need nothing more into the snapshot, and gives what the others are made of.
    pub(super) fn identity(
        &mut self,
        document: &Document,
        snapshot: &mut Snapshot,
    ) -> Vec<CredentialSource> {
        let mut credentials = Vec::new();
        let mut identity = Identity {
            sources: Vec::new(),
            users: Vec::new(),
            ..Identity::default()
        };
        let written = document.identity.get();
        for (index, (place, source)) in written.map_or(&[][..], |w| &w.0).iter().enumerate() {
            let Some(source) = source else { continue };
            self.one_kind(place, source);
            if let Some(at) = source.header.get() {
                identity.header.clone_from(&at.value.0);
            }
            let position = identity.sources.len() + credentials.len();
            identity.users.push(users(source));
            let kind = if let Some(keys) = source.keys.get() {
                keys.file
                    .get()
                    .map(|at| CredentialKind::Keys(self.watched_file(at)))
            } else if let Some(jwt) = source.jwt.get() {
                let jwt = self.jwt(place, jwt, document, snapshot);
                jwt.map(|jwt| CredentialKind::Jwt(Box::new(jwt)))
            } else {
                None
            };
            if let Some(kind) = kind {
                credentials.push(CredentialSource {
                    position,
                    place: place.path.clone(),
                    kind,
                });
            } else if let Some(known) = source.certificates.get() {
                let known = self.certificates(known, document, snapshot);
                identity.sources.push(Source::Certificate(known));
            } else if source.keys.is_absent() && source.jwt.is_absent() {
                let header = self.header(place, source, document, snapshot);
                identity.sources.push(Source::Header(header));
            }
            let more = written.map_or(0, |w| w.0.len()) > index + 1;
            if more && !source.default.is_absent() {
                let says = "with a default workload no later source is ever asked";
                self.findings.fault(place, says, "put this source last");
            }
        }
        if document.identity.is_absent() {
            identity.sources = Identity::default().sources;
            self.bare_header(document);
        }
        snapshot.identity = identity;
        credentials
    }

    /// Exactly one kind, and the fields that belong to it.
    fn one_kind(&mut self, place: &Place, source: &IdentitySource) {
        let is_header = [
            !source.header.is_absent(),
            !source.default.is_absent(),
            !source.from.is_absent(),
            !source.from_certificates.is_absent(),
            !source.trust.is_absent(),
        ];
        let kinds = [
            !source.keys.is_absent(),
            !source.jwt.is_absent(),
            !source.certificates.is_absent(),
            is_header.contains(&true),
        ];
        if kinds.iter().filter(|present| **present).count() != 1 {
            let says = "says no single way to recognise callers";
            let hint = "write exactly one of keys, jwt, certificates and header, each as an item of a list";
            self.findings.fault(place, says, hint);
        }
    }

    fn header(
        &mut self,
        place: &Place,
        source: &IdentitySource,
        document: &Document,
        snapshot: &Snapshot,
    ) -> HeaderSource {
        let default = source.default.get();
        if let Some(at) = default {
            self.registered(at, document, snapshot);
        }
        let names = source.from_certificates.get();
        let from = if source.from.is_absent() && source.from_certificates.is_absent() {
            if source.trust.is_absent() && !data_address(document).ip().is_loopback() {
                self.untrusted(place);
            }
            Trusted::Anyone
        } else {
            if !source.trust.is_absent() {
                let says = "says both whose word counts and that everybody's does";
                self.findings.fault(place, says, "keep `from`, or `trust`");
            }
            if names.is_some() {
                self.needs_client_ca(place, "from_certificates", document);
            }
            let networks = source.from.get().map_or(&[][..], |from| &from.0);
            Trusted::Peers {
                networks: networks.iter().map(|at| at.value.0).collect(),
                certificates: names.map_or(&[][..], |n| &n.0).iter().map(text).collect(),
            }
        };
        HeaderSource {
            default: default.and_then(|at| snapshot.workload_named(at.value.0.as_bytes())),
            from,
        }
    }

    /// The document says nothing of identity.
    fn bare_header(&mut self, document: &Document) {
        let at = document.listen.get().and_then(|listen| listen.data.get());
        if let Some(at) = at.filter(|at| !at.value.0.ip().is_loopback()) {
            self.untrusted(&at.place.clone());
        }
    }

    fn untrusted(&mut self, place: &Place) {
        let says = "the data listener can be reached from other machines, and whoever reaches it can say that it is any workload";
        let hint = "recognise callers by identity: [ { keys: { file: keys.jsonl } } ], say whose header is believed with `from`, or write identity: { header: x-workload-app, trust: anyone }";
        self.findings.fault(place, says, hint);
    }

    fn certificates(
        &mut self,
        written: &MapOf<Text, At<Name>>,
        document: &Document,
        snapshot: &Snapshot,
    ) -> Certificates {
        let mut known = Certificates::default();
        for (name, workload) in &written.0 {
            let Some(workload) = workload else { continue };
            self.registered(workload, document, snapshot);
            let caller = |user: &str| {
                Arc::new(Caller {
                    workload: workload.value.0.as_str().into(),
                    by: Proven::Certificate,
                    user: (!user.is_empty()).then(|| user.into()),
                    ..Caller::default()
                })
            };
            match name.value.0.strip_suffix('*') {
                Some(start) => known.prefixes.push((start.into(), caller(""))),
                None => {
                    let name = name.value.0.as_str();
                    known.exact.insert(name.into(), caller(name));
                }
            }
            if name.value.0 == "*" {
                let says = "a lone * takes every certificate";
                self.findings
                    .fault(&name.place, says, "write how the names begin");
            }
        }
        if let Some((name, _)) = written.0.first() {
            self.needs_client_ca(&name.place, "certificates", document);
        }
        known
    }

    fn needs_client_ca(&mut self, place: &Place, what: &str, document: &Document) {
        let tls = document.listen.get().and_then(|listen| listen.tls.get());
        if tls.is_none_or(|tls| tls.client_ca.is_absent()) {
            let says = format!("`{what}` needs client certificates, and none is asked for");
            let hint = "say who signs them with listen.tls.client_ca";
            self.findings.fault(place, says, hint);
        }
    }

    fn jwt(
        &mut self,
        place: &Place,
        written: &Jwt,
        document: &Document,
        snapshot: &Snapshot,
    ) -> Option<JwtSource> {
        let leeway = written.leeway.get();
        if let Some(at) = leeway.filter(|at| at.value.0 > LEEWAY_MAX) {
            let says = format!("{} is more than clocks may differ", at.shown);
            self.findings.fault(&at.place, says, "write 60s or less");
        }
        let keys = self.jwks(written, place);
        let claims = self.claims(place, written, document, snapshot);
        Some(JwtSource {
            issuer: written.issuer.get()?.value.0.clone(),
            audiences: texts(&written.audience),
            algorithms: written
                .algorithms
                .get()
                .map_or_else(Vec::new, |a| a.0.iter().map(|at| at.value.0).collect()),
            types: texts(&written.types),
            leeway_s: leeway.map_or(LEEWAY_DEFAULT, |at| at.value.0).as_secs(),
            keys: keys?,
            claims: claims?,
        })
    }

    fn jwks(&mut self, written: &Jwt, place: &Place) -> Option<JwksSource> {
        if matches!(written.jwks, Field::Bad) {
            return None;
        }
        let Some(jwks) = written.jwks.get() else {
            let at = written.issuer.get()?;
            let is_address =
                at.value.0.starts_with("https://") || at.value.0.starts_with("http://");
            if !is_address {
                let says = format!("{} is no address at which keys could be found", at.shown);
                let hint = "say where the keys are with jwks: { url: … } or jwks: { file: … }";
                self.findings.fault(&at.place, says, hint);
            }
            return Some(JwksSource::Discovery(Fetched {
                ca_pem: None,
                stale: STALE_DEFAULT,
            }));
        };
        let fetched = self.fetched(jwks);
        match (jwks.url.get(), jwks.file.get()) {
            (Some(at), None) => {
                let scheme = if at.value.tls { "https" } else { "http" };
                let url = format!("{scheme}://{}{}", at.value.authority, at.value.base_path);
                Some(JwksSource::Url(url, fetched))
            }
            (None, Some(at)) => self.read(at).map(|(_, bytes)| JwksSource::File(bytes)),
            // Roots alone: for discovery.
            (None, None) if jwks.url.is_absent() && jwks.file.is_absent() => {
                Some(JwksSource::Discovery(fetched))
            }
            (Some(_), Some(_)) => {
                let says = "says two places for the issuer's keys";
                self.findings
                    .fault(place, says, "keep `jwks.url` or `jwks.file`");
                None
            }
            (None, None) => None,
        }
    }

    fn fetched(&mut self, jwks: &Jwks) -> Fetched {
        let ca_pem = jwks.ca.get().and_then(|at| {
            let (_, pem) = self.read(at)?;
            let mark = b"-----BEGIN CERTIFICATE-----";
            self.pem(&at.place, &at.shown, &pem, mark, "certificate")?;
            Some(pem)
        });
        Fetched {
            ca_pem,
            stale: jwks.stale.get().map_or(STALE_DEFAULT, |at| at.value.0),
        }
    }

    fn claims(
        &mut self,
        place: &Place,
        written: &Jwt,
        document: &Document,
        snapshot: &Snapshot,
    ) -> Option<ClaimNames> {
        let mut table = Vec::new();
        for (value, workload) in written.workloads.get().map_or(&[][..], |w| &w.0) {
            let Some(workload) = workload else { continue };
            self.registered(workload, document, snapshot);
            table.push((value.value.0.clone(), workload.value.0.clone()));
        }
        if let Some(at) = written.workload.get() {
            self.registered(at, document, snapshot);
        }
        let workload = match (written.workload.get(), written.workload_claim.get()) {
            (Some(at), None) if table.is_empty() => WorkloadFrom::Fixed(at.value.0.clone()),
            (None, Some(at)) => WorkloadFrom::Claim(at.value.0.clone(), table),
            _ => {
                let is_bad = matches!(written.workload, Field::Bad)
                    || matches!(written.workload_claim, Field::Bad);
                if !is_bad {
                    let says = "says no single way from a token to a workload";
                    let hint =
                        "write workload, or workload_claim with or without a table of workloads";
                    self.findings.fault(place, says, hint);
                }
                return None;
            }
        };
        let tags = written.tags.get().map_or(&[][..], |tags| &tags.0);
        let mut tags: Vec<_> = tags
            .iter()
            .filter_map(|(tag, claim)| Some((tag.value.0.clone(), claim.as_ref()?.value.0.clone())))
            .collect();
        tags.sort();
        let user = written.user_claim.get();
        Some(ClaimNames {
            workload,
            user: user.map_or_else(|| "sub".to_owned(), |at| at.value.0.clone()),
            tags,
        })
    }

    /// Notes a workload that no route is for.
    fn registered(&mut self, at: &At<Name>, document: &Document, snapshot: &Snapshot) {
        let is_known = snapshot.workload_named(at.value.0.as_bytes()).is_some();
        if !is_known && document.routes.get().is_some() {
            let says = format!("no route is for the workload {}", at.shown);
            self.findings
                .fault(&at.place, says, "name it under a route's `workload`");
        }
    }

    /// A file that is read when the gate is built, and watched.
    fn watched_file(&mut self, at: &At<impl AsRef<std::path::Path>>) -> std::path::PathBuf {
        let path = self.path_of(at.value.as_ref());
        if !self.watched.contains(&path) {
            self.watched.push(path.clone());
        }
        path
    }
}

/// What holds of the users of a source's callers.
fn users(source: &IdentitySource) -> UserRule {
    UserRule {
        from_call: source.call_user.get().is_some_and(|at| at.value.0),
        is_hidden: source.record_user.get().is_some_and(|at| !at.value.0),
    }
}

fn text(at: &At<Text>) -> Box<str> {
    at.value.0.as_str().into()
}

fn texts(written: &Field<crate::decode::OneOrMany<Text>>) -> Vec<String> {
    let written = written.get().map_or(&[][..], |many| &many.0);
    written.iter().map(|at| at.value.0.clone()).collect()
}
