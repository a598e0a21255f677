//! What an API server of Kubernetes is asked: whose a token is, and what a caller may do.
//!
//! Invariant: who the gate is to the API server is a file, and never the document's own text: that token is replaced
//! while the gate runs.
//! Not here: asking (`callout`, the host).

use std::path::Path;
use std::time::Duration;

use super::identity::Known;
use crate::decode::{At, Field, Place};
use crate::host::{AccessReviewSource, ApiServer, Piece, ReviewedAction, TokenReviewSource};
use crate::scalar::Template;
use crate::schema::authority::SubjectAccessReview;
use crate::schema::identity::{self, TokenReview};

/// Where a pod reaches its API server, and the files that it finds there (Kubernetes, «Accessing the API from a Pod»).
const SERVER_OF_POD: &str = "https://kubernetes.default.svc";
const CA_OF_POD: &str = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt";
const TOKEN_OF_POD: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";
const TIMEOUT_DEFAULT: Duration = Duration::from_millis(500);

impl super::Lowering<'_> {
    pub(super) fn token_review(
        &mut self,
        place: &Place,
        written: &TokenReview,
        known: Known<'_>,
    ) -> Option<TokenReviewSource> {
        let cache = self.cache(&written.cache);
        let claims = self.claims(place, &written.claims, "username", known);
        let server = self.api_server(place, "token_review", &written.server);
        Some(TokenReviewSource {
            server: server?,
            audiences: super::texts(&written.audiences),
            cache,
            claims: claims?,
        })
    }

    pub(super) fn access_review(
        &mut self,
        place: &Place,
        written: &SubjectAccessReview,
    ) -> Option<AccessReviewSource> {
        let server = self.api_server(place, "subject_access_review", &written.server);
        let timeout = self.within(&written.timeout, TIMEOUT_DEFAULT);
        let (cache, cache_denied) = (
            self.cache(&written.cache),
            self.cache(&written.cache_denied),
        );
        let action = action(written);
        self.whole_action(place, written, &action);
        Some(AccessReviewSource {
            server: server?,
            action,
            trusts_system_names: written.system_names.value().is_some_and(|is| is.0),
            timeout,
            cache,
            cache_denied,
            fails_open: written.on_failure.value().is_some_and(|is| is.0),
        })
    }

    /// Notes what is said of no object, and facts of which there is only one for each review.
    fn whole_action(
        &mut self,
        place: &Place,
        written: &SubjectAccessReview,
        action: &ReviewedAction,
    ) {
        let of_object = [
            &written.group,
            &written.version,
            &written.subresource,
            &written.namespace,
            &written.name,
        ];
        let of_object = of_object.into_iter().find_map(Field::get);
        if let (true, Some(at)) = (written.resource.is_absent(), of_object) {
            let says = "belongs to an object, and no `resource` is said";
            let hint = "say `resource`, or leave it out: then the call's path is asked about";
            self.fault(&at.place, says, hint);
        }
        let mut pieces = action.members().into_iter().flatten();
        let has_facts = pieces.any(|piece| matches!(piece, Piece::Fact(_)));
        if written.resource.is_absent() && has_facts {
            let says = "subject_access_review asks about the call's path, in which no facts stand";
            let hint = "say `resource`, or write `verb` without braces";
            self.fault(place, says, hint);
        }
    }

    fn api_server(
        &mut self,
        place: &Place,
        name: &str,
        written: &identity::ApiServer,
    ) -> Option<ApiServer> {
        let is_said = !written.server.is_absent();
        let ca_pem = match written.ca.get() {
            None if written.ca.is_absent() && !is_said => {
                self.watched.push(CA_OF_POD.into());
                self.of_pod(place, name, CA_OF_POD, "`server` and `ca`")
            }
            _ => self.roots_of(&written.ca),
        };
        let token = match written.token.get().map(|token| token.file.get()) {
            Some(at) => self.token_file(at?),
            None if written.token.is_absent() => {
                let token = self.of_pod(place, name, TOKEN_OF_POD, "`token: { file: … }`");
                token.map(|_| TOKEN_OF_POD.into())
            }
            None => None,
        };
        let url = match written.server.get() {
            Some(at) => super::identity::address(&at.value),
            None if is_said => return None,
            None => SERVER_OF_POD.to_owned(),
        };
        let is_bad = written.ca.is_bad() || (!is_said && ca_pem.is_none());
        (!is_bad).then_some(ApiServer {
            url,
            ca_pem,
            token: token?,
        })
    }

    /// A file that every pod has.
    fn of_pod(&mut self, place: &Place, name: &str, path: &str, say: &str) -> Option<Vec<u8>> {
        match self.sources.read(Path::new(path), super::FILE_BYTES_MAX) {
            Ok(bytes) => Some(bytes),
            Err(error) => {
                let why = super::reason(&error);
                let says = format!("{name}: cannot read the file \"{path}\" that pods have: {why}");
                self.fault(place, says, format!("outside of a cluster say {say}"));
                None
            }
        }
    }
}

fn action(written: &SubjectAccessReview) -> ReviewedAction {
    let pieces = |field: &Field<At<Template>>| -> Vec<Piece> {
        field
            .value()
            .map_or_else(Vec::new, |template| template.0.clone())
    };
    ReviewedAction {
        resource: pieces(&written.resource),
        group: pieces(&written.group),
        version: pieces(&written.version),
        subresource: pieces(&written.subresource),
        namespace: pieces(&written.namespace),
        name: pieces(&written.name),
        verb: pieces(&written.verb),
    }
}
