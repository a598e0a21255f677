//! `google`: a service account's key, the machine's own account, or a token of another issuer.
//!
//! Invariant: of a file's JSON nothing is shown but the names of its members.

use std::path::PathBuf;
use std::time::Duration;

use policy::secret::Secret;
use serde_json::{Map, Value};

use super::{IDENTITIES, endpoint};
use crate::decode::{At, Place, Written};
use crate::host::{GoogleFrom, GoogleSource, MadeKind, SubjectToken};
use crate::lower::{text as said_text, texts};
use crate::scalar::{SecretFile, encoded};
use crate::schema::credential::{Federation, Google};
use crate::target::Target;

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const METADATA: &str = "http://metadata.google.internal";
const LIFE: Duration = Duration::from_secs(3600);
/// Who gives a token for that of another issuer, and who gives a service account's.
const STS: &str = "https://sts.googleapis.com";
const IAM: &str = "https://iamcredentials.googleapis.com";
const JWT: &str = "urn:ietf:params:oauth:token-type:jwt";

impl super::super::Lowering<'_> {
    pub(super) fn google(&mut self, written: &Google, place: &Place) -> Option<(String, MadeKind)> {
        let mut scopes = texts(&written.scope);
        if written.scope.is_absent() {
            scopes.push(SCOPE.to_owned());
        }
        let is_metadata = written.metadata.value().is_some_and(|is| is.0);
        let is_federation = !written.federation.is_absent();
        let kinds = [!written.key_file.is_absent(), is_federation, is_metadata];
        let hint = "write key_file, federation, or metadata: true";
        self.one_of(place, kinds, IDENTITIES, hint);
        let has_address = is_metadata || is_federation;
        if let Some(at) = written.endpoint.get().filter(|_| !has_address) {
            let says = "only a metadata server, or who federates, may stand at another address";
            self.fault(
                &at.place,
                says,
                "leave it out: the key's file says where tokens are",
            );
        }
        let (account, from) = match (written.key_file.get(), written.federation.get()) {
            (Some(at), _) => self.google_file(at)?,
            (None, Some(of)) => self.federation(of, written, &place.below("federation"))?,
            (None, None) if is_federation => return None,
            (None, None) => {
                let base = endpoint(&written.endpoint, METADATA);
                let path = "/computeMetadata/v1/instance/service-accounts/default/token";
                let scopes: Vec<String> = scopes.iter().map(|scope| encoded(scope)).collect();
                let url = format!("{base}{path}?scopes={}", scopes.join(","));
                ("google metadata".to_owned(), GoogleFrom::Metadata(url))
            }
        };
        let source = GoogleSource { scopes, from };
        Some((account, MadeKind::Google(Box::new(source))))
    }

    fn federation(
        &mut self,
        written: &Federation,
        google: &Google,
        place: &Place,
    ) -> Option<(String, GoogleFrom)> {
        let token = written.token.get();
        let token = token.and_then(|of| self.issued_token(of, &place.below("token")));
        let audience = said_text(&written.audience)?;
        let [sts, iam] = if google.endpoint.is_absent() {
            [STS, IAM].map(str::to_owned)
        } else {
            let at = self.asked_at(&google.endpoint)?;
            [at.clone(), at]
        };
        let account = said_text(&written.service_account);
        let impersonation = account.as_deref().map(|account| {
            let path = "/v1/projects/-/serviceAccounts";
            let url = format!("{iam}{path}/{}:generateAccessToken", encoded(account));
            (url, LIFE)
        });
        let named = format!("google {audience} {}", account.as_deref().unwrap_or("-"));
        let from = GoogleFrom::External {
            url: format!("{sts}/v1/token"),
            audience,
            subject_token_type: JWT.to_owned(),
            token: token?,
            impersonation,
        };
        Some((named, from))
    }

    fn google_file(&mut self, at: &At<SecretFile>) -> Option<(String, GoogleFrom)> {
        let (path, bytes) = self.read(at)?;
        self.guarded(at, &path);
        let found = serde_json::from_slice(&bytes);
        drop(Secret::new(bytes));
        let Ok(Value::Object(mut members)) = found else {
            let hint = "name the JSON file that Google Cloud wrote";
            self.fault(&at.place, "the file is not a JSON object", hint);
            return None;
        };
        let kind = members.get("type").and_then(Value::as_str);
        let from = match kind {
            Some("service_account") => service_account(&mut members),
            Some("external_account") => external(&members),
            _ => Err("holds no service_account and no external_account (its member `type`)"),
        };
        match from {
            Ok((
                _,
                GoogleFrom::External {
                    token: SubjectToken::File(file, _),
                    ..
                },
            )) if !self.is_there(&file) => {
                let says = "the file names a file with a token that cannot be read";
                let hint = "its path is the member credential_source.file";
                self.fault(&at.place, says, hint);
                None
            }
            Ok(found) => {
                let urls = match &found.1 {
                    GoogleFrom::Key { url, .. } => vec![url],
                    GoogleFrom::External {
                        url, impersonation, ..
                    } => {
                        let to = impersonation.iter().map(|(to, _)| to);
                        std::iter::once(url).chain(to).collect()
                    }
                    GoogleFrom::Metadata(_) => Vec::new(),
                };
                let are_good: Vec<bool> = urls
                    .into_iter()
                    .map(|url| self.named_url(at, url))
                    .collect();
                are_good.into_iter().all(|is_good| is_good).then_some(found)
            }
            Err(says) => {
                let hint = "name the JSON file that Google Cloud wrote";
                self.fault(&at.place, format!("the file {says}"), hint);
                None
            }
        }
    }
}

