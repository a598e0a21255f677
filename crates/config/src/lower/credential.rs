//! `credential`: a secret from where it is kept to the header that carries it, or what one is made of.
//!
//! Invariant: exactly one source; a secret that could break a header block is refused; no message
//! shows any part of one. One that is made while the gate runs stands in the snapshot as one that never is, until the
//! host has put its own there.
//! Not here: making them (`tollgate`).

mod aws;
mod azure;
mod container;
mod google;
mod oauth;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use policy::caller::Later;
use policy::credential::{self, Minter, UpstreamAuth};
use policy::id::EndpointId;
use policy::secret::Secret;

use crate::decode::{At, Field, Place};
use crate::host::{MadeCredential, MadeKind, UpstreamCredential};
use crate::mask::looks_like_key;
use crate::scalar::{Inline, SecretFile, Variable};
use crate::schema::credential::{
    Aws, Azure, Carrier, Google, Kept, OAuth, TokenExchange, UpstreamCredential as Written,
};
use crate::schema::{Bearer, Credential, Document};
use crate::target::Target;

const SECRET_BYTES_MAX: usize = 16 << 10;
/// Longest name of a variable that is shown.
const VARIABLE_BYTES_MAX: usize = 64;
/// The permissions of a file by which its secret is not the owner's and the group's alone, or the group can change it.
const OTHERS: u32 = 0o027;
/// What is wrong with not exactly one way to be somebody.
const IDENTITIES: [&str; 2] = ["says no identity", "says several identities"];
/// Where a secret may come from.
const CHOICE: &str = "file, env and inline";

