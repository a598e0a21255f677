//! `azure`: an application with one proof of it, or the machine's own identity.

use super::{IDENTITIES, endpoint};
use crate::decode::{Field, Place};
use crate::host::{AzureProof, AzureSource, MadeKind, SubjectToken};
use crate::lower::{said, text};
use crate::scalar::encoded;
use crate::schema::credential::Azure;

const SCOPE: &str = "https://cognitiveservices.azure.com/.default";
const AUTHORITY: &str = "https://login.microsoftonline.com";
const METADATA: &str = "http://169.254.169.254";

impl super::super::Lowering<'_> {
    pub(super) fn azure(&mut self, written: &Azure, place: &Place) -> Option<(String, MadeKind)> {
        let is_managed = written.managed_identity.value().is_some_and(|is| is.0);
        let kinds = [
            !written.client_secret.is_absent(),
            !written.certificate.is_absent() || !written.key.is_absent(),
            !written.federated_token_file.is_absent(),
            !written.federated_token.is_absent(),
            is_managed,
        ];
        let hint = "write client_secret, certificate and key, federated_token_file, federated_token, or managed_identity: true";
        self.one_of(place, kinds, IDENTITIES, hint);
        let scope = said(&written.scope, SCOPE);
        let client_id = text(&written.client_id);
        let (account, source) = if is_managed {
            self.managed(written, &scope, client_id)
        } else {
            self.application(written, place, scope, client_id)?
        };
        Some((account, MadeKind::Azure(Box::new(source))))
    }

    fn managed(
        &mut self,
        written: &Azure,
        scope: &str,
        client_id: Option<String>,
    ) -> (String, AzureSource) {
        let tenant = written.tenant.get().map(|at| &at.place);
        let authority = written.authority.get().map(|at| &at.place);
        for place in [tenant, authority].into_iter().flatten() {
            let says = "the machine's identity has no place here";
            self.fault(place, says, "leave it out: the machine knows it");
        }
        let base = endpoint(&written.endpoint, METADATA);
        let resource = encoded(scope.strip_suffix("/.default").unwrap_or(scope));
        let mut url = format!(
            "{base}/metadata/identity/oauth2/token?api-version=2018-02-01&resource={resource}"
        );
        let mut account = "azure managed identity".to_owned();
        if let Some(id) = client_id {
            url += &format!("&client_id={}", encoded(&id));
            account += &format!(" {id}");
        }
        (account, AzureSource::Managed(url))
    }

    fn application(
        &mut self,
        written: &Azure,
        place: &Place,
        scope: String,
        client_id: Option<String>,
    ) -> Option<(String, AzureSource)> {
        if let Some(at) = written.endpoint.get() {
            let says = "only a metadata service may stand at another address";
            self.fault(&at.place, says, "write authority, which is Entra's");
        }
        if written.tenant.is_absent() || written.client_id.is_absent() {
            let says = "does not say which application of which tenant";
            self.fault(place, says, "write tenant and client_id");
        }
        let proof = self.azure_proof(written, place);
        let authority = match written.authority {
            Field::Absent => AUTHORITY.to_owned(),
            _ => self.asked_at(&written.authority)?,
        };
        let tenant = &written.tenant.get()?.value.0;
        let client_id = client_id?;
        let account = format!("azure {tenant} {client_id}");
        let source = AzureSource::Application {
            url: format!("{authority}/{tenant}/oauth2/v2.0/token"),
            client_id,
            scope,
            proof: proof?,
        };
        Some((account, source))
    }

    fn azure_proof(&mut self, written: &Azure, place: &Place) -> Option<AzureProof> {
        if let Some(secret) = written.client_secret.get() {
            let secret = self.secret_at(secret, &place.below("client_secret"))?;
            return Some(AzureProof::Secret(secret));
        }
        if let Some(at) = written.federated_token_file.get() {
            let file = self.token_file(at);
            return file.map(|file| AzureProof::Token(SubjectToken::File(file, None)));
        }
        if let Some(of) = written.federated_token.get() {
            let token = self.issued_token(of, &place.below("federated_token"));
            return token.map(AzureProof::Token);
        }
        if written.certificate.is_absent() != written.key.is_absent() {
            let says = "says a certificate without its key, or a key without its certificate";
            self.fault(place, says, "write certificate and key");
        }
        let (certificate, key) = (written.certificate.get(), written.key.get());
        let certificate = certificate.and_then(|at| self.certificate(at));
        let key = key.and_then(|at| self.private_key(at));
        Some(AzureProof::Certificate(certificate?.1, key?.1))
    }
}
