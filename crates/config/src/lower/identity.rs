//! `identity`: how callers are recognised, in the order written.
//!
//! Invariant: a bare header is believed only where the document says whose word counts, or where nobody but this
//! machine can say it.
//! Not here: how claims become a caller (`claims`), what Kubernetes is asked (`lower::kubernetes`), verifiers themselves (the host makes them of [`CredentialSource`]), proving (`policy::identity`).

mod claims;
mod kind;
mod together;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use policy::caller::{Caller, Proven};
use policy::identity::{Certificates, HeaderSource, Identity, Source, Trusted, UserRule};
use policy::snapshot::Snapshot;

use super::backend::is_here;
use super::host::data_address;
use super::{text, texts};
use crate::decode::{At, Field, MapOf, Place};
use crate::host::{
    ClaimNames, CredentialKind, CredentialSource, Fetched, IntrospectionSource, JwksSource,
    JwtSource, LoginSource, StaticKey,
};
use crate::mask::quoted;
use crate::scalar::{Name, Span, Text};
use crate::schema::Document;
use crate::schema::identity::{IdentitySource, Introspection, Jwt, Login};
use crate::target::Target;
use kind::{Kind, kinds};

/// A key of fewer bytes can be guessed by who may try often.
const KEY_BYTES_FEW: usize = 16;
const LEEWAY_DEFAULT: Duration = Duration::from_secs(30);
const LEEWAY_MAX: Duration = Duration::from_secs(60);
const CACHE_DEFAULT: Duration = Duration::from_secs(5);
const CACHE_MAX: Duration = Duration::from_secs(600);
const STALE_DEFAULT: Duration = Duration::from_secs(24 * 60 * 60);

/// What is known of the document when its callers are lowered.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) document: &'a Document,
    /// With its routes.
    pub(super) snapshot: &'a Snapshot,
}