impl super::Lowering<'_> {
    /// The header for a credential; [`UpstreamAuth::None`] where none is written or it is faulty.
    pub(super) fn auth(&mut self, written: &Field<Credential>, owner: &Place) -> UpstreamAuth {
        let Some(written) = written.get() else {
            return UpstreamAuth::None;
        };
        let place = owner.below("credential");
        self.kept_secret(
            &written.secret,
            carrier(&written.carrier, USUAL),
            &place,
            CHOICE,
        )
    }

    /// The credential of an endpoint, whose API takes keys in this header.
    pub(super) fn upstream_auth(
        &mut self,
        written: &Field<Written>,
        key_header: &str,
        owner: &Place,
        endpoint: EndpointId,
    ) -> UpstreamAuth {
        let Some(written) = written.get() else {
            return UpstreamAuth::None;
        };
        let place = owner.below("credential");
        let Kept { file, env, inline } = &written.secret;
        let kept = !file.is_absent() || !env.is_absent() || !inline.is_absent();
        let mut kinds = made_kinds(written);
        match (kinds.next(), kinds.next(), kept) {
            (None, _, _) => {
                let choice = "file, env, inline, oauth, exchange, google, azure and aws";
                let by = carrier(&written.carrier, key_header);
                self.kept_secret(&written.secret, by, &place, choice)
            }
            (Some(kind), None, false) => self.made(kind, &written.carrier, &place, endpoint),
            _ => {
                let says = "says several credentials";
                let hint = "write exactly one of file, env, inline, oauth, exchange, google, azure and aws";
                self.fault(&place, says, hint);
                UpstreamAuth::None
            }
        }
    }

    /// One that is made while the gate runs.
    fn made(
        &mut self,
        written: Made<'_>,
        by: &Carrier,
        place: &Place,
        endpoint: EndpointId,
    ) -> UpstreamAuth {
        let at = |name: &str| place.below(name);
        let none = &Field::Absent;
        let (found, ca, name) = match written {
            Made::OAuth(of) => {
                let found = of.get().and_then(|of| self.oauth(of, &at("oauth")));
                (found, of.get().map_or(none, |of| &of.asked.ca), "oauth")
            }
            Made::Exchange(of) => {
                let found = of.get().and_then(|of| self.exchange(of, &at("exchange")));
                (found, of.get().map_or(none, |of| &of.asked.ca), "exchange")
            }
            Made::Google(of) => {
                let found = of.get().and_then(|of| self.google(of, &at("google")));
                (found, of.get().map_or(none, |of| &of.ca), "google")
            }
            Made::Azure(of) => {
                let found = of.get().and_then(|of| self.azure(of, &at("azure")));
                (found, of.get().map_or(none, |of| &of.ca), "azure")
            }
            Made::Aws(of) => {
                let found = of.get().and_then(|of| self.aws(of, &at("aws")));
                (found, of.get().map_or(none, |of| &of.ca), "aws")
            }
        };
        let Carrier { header, scheme } = by;
        let carriers = [
            header.get().map(|at| &at.place),
            scheme.get().map(|at| &at.place),
        ];
        let is_signed = matches!(written, Made::Aws(_));
        for place in carriers.into_iter().flatten().filter(|_| is_signed) {
            let says = "a signature has headers of its own";
            self.fault(place, says, "leave it out");
        }
        let Some((account, kind)) = found else {
            return UpstreamAuth::None;
        };
        let (header, scheme) = carrier(by, USUAL);
        let is_for_caller = matches!(kind, MadeKind::Exchange(..));
        let made = MadeCredential {
            account: account.clone(),
            header: header.to_owned(),
            scheme: scheme.to_owned(),
            ca_pem: self.roots_of(ca),
            kind,
        };
        let place = at(name);
        let credential = UpstreamCredential {
            endpoint,
            place: place.path.clone(),
            made,
        };
        self.made.credentials.push((credential, place));
        UpstreamAuth::Minted(Arc::new(Unmade {
            account,
            is_for_caller,
        }))
    }

    /// Callers' tokens can be exchanged only where some are brought.
    pub(super) fn callers_bring_tokens(&mut self, document: &Document) {
        let identity = document.identity.get();
        let mut sources = identity.into_iter().flat_map(|identity| &identity.0);
        let are_brought = sources.any(|(_, source)| {
            source.as_ref().is_none_or(|source| {
                !source.jwt.is_absent()
                    || !source.introspection.is_absent()
                    || !source.token_review.is_absent()
            })
        });
        if are_brought || document.identity.is_bad() {
            return;
        }
        for (credential, place) in &self.made.credentials {
            if matches!(credential.made.kind, MadeKind::Exchange(..)) {
                let says = "exchanges callers' tokens, and no source of `identity` takes any";
                let hint = "say whose tokens callers bring with identity: [ { jwt: … } ]";
                self.findings.fault(place, says, hint);
            }
        }
    }

    /// Exactly one of these.
    pub(super) fn one_of<const N: usize>(
        &mut self,
        place: &Place,
        kinds: [bool; N],
        [none, several]: [&str; 2],
        hint: &str,
    ) -> bool {
        let count = kinds.iter().filter(|present| **present).count();
        if count != 1 {
            self.fault(place, if count == 0 { none } else { several }, hint);
        }
        count == 1
    }

    /// A file with a token that is read each time it is sent, so that its change needs no reload.
    pub(super) fn token_file(&mut self, at: &At<SecretFile>) -> Option<PathBuf> {
        let path = self.path_of(&at.value);
        let was_watched = self.watched.contains(&path);
        let contents = self.contents.clone();
        let read = self.read(at);
        self.contents = contents;
        if !was_watched {
            self.watched.retain(|of| *of != path);
        }
        read.map(|(path, bytes)| {
            drop(Secret::new(bytes));
            path
        })
    }

    fn is_there(&self, file: &Path) -> bool {
        let read = self.sources.read(file, SECRET_BYTES_MAX);
        read.map(Secret::new).is_ok()
    }

    /// The header line of a secret that is kept somewhere.
    fn kept_secret(
        &mut self,
        of: &Kept,
        (name, scheme): (&str, &str),
        place: &Place,
        choice: &str,
    ) -> UpstreamAuth {
        let Some((secret, at)) = self.secret(&of.file, &of.env, &of.inline, place, choice) else {
            return UpstreamAuth::None;
        };
        let begins = |bytes: &[u8]| {
            bytes
                .get(..7)
                .is_some_and(|start| start.eq_ignore_ascii_case(b"bearer "))
        };
        if scheme.eq_ignore_ascii_case("bearer") && begins(secret.expose()) {
            let hint = "keep the secret alone in it, or write scheme: \"\"";
            self.warn(&at, "the secret itself begins with Bearer", hint);
        }
        let mut value = Vec::with_capacity(scheme.len() + 1 + secret.expose().len());
        if !scheme.is_empty() {
            value.extend_from_slice(scheme.as_bytes());
            value.push(b' ');
        }
        value.extend_from_slice(secret.expose());
        UpstreamAuth::Header {
            name: name.to_owned(),
            value: Secret::new(value),
        }
    }

    /// A secret that stands at this name below a place; `None` within where none is written.
    pub(super) fn secret_below(
        &mut self,
        written: &Field<Bearer>,
        place: &Place,
        name: &str,
    ) -> Option<Option<Secret>> {
        match written {
            Field::Absent => Some(None),
            Field::Bad => None,
            Field::Is(written) => self.secret_at(written, &place.below(name)).map(Some),
        }
    }

    pub(super) fn secret_at(&mut self, of: &Bearer, place: &Place) -> Option<Secret> {
        let found = self.secret(&of.file, &of.env, &of.inline, place, CHOICE);
        found.map(|(secret, _)| secret)
    }

    /// A secret from one of these, and where it was named.
    pub(super) fn secret(
        &mut self,
        file: &Field<At<SecretFile>>,
        env: &Field<At<Variable>>,
        inline: &Field<At<Inline>>,
        place: &Place,
        choice: &str,
    ) -> Option<(Secret, Place)> {
        let sources = [!file.is_absent(), !env.is_absent(), !inline.is_absent()];
        let hint = format!("write exactly one of {choice}");
        let is_one = self.one_of(
            place,
            sources,
            ["says no secret", "says several secrets"],
            &hint,
        );
        let mut found = None;
        if let Some(at) = file.get() {
            let hint = "write the secret alone into it, or name another";
            let bytes = self.read_up_to(at, hint, super::FILE_BYTES_MAX);
            let bytes = bytes.map(|(path, bytes)| {
                self.guarded(at, &path);
                Secret::new(bytes)
            });
            let secret = bytes.and_then(|b| self.checked(&b, &at.place, "the secret in the file"));
            found = secret.map(|secret| (secret, at.place.clone()));
        }
        if let Some(at) = env.get() {
            match self.sources.var(&at.value.0) {
                Some(value) => {
                    let value = Secret::new(value.into_bytes());
                    let secret = self.checked(&value, &at.place, "the secret in the variable");
                    found = secret.map(|secret| (secret, at.place.clone()));
                }
                None => {
                    let says = match variable_shown(&at.value.0) {
                        Some(name) => format!("the variable {name} is not set"),
                        None => "the variable named here is not set".to_owned(),
                    };
                    self.fault(&at.place, says, "set it, or use `file`");
                }
            }
        }
        if let Some(at) = inline.get() {
            let secret = self.checked(&at.value.0, &at.place, "the secret");
            found = secret.map(|secret| (secret, at.place.clone()));
        }
        if let Some((secret, _)) = &found {
            self.note_content(secret.expose());
        }
        found.filter(|_| is_one)
    }

    /// Notes a file with a secret that others than its owner and its group can read, or than its owner can change.
    pub(super) fn guarded(&mut self, at: &At<SecretFile>, path: &Path) {
        // Where there are no permissions, nobody knows.
        let Ok(mode) = self.sources.mode(path) else {
            return;
        };
        if mode & OTHERS != 0 {
            let shown = super::file_shown(&at.shown);
            let says = format!(
                "others can read or change the file {shown}, which holds a secret (mode {mode:04o})"
            );
            let hint = "chmod 600, or 640 where its group is the gate's; for a mounted secret say `defaultMode: 0440` (Kubernetes) or `mode: 0440` (Compose)";
            self.fault(&at.place, says, hint);
        }
    }

    /// The secret without the line break that editors leave at the end of a file.
    fn checked(&mut self, secret: &Secret, place: &Place, what: &str) -> Option<Secret> {
        let mut bytes = secret.expose();
        while let Some((b'\n' | b'\r', rest)) = bytes.split_last() {
            bytes = rest;
        }
        let alone = "write the secret alone, on one line";
        let (is, hint) = if bytes.is_empty() {
            ("is empty", alone)
        } else if bytes.len() > SECRET_BYTES_MAX {
            ("is longer than 16 KiB", alone)
        } else if bytes.contains(&b'\n') || bytes.contains(&b'\r') {
            ("has a line break inside", alone)
        } else if bytes.first() == Some(&b' ') || bytes.last() == Some(&b' ') {
            ("has a space at an end", "remove the space")
        } else if !bytes.iter().all(|b| (b' '..=b'~').contains(b)) {
            let is = "has a character that a header cannot carry";
            (is, "use visible ASCII")
        } else {
            return Some(Secret::new(bytes.to_vec()));
        };
        self.fault(place, format!("{what} {is}"), hint);
        None
    }
}

