//! `credential`: a secret from where it is kept to the header that carries it.
//!
//! Invariant: exactly one source; a secret that could break a header block is refused; no message
//! shows any part of one.

use policy::credential::UpstreamAuth;
use policy::secret::Secret;

use crate::decode::{At, Field, Place};
use crate::scalar::{Inline, SecretFile, Variable};
use crate::schema::Credential;

const SECRET_BYTES_MAX: usize = 16 << 10;

impl super::Lowering<'_> {
    /// The header for a credential; [`UpstreamAuth::None`] where none is written or it is faulty.
    pub(super) fn auth(&mut self, written: &Field<Credential>, owner: &Place) -> UpstreamAuth {
        let Some(written) = written.get() else {
            return UpstreamAuth::None;
        };
        let place = Place {
            path: format!("{}.credential", owner.path),
            line: owner.line,
        };
        let found = self.secret(
            &written.file,
            &written.env,
            &written.inline,
            &place,
            "file, env and inline",
        );
        let Some((secret, at)) = found else {
            return UpstreamAuth::None;
        };
        let name = written
            .header
            .get()
            .map_or("authorization", |at| at.value.0.as_str());
        let usual = if name == "authorization" {
            "Bearer"
        } else {
            ""
        };
        let scheme = written.scheme.get().map_or(usual, |at| at.value.0.as_str());
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
