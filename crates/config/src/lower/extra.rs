//! `backends.NAME.headers`, `.query` and `.client_certificate`: what every request to a backend has, and who the gate
//! shows to be there.
//!
//! Invariant: no header that could carry a credential or steer a server is added, and none twice; nothing that could
//! be a key stands in a query.
//! Not here: how they take the place of what the client sent (`policy::exchange`).

use std::sync::Arc;

use policy::snapshot::{AddedHeader, AddedMember, AddedValue};
use policy::wire::head::Known;
use sha2::{Digest, Sha256};

use super::backend::Address;
use crate::decode::{At, Field, Place};
use crate::host;
use crate::mask::looks_like_key;
use crate::scalar::{Name, encoded};
use crate::schema::Backend;
use crate::schema::credential::UpstreamCredential;

/// Names of which a certificate has to have one.
const ALT_NAMES_MAX: usize = 16;

impl super::Lowering<'_> {
    pub(super) fn added_headers(&mut self, written: &Backend) -> Vec<AddedHeader> {
        let mut headers: Vec<AddedHeader> = Vec::new();
        for (name, value) in written.headers.items() {
            let Some(value) = value else { continue };
            self.not_a_key(&value.place, &value.value.0);
            let header = AddedHeader {
                name: name.value.0.as_bytes().into(),
                value: AddedValue::Fixed(value.value.0.as_bytes().into()),
            };
            if headers.iter().any(|known| known.name == header.name) {
                self.refuse(
                    name,
                    "stands here twice, but for capitals",
                    "keep one of them",
                );
            }
            headers.push(header);
        }
        let first = written.dialect.items().first();
        if let Some((name, value)) = first.and_then(|at| at.value.0.version_header())
            && !headers.iter().any(|said| *said.name == *name.as_bytes())
        {
            headers.push(AddedHeader {
                name: name.as_bytes().into(),
                value: AddedValue::Fixed(value.as_bytes().into()),
            });
        }
        self.betas(written, &mut headers);
        headers
    }

    /// The values of `anthropic-beta` that pass, where they are named.
    fn betas(&mut self, written: &Backend, headers: &mut Vec<AddedHeader>) {
        let named = written.anthropic_betas.items();
        let Some(first) = named.first() else { return };
        let name = Known::AnthropicBeta.name();
        let is_written = headers.iter().any(|said| *said.name == *name.as_bytes());
        let passed = written.api_headers.items();
        let is_withheld = !written.api_headers.is_absent()
            && !passed
                .iter()
                .any(|at| at.value.0 == Some(Known::AnthropicBeta));
        for (is_so, says) in [
            (
                is_written,
                "stands beside headers, which say all of anthropic-beta",
            ),
            (
                is_withheld,
                "stands beside api_headers, which leave anthropic-beta out",
            ),
        ] {
            if is_so {
                self.fault(&first.place, says, "leave one of them out");
            }
        }
        let values = named.iter().map(|at| at.value.0.as_str().into());
        headers.push(AddedHeader {
            name: name.as_bytes().into(),
            value: AddedValue::OfClient(values.collect()),
        });
    }

    pub(super) fn added_query(&mut self, written: &Backend) -> Vec<AddedMember> {
        let mut query = Vec::new();
        for (name, value) in written.query.items() {
            let Some(value) = value else { continue };
            self.not_a_key(&value.place, &value.value.0);
            query.push(AddedMember {
                name: name.value.0.as_str().into(),
                value: encoded(&value.value.0).into(),
            });
        }
        query
    }

    /// Notes what may be a key, and stands where it is shown.
    fn not_a_key(&mut self, place: &Place, value: &str) {
        if looks_like_key(value) {
            let hint = "a key belongs under `credential`; what stands here is shown in /config";
            self.warn(place, "looks like a key", hint);
        }
    }

    /// Notes an added header that carries the credential, too.
    pub(super) fn header_of_credential(
        &mut self,
        written: &Backend,
        credential: &Field<UpstreamCredential>,
    ) {
        let carrier = credential.get().and_then(|of| of.carrier.header.value());
        let headers = written.headers.items();
        let name = headers.iter().map(|(name, _)| name);
        for name in name.filter(|name| carrier.is_some_and(|header| header.0 == name.value.0)) {
            self.refuse(name, "carries the credential", "leave it out here");
        }
    }

    /// What tells the certificate that the gate shows; empty for none.
    /// The names of which its certificate has to have one.
    pub(super) fn alt_names(&mut self, written: &Backend) -> Arc<[Box<str>]> {
        let mut names: Vec<Box<str>> = Vec::new();
        for at in written.alt_names.items() {
            let name = at.value.0.as_str();
            match names.iter().any(|known| **known == *name) {
                true => self.twice(at),
                false if names.len() == ALT_NAMES_MAX => {
                    let says = format!("is one of more than {ALT_NAMES_MAX} names");
                    self.fault(&at.place, says, "keep those that its certificates have");
                    break;
                }
                false => names.push(name.into()),
            }
        }
        names.into()
    }

    pub(super) fn client_certificate(
        &mut self,
        name: &At<Name>,
        written: &Backend,
        addresses: &[Address<'_>],
    ) -> String {
        let Some(of) = written.client_certificate.get() else {
            return String::new();
        };
        let place = of.certificate.get().map_or(&name.place, |at| &at.place);
        if !addresses.is_empty() && !addresses.iter().any(|a| a.target.value.tls) {
            let says = format!(
                "no address of {} is https, so no certificate is shown",
                name.shown
            );
            let hint = "write https:// or remove `client_certificate`";
            self.fault(place, says, hint);
        }
        let certificate = of.certificate.get().and_then(|at| self.certificate(at));
        let key = of.key.get().and_then(|at| self.private_key(at));
        let (Some((_, certificate_pem)), Some((_, key_pem))) = (certificate, key) else {
            return String::new();
        };
        let digest = Sha256::new()
            .chain_update(&certificate_pem)
            .chain_update(key_pem.expose())
            .finalize();
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        if !self.made.certificates.iter().any(|of| of.digest == digest) {
            self.made.certificates.push(host::ClientCertificate {
                digest: digest.clone(),
                place: place.path.clone(),
                certificate_pem,
                key_pem,
            });
        }
        digest
    }
}