/// The name of a variable, where it can be nothing but a name: a key is pasted in its place, too.
fn variable_shown(name: &str) -> Option<&str> {
    let is_plain = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    let has_words = name.contains('_') && name.len() <= VARIABLE_BYTES_MAX;
    (has_words && name.bytes().all(is_plain) && !looks_like_key(name)).then_some(name)
}

/// What a credential may be made of while the gate runs.
#[derive(Clone, Copy)]
enum Made<'w> {
    OAuth(&'w Field<OAuth>),
    Exchange(&'w Field<TokenExchange>),
    Google(&'w Field<Google>),
    Azure(&'w Field<Azure>),
    Aws(&'w Field<Aws>),
}

/// Those that are written; a new field of the schema has to be said to be one or not.
fn made_kinds(written: &Written) -> impl Iterator<Item = Made<'_>> {
    let Written {
        secret: _,
        oauth,
        exchange,
        google,
        azure,
        aws,
        carrier: _,
    } = written;
    let kinds = [
        (oauth.is_absent(), Made::OAuth(oauth)),
        (exchange.is_absent(), Made::Exchange(exchange)),
        (google.is_absent(), Made::Google(google)),
        (azure.is_absent(), Made::Azure(azure)),
        (aws.is_absent(), Made::Aws(aws)),
    ];
    let written = kinds.into_iter().filter(|(is_absent, _)| !is_absent);
    written.map(|(_, kind)| kind)
}

/// Where somebody is asked: as written, or else here.
fn endpoint(written: &Field<At<Target>>, unless: &str) -> String {
    let target = written.value();
    target.map_or_else(|| unless.to_owned(), super::identity::address)
}

/// The header that carries a credential unless another is said.
const USUAL: &str = "authorization";

/// The header that carries a credential, and the word before it.
fn carrier<'a>(written: &'a Carrier, unless: &'a str) -> (&'a str, &'a str) {
    let name = written.header.value();
    let name = name.map_or(unless, |name| name.0.as_str());
    let usual = match name {
        USUAL => "Bearer",
        _ => "",
    };
    let scheme = written.scheme.value();
    (name, scheme.map_or(usual, |scheme| scheme.0.as_str()))
}

/// Stands for a credential that the host makes. It never gives one.
#[derive(Debug)]
struct Unmade {
    account: String,
    is_for_caller: bool,
}

impl Minter for Unmade {
    fn account(&self) -> &str {
        &self.account
    }

    fn is_for_caller(&self) -> bool {
        self.is_for_caller
    }

    fn ready(&self, _: Option<&Secret>) -> Option<Arc<credential::Credential>> {
        None
    }

    fn mint(&self, _: Option<&Secret>) -> Later<Option<Arc<credential::Credential>>> {
        Box::pin(std::future::ready(None))
    }

    fn refused(&self, _: u16, _: Option<&Secret>) {}
}
