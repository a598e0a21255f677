//! `aws`: whose keys sign requests, for which region and service.

use super::{IDENTITIES, endpoint};
use crate::decode::Place;
use crate::host::{AwsFrom, AwsSource, MadeKind};
use crate::lower::{said, text};
use crate::schema::credential::{Aws, WebIdentity};

const METADATA: &str = "http://169.254.169.254";

impl super::super::Lowering<'_> {
    pub(super) fn aws(&mut self, written: &Aws, place: &Place) -> Option<(String, MadeKind)> {
        let is_instance = written.imds.value().is_some_and(|is| is.0);
        let has_keys = !written.access_key_id.is_absent()
            || !written.secret_access_key.is_absent()
            || !written.session_token.is_absent();
        let is_container = written.container.value().is_some_and(|is| is.0);
        let is_role = !written.web_identity.is_absent();
        let kinds = [has_keys, is_role, is_instance, is_container];
        let hint = "write access_key_id and secret_access_key, web_identity, imds: true, or container: true";
        self.one_of(place, kinds, IDENTITIES, hint);
        if let Some(at) = written.endpoint.get().filter(|_| has_keys || is_container) {
            let says = if has_keys {
                "nobody is asked for keys that stand here"
            } else {
                "the environment says where a container's keys are"
            };
            self.fault(&at.place, says, "leave it out");
        }
        let region = text(&written.region);
        let (account, from) = if has_keys {
            self.aws_keys(written, place)?
        } else if let Some(identity) = written.web_identity.get() {
            self.web_identity(identity, written, region.as_deref()?)?
        } else if is_container {
            self.container(place)?
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

    fn web_identity(
        &mut self,
        written: &WebIdentity,
        aws: &Aws,
        region: &str,
    ) -> Option<(String, AwsFrom)> {
        let file = written.token_file.get().and_then(|at| self.token_file(at));
        let url = if aws.endpoint.is_absent() {
            format!("https://sts.{region}.amazonaws.com/")
        } else {
            self.asked_at(&aws.endpoint)?
        };
        let role_arn = text(&written.role_arn)?;
        let account = format!("aws {role_arn}");
        let from = AwsFrom::WebIdentity {
            url,
            role_arn,
            session_name: said(&written.session_name, "tollgate"),
            file: file?,
        };
        Some((account, from))
    }
}