impl super::super::Lowering<'_> {
    /// Whether an address that a file names is one; what is sent there in clear is noted.
    fn named_url(&mut self, at: &At<SecretFile>, url: &str) -> bool {
        let Ok(target) = Target::read(url) else {
            let says = "the file names an address that is none";
            let hint = "addresses begin with https:// and have no query";
            self.fault(&at.place, says, hint);
            return false;
        };
        if !target.tls {
            self.in_clear(&at.place, &target);
        }
        true
    }
}

fn text(members: &Map<String, Value>, name: &str) -> Option<String> {
    let text = members.get(name)?.as_str()?;
    (!text.is_empty()).then(|| text.to_owned())
}

fn service_account(members: &mut Map<String, Value>) -> Result<(String, GoogleFrom), &'static str> {
    let Some(Value::String(pem)) = members.remove("private_key") else {
        return Err("has no private_key");
    };
    let pem = Secret::new(pem.into_bytes());
    let email = text(members, "client_email").ok_or("has no client_email")?;
    let from = GoogleFrom::Key {
        pem,
        id: text(members, "private_key_id"),
        url: text(members, "token_uri").ok_or("has no token_uri")?,
        email: email.clone(),
    };
    Ok((format!("google {email}"), from))
}

fn external(members: &Map<String, Value>) -> Result<(String, GoogleFrom), &'static str> {
    let none = Map::new();
    let object =
        |of: &Map<String, Value>, name: &str| of.get(name).and_then(Value::as_object).cloned();
    let source = object(members, "credential_source").ok_or("has no credential_source")?;
    let file = text(&source, "file").ok_or(
        "has a credential_source without `file`, which is the only kind that is known here",
    )?;
    let format = object(&source, "format").unwrap_or_else(|| none.clone());
    let member = match text(&format, "type").as_deref() {
        None | Some("text") => None,
        Some("json") => Some(
            text(&format, "subject_token_field_name")
                .ok_or("has no credential_source.format.subject_token_field_name")?,
        ),
        Some(_) => return Err("has a credential_source.format that is neither text nor json"),
    };
    let life = object(members, "service_account_impersonation").unwrap_or(none);
    let life = life.get("token_lifetime_seconds").and_then(Value::as_u64);
    let life = life.map_or(LIFE, Duration::from_secs);
    let impersonated = text(members, "service_account_impersonation_url");
    let audience = text(members, "audience").ok_or("has no audience")?;
    let account = format!(
        "google {audience} {}",
        impersonated.as_deref().unwrap_or("-")
    );
    let from = GoogleFrom::External {
        url: text(members, "token_url").ok_or("has no token_url")?,
        subject_token_type: text(members, "subject_token_type")
            .ok_or("has no subject_token_type")?,
        audience,
        token: SubjectToken::File(PathBuf::from(file), member),
        impersonation: impersonated.map(|url| (url, life)),
    };
    Ok((account, from))
}
