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
use crate::scalar::{CredentialHeader, Inline, Scheme, SecretFile, Variable};
use crate::schema::credential::UpstreamCredential as Written;
use crate::schema::{Credential, Document};

const SECRET_BYTES_MAX: usize = 16 << 10;

impl super::Lowering<'_> {
    /// The header for a credential; [`UpstreamAuth::None`] where none is written or it is faulty.
    pub(super) fn auth(&mut self, written: &Field<Credential>, owner: &Place) -> UpstreamAuth {
        let Some(written) = written.get() else {
            return UpstreamAuth::None;
        };
        let place = of_credential(owner);
        let Credential {
            file, env, inline, ..
        } = written;
        let found = self.secret(file, env, inline, &place, "file, env and inline");
        found.map_or(UpstreamAuth::None, |found| {
            self.line(found, &written.header, &written.scheme)
        })
    }

    /// The credential of an endpoint.
    pub(super) fn upstream_auth(
        &mut self,
        written: &Field<Written>,
        owner: &Place,
        endpoint: EndpointId,
    ) -> UpstreamAuth {
        let Some(written) = written.get() else {
            return UpstreamAuth::None;
        };
        let place = of_credential(owner);
        let made = [
            !written.oauth.is_absent(),
            !written.exchange.is_absent(),
            !written.google.is_absent(),
            !written.azure.is_absent(),
            !written.aws.is_absent(),
        ];
        let Written {
            file, env, inline, ..
        } = written;
        let kept = !file.is_absent() || !env.is_absent() || !inline.is_absent();
        match (made.iter().filter(|present| **present).count(), kept) {
            (0, _) => {
                let choice = "file, env, inline, oauth, exchange, google, azure and aws";
                let found = self.secret(file, env, inline, &place, choice);
                found.map_or(UpstreamAuth::None, |found| {
                    self.line(found, &written.header, &written.scheme)
                })
            }
            (1, false) => self.made(written, &place, endpoint),
            _ => {
                let says = "says several credentials";
                let hint = "write exactly one of file, env, inline, oauth, exchange, google, azure and aws";
                self.findings.fault(&place, says, hint);
                UpstreamAuth::None
            }
        }
    }

    /// One that is made while the gate runs.
    fn made(&mut self, written: &Written, place: &Place, endpoint: EndpointId) -> UpstreamAuth {
        let at = |name: &str| Place {
            path: format!("{}.{name}", place.path),
            line: place.line,
        };
        let found = if let Some(of) = written.oauth.get() {
            self.oauth(of, &at("oauth"))
                .map(|found| (found, &of.ca, "oauth"))
        } else if let Some(of) = written.exchange.get() {
            let found = self.exchange(of, &at("exchange"));
            found.map(|found| (found, &of.ca, "exchange"))
        } else if let Some(of) = written.google.get() {
            let found = self.google(of, &at("google"));
            found.map(|found| (found, &of.ca, "google"))
        } else if let Some(of) = written.azure.get() {
            let found = self.azure(of, &at("azure"));
            found.map(|found| (found, &of.ca, "azure"))
        } else if let Some(of) = written.aws.get() {
            self.aws(of, &at("aws")).map(|found| (found, &of.ca, "aws"))
        } else {
            None
        };
        let is_signed = !written.aws.is_absent();
        let carriers = [
            written.header.get().map(|at| &at.place),
            written.scheme.get().map(|at| &at.place),
        ];
        for place in carriers.into_iter().flatten().filter(|_| is_signed) {
            let says = "a signature has headers of its own";
            self.findings.fault(place, says, "leave it out");
        }
        let Some(((account, kind), ca, name)) = found else {
            return UpstreamAuth::None;
        };
        let (header, scheme) = carrier(&written.header, &written.scheme);
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
        if are_brought || matches!(document.identity, Field::Bad) {
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
    fn one_of<const N: usize>(&mut self, place: &Place, kinds: [bool; N], hint: &str) {
        let count = kinds.iter().filter(|present| **present).count();
        if count != 1 {
            let says = if count == 0 {
                "says no identity"
            } else {
                "says several identities"
            };
            self.findings.fault(place, says, hint);
        }
    }

    /// A file with a token that is read each time it is sent, so that its change needs no reload.
    pub(super) fn token_file(&mut self, at: &At<SecretFile>) -> Option<PathBuf> {
        let path = self.path_of(&at.value);
        let was_watched = self.watched.contains(&path);
        let read = self.read(at);
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

    /// The header line of a secret that was found at a place.
    fn line(
        &mut self,
        (secret, at): (Secret, Place),
        header: &Field<At<CredentialHeader>>,
        scheme: &Field<At<Scheme>>,
    ) -> UpstreamAuth {
        let (name, scheme) = carrier(header, scheme);
        let begins = |bytes: &[u8]| {
            bytes
                .get(..7)
                .is_some_and(|start| start.eq_ignore_ascii_case(b"bearer "))
        };
        if scheme.eq_ignore_ascii_case("bearer") && begins(secret.expose()) {
            let hint = "keep the secret alone in it, or write scheme: \"\"";
            self.findings
                .warn(&at, "the secret itself begins with Bearer", hint);
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
        let count = sources.iter().filter(|present| **present).count();
        if count != 1 {
            let says = if count == 0 {
                "says no secret"
            } else {
                "says several secrets"
            };
            self.findings
                .fault(place, says, format!("write exactly one of {choice}"));
        }
        let mut found = None;
        if let Some(at) = file.get() {
            let hint = "write the secret alone into it, or name another";
            let bytes = self.read_up_to(at, hint, super::FILE_BYTES_MAX);
            let bytes = bytes.map(|(_, bytes)| Secret::new(bytes));
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
                    let says = "the variable named here is not set";
                    self.findings
                        .fault(&at.place, says, "set it, or use `file`");
                }
            }
        }
        if let Some(at) = inline.get() {
            let secret = self.checked(&at.value.0, &at.place, "the secret");
            found = secret.map(|secret| (secret, at.place.clone()));
        }
        found.filter(|_| count == 1)
    }

    /// The secret without the line break that editors leave at the end of a file.
    fn checked(&mut self, secret: &Secret, place: &Place, what: &str) -> Option<Secret> {
        let mut bytes = secret.expose();
        while let Some((b'\n' | b'\r', rest)) = bytes.split_last() {
            bytes = rest;
        }
        let wrong = if bytes.is_empty() {
            ("is empty", "write the secret alone, on one line")
        } else if bytes.len() > SECRET_BYTES_MAX {
            (
                "is longer than 16 KiB",
                "write the secret alone, on one line",
            )
        } else if bytes.contains(&b'\n') || bytes.contains(&b'\r') {
            (
                "has a line break inside",
                "write the secret alone, on one line",
            )
        } else if bytes.first() == Some(&b' ') || bytes.last() == Some(&b' ') {
            ("has a space at an end", "remove the space")
        } else if !bytes.iter().all(|b| (b' '..=b'~').contains(b)) {
            (
                "has a character that a header cannot carry",
                "use visible ASCII",
            )
        } else {
            return Some(Secret::new(bytes.to_vec()));
        };
        self.findings
            .fault(place, format!("{what} {}", wrong.0), wrong.1);
        None
    }
}

/// The header that carries a credential, and the word before it.
fn carrier<'w>(
    header: &'w Field<At<CredentialHeader>>,
    scheme: &'w Field<At<Scheme>>,
) -> (&'w str, &'w str) {
    let name = header.get();
    let name = name.map_or("authorization", |at| at.value.0.as_str());
    let usual = if name == "authorization" {
        "Bearer"
    } else {
        ""
    };
    let scheme = scheme.get().map_or(usual, |at| at.value.0.as_str());
    (name, scheme)
}

fn of_credential(owner: &Place) -> Place {
    Place {
        path: format!("{}.credential", owner.path),
        line: owner.line,
    }
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