impl super::Lowering<'_> {
    /// The sources that need nothing more, and what the others are made of.
    pub(super) fn identity(&mut self, known: Known<'_>) -> (Identity, Vec<CredentialSource>) {
        let document = known.document;
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
                identity.header = at.value.0.as_str().into();
            }
            if let Some(at) = source.user_header.get() {
                identity.user_header = Some(at.value.0.as_str().into());
            }
            let position = identity.sources.len() + credentials.len();
            identity.users.push(users(source));
            let written_kind = kinds(source).next();
            let is_kind = written_kind.is_some();
            let kind = match written_kind {
                Some(Kind::Keys(keys)) => keys.get().and_then(|keys| keys.file.get()).map(|at| {
                    let file = self.watched_file(at);
                    self.key_files.push(file.clone());
                    CredentialKind::Keys(file)
                }),
                Some(Kind::Static) => Some(CredentialKind::Static(self.static_keys(source, known))),
                Some(Kind::Jwt(jwt)) => {
                    let jwt = jwt.get().and_then(|jwt| self.jwt(place, jwt, known));
                    jwt.map(|jwt| CredentialKind::Jwt(Box::new(jwt)))
                }
                Some(Kind::Introspection(asked)) => {
                    let asked = asked.get();
                    let asked = asked.and_then(|asked| self.introspection(place, asked, known));
                    asked.map(|asked| CredentialKind::Introspection(Box::new(asked)))
                }
                Some(Kind::Login(login)) => {
                    let login = login
                        .get()
                        .and_then(|login| self.login(place, login, known));
                    login.map(|login| CredentialKind::Login(Box::new(login)))
                }
                Some(Kind::TokenReview(review)) => {
                    let review = review.get();
                    let review = review.and_then(|review| self.token_review(place, review, known));
                    review.map(|review| CredentialKind::TokenReview(Box::new(review)))
                }
                Some(Kind::Certificates(names)) => {
                    if let Some(names) = names.get() {
                        let names = self.certificates(names, known);
                        identity.sources.push(Source::Certificate(names));
                    }
                    None
                }
                None => None,
            };
            if let Some(kind) = kind {
                credentials.push(CredentialSource {
                    position,
                    place: place.path.clone(),
                    kind,
                });
            } else if !is_kind && source.is_header() {
                let header = self.header(place, source, known);
                identity.sources.push(Source::Header(header));
            }
            let before = written.and_then(|written| written.0.get(..index));
            self.together(place, source, before.unwrap_or_default());
            let more = written.map_or(0, |w| w.0.len()) > index + 1;
            if more && !source.default.is_absent() {
                let says = "a default workload is for calls that bring nothing to any source";
                self.fault(place, says, "put this source last");
            }
        }
        if document.identity.is_absent() {
            identity.sources = Identity::default().sources;
            let at = document.listen.get().and_then(|listen| listen.data.get());
            if let Some(at) = at.filter(|at| !at.value.0.ip().is_loopback()) {
                self.bare_header(&at.place, true);
            }
        }
        (identity, credentials)
    }

    /// Exactly one kind, and the fields that belong to it. A header that is named beside another kind is one that must not
    /// contradict what is proven.
    fn one_kind(&mut self, place: &Place, source: &IdentitySource) {
        let count = kinds(source).count();
        let is_header = match count {
            0 => source.is_header(),
            _ => source.is_header_believed(),
        };
        if count + usize::from(is_header) != 1 {
            let says = "says no single way to recognise callers";
            let hint = "write exactly one of keys, static_keys, jwt, introspection, token_review, login, certificates and header, each as an item of a list";
            self.fault(place, says, hint);
        }
    }

    /// Keys that somebody else made; no two have one secret, so that who brought it is known.
    fn static_keys(&mut self, source: &IdentitySource, known: Known<'_>) -> Vec<StaticKey> {
        let mut keys: Vec<StaticKey> = Vec::new();
        let mut seen: HashMap<Vec<u8>, String> = HashMap::new();
        for (user, key) in source.static_keys.items() {
            let place = &user.place;
            let Some(key) = key else { continue };
            if let Some(at) = key.workload.get() {
                self.registered(at, known);
            }
            let secret = self.secret_at(&key.secret, place);
            let (Some(secret), Some(workload)) = (secret, text(&key.workload)) else {
                continue;
            };
            let bytes = secret.expose();
            if bytes.len() < KEY_BYTES_FEW {
                let says = format!(
                    "is a key of less than {KEY_BYTES_FEW} letters, which others may guess"
                );
                self.warn(place, says, "give out a longer one, made by chance");
            }
            if let Some(other) = seen.insert(bytes.to_vec(), user.value.0.clone()) {
                let says = format!("has the key of {}, too", quoted(&other));
                self.fault(place, says, "give each a key of its own");
            }
            keys.push(StaticKey {
                user: user.value.0.clone(),
                workload,
                secret,
            });
        }
        keys
    }

    fn header(&mut self, place: &Place, source: &IdentitySource, known: Known<'_>) -> HeaderSource {
        let default = source.default.get();
        if let Some(at) = default {
            self.registered(at, known);
        }
        let names = source.from_certificates.get();
        let from = if source.from.is_absent() && source.from_certificates.is_absent() {
            if !data_address(known.document).ip().is_loopback() {
                self.bare_header(place, source.trust.is_absent());
            }
            Trusted::Anyone
        } else {
            if !source.trust.is_absent() {
                let says = "says both whose word counts and that everybody's does";
                self.fault(place, says, "keep `from`, or `trust`");
            }
            if names.is_some() {
                self.needs_client_ca(place, "from_certificates", known);
            }
            let networks = source.from.items();
            Trusted::Peers {
                networks: networks.iter().map(|at| at.value.0).collect(),
                certificates: names
                    .map_or(&[][..], |names| &names.0)
                    .iter()
                    .map(|name| certificate_name(&name.value.0))
                    .collect(),
            }
        };
        HeaderSource {
            default: default.and_then(|at| known.snapshot.workload_named(at.value.0.as_bytes())),
            from,
            names_user: !source.user_header.is_absent(),
        }
    }

    /// Others than this machine can say that they are any workload: a fault unless the document trusts anyone.
    fn bare_header(&mut self, place: &Place, is_unsaid: bool) {
        let says = "the data listener can be reached from other machines, and whoever reaches it can say that it is any workload";
        if is_unsaid {
            let hint = "write identity: [ { keys: { file: keys.jsonl } } ], say whose header is believed with identity: { from: 10.0.0.0/8 }, or accept it with identity: { trust: anyone }";
            self.fault(place, says, hint);
        } else {
            let hint = "let only a proxy that sets the identity header reach it";
            self.warn(place, says, hint);
        }
    }

    fn certificates(&mut self, written: &MapOf<Text, At<Name>>, known: Known<'_>) -> Certificates {
        let mut names = Certificates::default();
        for (name, workload) in &written.0 {
            let Some(workload) = workload else { continue };
            self.registered(workload, known);
            let caller = |user: &str| {
                Arc::new(Caller {
                    workload: workload.value.0.as_str().into(),
                    by: Proven::Certificate,
                    user: (!user.is_empty()).then(|| user.into()),
                    ..Caller::default()
                })
            };
            let as_read = certificate_name(&name.value.0);
            match as_read.strip_suffix('*') {
                Some(start) => names.prefixes.push((start.into(), caller(""))),
                None => {
                    let caller = caller(&as_read);
                    names.exact.insert(as_read, caller);
                }
            }
            if name.value.0 == "*" {
                let says = "a lone * takes every certificate";
                self.fault(&name.place, says, "write how the names begin");
            }
        }
        if let Some((name, _)) = written.0.first() {
            self.needs_client_ca(&name.place, "certificates", known);
        }
        names
    }

    fn needs_client_ca(&mut self, place: &Place, what: &str, known: Known<'_>) {
        let tls = known
            .document
            .listen
            .get()
            .and_then(|listen| listen.tls.get());
        if tls.is_none_or(|tls| tls.client_ca.is_absent()) {
            let says = format!("`{what}` needs client certificates, and none is asked for");
            let hint = "say who signs them with listen.tls.client_ca";
            self.fault(place, says, hint);
        }
    }

    fn jwt(&mut self, place: &Place, written: &Jwt, known: Known<'_>) -> Option<JwtSource> {
        let leeway = written.leeway.get();
        if let Some(at) = leeway.filter(|at| at.value.0 > LEEWAY_MAX) {
            self.refuse(at, "is more than clocks may differ", "write 60s or less");
        }
        let keys = self.jwks(written, place);
        self.keys_in_clear(written);
        let claims = self.claims(place, &written.claims, "sub", known);
        let algorithms = written.algorithms.items().iter().map(|at| at.value.0);
        Some(JwtSource {
            issuer: text(&written.issuer)?,
            audiences: texts(&written.audience),
            algorithms: algorithms.collect(),
            types: texts(&written.types),
            leeway_s: leeway.map_or(LEEWAY_DEFAULT, |at| at.value.0).as_secs(),
            keys: keys?,
            claims: claims?,
        })
    }

    /// Whoever stands between can give keys of his own.
    fn keys_in_clear(&mut self, written: &Jwt) {
        let url = written.jwks.get().and_then(|jwks| jwks.url.get());
        let is_file = written
            .jwks
            .get()
            .is_some_and(|jwks| !jwks.file.is_absent());
        let (place, host) = match (url, written.issuer.get()) {
            (Some(url), _) if !url.value.tls => (&url.place, url.value.host.as_str()),
            (None, Some(issuer)) if !is_file => {
                let Some(rest) = issuer.value.0.strip_prefix("http://") else {
                    return;
                };
                (&issuer.place, host_of(rest))
            }
            _ => return,
        };
        if !is_here(host) {
            let says = format!("the keys come in clear from {}", quoted(host));
            let hint = "use https://: whoever stands between could give others";
            self.warn(place, says, hint);
        }
    }

    fn jwks(&mut self, written: &Jwt, place: &Place) -> Option<JwksSource> {
        if written.jwks.is_bad() {
            return None;
        }
        let Some(jwks) = written.jwks.get() else {
            let at = written.issuer.get()?;
            let is_address =
                at.value.0.starts_with("https://") || at.value.0.starts_with("http://");
            if !is_address {
                let hint = "say where the keys are with jwks: { url: … } or jwks: { file: … }";
                self.refuse(at, "is no address at which keys could be found", hint);
            }
            return Some(JwksSource::Discovery(Fetched {
                ca_pem: None,
                stale: STALE_DEFAULT,
            }));
        };
        let fetched = Fetched {
            ca_pem: self.roots_of(&jwks.ca),
            stale: jwks.stale.value().map_or(STALE_DEFAULT, |span| span.0),
        };
        match (jwks.url.get(), jwks.file.get()) {
            (Some(at), None) => Some(JwksSource::Url(address(&at.value), fetched)),
            (None, Some(at)) => self.read(at).map(|(_, bytes)| JwksSource::File(bytes)),
            // Roots alone: for discovery.
            (None, None) if jwks.url.is_absent() && jwks.file.is_absent() => {
                Some(JwksSource::Discovery(fetched))
            }
            (Some(_), Some(_)) => {
                let says = "says two places for the issuer's keys";
                self.fault(place, says, "keep `jwks.url` or `jwks.file`");
                None
            }
            (None, None) => None,
        }
    }

    fn introspection(
        &mut self,
        place: &Place,
        written: &Introspection,
        known: Known<'_>,
    ) -> Option<IntrospectionSource> {
        let cache = self.cache(&written.cache);
        let secret = self.secret_below(&written.client_secret, place, "client_secret");
        if written.client_id.is_absent() && matches!(secret, Some(Some(_))) {
            let says = "says a secret, and not whose it is";
            self.fault(place, says, "say `client_id`, too");
        }
        let claims = self.claims(place, &written.claims, "sub", known);
        let ca_pem = self.roots_of(&written.ca);
        if let Some(url) = written.url.get().filter(|url| !url.value.tls) {
            self.in_clear(&url.place, &url.value);
        }
        let target = &written.url.get()?.value;
        Some(IntrospectionSource {
            url: address(target),
            client_id: text(&written.client_id),
            client_secret: secret?,
            is_posted: written.client_auth.value().is_some_and(|is| is.0),
            ca_pem,
            cache,
            audiences: texts(&written.audience),
            claims: claims?,
        })
    }

    fn login(&mut self, place: &Place, written: &Login, known: Known<'_>) -> Option<LoginSource> {
        let hosts = &known.snapshot.web.hosts;
        if let Some(at) = written.redirect_url.get()
            && !hosts.allows(Some(at.value.authority.as_bytes()))
        {
            let says = format!("the gate does not answer for the host of {}", at.shown);
            let hint = "add it to listen.hosts";
            self.fault(&at.place, says, hint);
        }
        let claims = self.claims(place, &written.claims, "sub", known);
        let mut keep = texts(&written.keep_claims);
        if !keep.is_empty() {
            let named = claims.as_ref().map_or_else(Vec::new, ClaimNames::all);
            keep.extend(named.into_iter().map(str::to_owned));
        }
        let client = self.login_client(place, &written.client, &written.redirect_url, keep);
        Some(LoginSource {
            client: client?,
            claims: claims?,
        })
    }

    /// How long an answer is used.
    pub(super) fn cache(&mut self, written: &Field<At<Span>>) -> Duration {
        let cache = written.get();
        if let Some(at) = cache.filter(|at| at.value.0 > CACHE_MAX) {
            self.refuse(
                at,
                "is longer than what was revoked may go on",
                "write 10m or less",
            );
        }
        cache.map_or(CACHE_DEFAULT, |at| at.value.0)
    }

    /// Notes a workload that no route is for.
    pub(super) fn registered(&mut self, at: &At<Name>, known: Known<'_>) {
        let is_known = known.snapshot.workload_named(at.value.0.as_bytes());
        if is_known.is_none() && known.document.routes.get().is_some() {
            let says = format!("no route is for the workload {}", at.shown);
            self.fault(&at.place, says, "name it under a route's `workload`");
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

impl IdentitySource {
    /// Whether it has a field of a header source.
    fn is_header(&self) -> bool {
        !self.header.is_absent() || self.is_header_believed()
    }

    /// Whether it says when a header is believed, or what its absence means.
    fn is_header_believed(&self) -> bool {
        !self.default.is_absent()
            || !self.user_header.is_absent()
            || !self.from.is_absent()
            || !self.from_certificates.is_absent()
            || !self.trust.is_absent()
    }
}

/// A target as the address that it was read from.
pub(super) fn address(target: &Target) -> String {
    let scheme = if target.tls { "https" } else { "http" };
    format!("{scheme}://{}{}", target.authority, target.base_path)
}

/// The host of what stands behind `http://`.
fn host_of(rest: &str) -> &str {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    }
}

/// What holds of the users of a source's callers.
fn users(source: &IdentitySource) -> UserRule {
    UserRule {
        from_call: source.call_user.value().is_some_and(|is| is.0),
        is_hidden: source.record_user.value().is_some_and(|is| !is.0),
    }
}

/// A name as the gate reads it from a certificate: one without a colon is a DNS name, whose case means nothing.
fn certificate_name(written: &str) -> Box<str> {
    if written.contains(':') {
        written.into()
    } else {
        written.to_ascii_lowercase().into()
    }
}
