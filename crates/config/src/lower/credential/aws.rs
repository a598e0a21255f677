//! `aws`: whose keys sign requests, for which region and service.
//!
//! Invariant: of the chain of defaults the first link that the environment names is taken, as AWS's own SDKs have them in order, and none
//! after it: a role that cannot be taken is not passed over for another one.

use std::path::PathBuf;

use policy::secret::Secret;

use super::{IDENTITIES, endpoint};
use crate::decode::Place;
use crate::host::{AwsFrom, AwsSource, MadeKind, SubjectToken};
use crate::lower::{said, text};
use crate::schema::credential::{Aws, WebIdentity};

const METADATA: &str = "http://169.254.169.254";
/// What a session is called in the account's logs.
const SESSION: &str = "tollgate";
/// What is wrong with not exactly one token of a role.
const TOKENS: [&str; 2] = ["says no token", "says several tokens"];

impl super::super::Lowering<'_> {
    pub(super) fn aws(&mut self, written: &Aws, place: &Place) -> Option<(String, MadeKind)> {
        let is_instance = written.imds.value().is_some_and(|is| is.0);
        let has_keys = !written.access_key_id.is_absent()
            || !written.secret_access_key.is_absent()
            || !written.session_token.is_absent();
        let is_container = written.container.value().is_some_and(|is| is.0);
        let is_role = !written.web_identity.is_absent();
        let is_chain = written.default_chain.value().is_some_and(|is| is.0);
        let kinds = [has_keys, is_role, is_instance, is_container, is_chain];
        let hint = "write access_key_id and secret_access_key, web_identity, imds: true, container: true, or default_chain: true";
        self.one_of(place, kinds, IDENTITIES, hint);
        let has_no_address = has_keys || is_container || is_chain;
        if let Some(at) = written.endpoint.get().filter(|_| has_no_address) {
            let says = if has_keys {
                "nobody is asked for keys that stand here"
            } else {
                "the environment says where its keys are"
            };
            self.fault(&at.place, says, "leave it out");
        }
        let region = text(&written.region);
        let (account, from) = if has_keys {
            self.aws_keys(written, place)?
        } else if let Some(identity) = written.web_identity.get() {
            self.web_identity(
                identity,
                written,
                region.as_deref()?,
                &place.below("web_identity"),
            )?
        } else if is_container {
            self.container(place)?
        } else if is_chain {
            self.default_chain(place, region.as_deref()?)?
        } else {
            let base = endpoint(&written.endpoint, METADATA);
            ("aws imds".to_owned(), AwsFrom::Instance(format!("{base}/")))
        };
        let source = AwsSource {
            region: region?,
            service: said(&written.service, "bedrock"),
            from,
        };
        Some((account, MadeKind::Aws(Box::new(source))))
    }

    fn aws_keys(&mut self, written: &Aws, place: &Place) -> Option<(String, AwsFrom)> {
        if written.access_key_id.is_absent() || written.secret_access_key.is_absent() {
            let says = "says one half of a key";
            let hint = "write access_key_id and secret_access_key";
            self.fault(place, says, hint);
        }
        let secret = self.secret_below(&written.secret_access_key, place, "secret_access_key");
        let token = self.secret_below(&written.session_token, place, "session_token")?;
        let id = written.access_key_id.get()?.value.0.clone();
        let account = format!("aws {id}");
        let secret = secret??;
        Some((account, AwsFrom::Keys { id, secret, token }))
    }

    /// What the environment of the gate says first, as AWS's own SDKs look for it.
    fn default_chain(&mut self, place: &Place, region: &str) -> Option<(String, AwsFrom)> {
        let var = |name| self.sources.var(name).filter(|value| !value.is_empty());
        let secret = |text: String| Secret::new(text.into_bytes());
        if let (Some(id), Some(key)) = (var("AWS_ACCESS_KEY_ID"), var("AWS_SECRET_ACCESS_KEY")) {
            let token = var("AWS_SESSION_TOKEN").map(secret);
            let from = AwsFrom::Keys {
                secret: secret(key),
                token,
                id,
            };
            return Some(("aws environment".to_owned(), from));
        }
        if let (Some(file), Some(role_arn)) =
            (var("AWS_WEB_IDENTITY_TOKEN_FILE"), var("AWS_ROLE_ARN"))
        {
            let session_name = var("AWS_ROLE_SESSION_NAME");
            let account = format!("aws {role_arn}");
            let from = AwsFrom::WebIdentity {
                url: token_service(region),
                role_arn,
                session_name: session_name.unwrap_or_else(|| SESSION.to_owned()),
                token: SubjectToken::File(PathBuf::from(file), None),
            };
            return Some((account, from));
        }
        if super::container::is_said(var) {
            return self.container(place);
        }
        let from = AwsFrom::Instance(format!("{METADATA}/"));
        Some(("aws imds".to_owned(), from))
    }

    fn web_identity(
        &mut self,
        written: &WebIdentity,
        aws: &Aws,
        region: &str,
        place: &Place,
    ) -> Option<(String, AwsFrom)> {
        let kinds = [!written.token_file.is_absent(), !written.token.is_absent()];
        self.one_of(place, kinds, TOKENS, "write token_file or token");
        let token = match (written.token_file.get(), written.token.get()) {
            (Some(at), _) => self
                .token_file(at)
                .map(|file| SubjectToken::File(file, None)),
            (None, Some(of)) => self.issued_token(of, &place.below("token")),
            (None, None) => None,
        };
        let url = if aws.endpoint.is_absent() {
            token_service(region)
        } else {
            self.asked_at(&aws.endpoint)?
        };
        let role_arn = text(&written.role_arn)?;
        let account = format!("aws {role_arn}");
        let from = AwsFrom::WebIdentity {
            url,
            role_arn,
            session_name: said(&written.session_name, SESSION),
            token: token?,
        };
        Some((account, from))
    }
}

/// Where roles are given in a region.
fn token_service(region: &str) -> String {
    format!("https://sts.{region}.amazonaws.com/")
}
