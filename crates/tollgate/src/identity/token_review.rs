//! Tokens that an API server of Kubernetes is asked about.
//!
//! Invariant: an answer is used no longer than the document says, and never past the token's end.
//! Not here: asking, and what is kept of answers (`callout`), what a user of Kubernetes may do (`authority`).

use std::sync::Arc;
use std::time::Duration;

use callout::{Reviewed, TokenReview, TokenReviewSettings, User};
use config::TokenReviewSource;
use identity::claims::Mapping;
use policy::caller::{Later, Proven};
use policy::identity::{Proof, Unproven, Verifier};
use policy::secret::Secret;

use super::{ANSWER_WITHIN, Asked, Asking, KEPT_BY_WORKERS, mapping, proof_of};
use crate::kubernetes;
use crate::services::Services;

/// A verifier that asks; without services one that nobody answers.
pub(super) fn verifier(
    written: &TokenReviewSource,
    services: Option<&Services>,
) -> Result<Arc<dyn Verifier>, String> {
    let (server, client) = kubernetes::server(&written.server)?;
    let mut settings = TokenReviewSettings::new(server, written.audiences.clone());
    settings.cache = written.cache.saturating_sub(KEPT_BY_WORKERS);
    let Some(services) = services else {
        return Ok(Arc::new(Asking::<ApiServer>(None)));
    };
    settings.questions = services.questions("token_review", &settings.server.url);
    Ok(Arc::new(Asking(Some(ApiServer {
        review: TokenReview::new(&services.handle()?, client, settings),
        mapping: Arc::new(mapping(&written.claims)),
        cache: written.cache,
    }))))
}

/// The API server.
#[derive(Debug)]
struct ApiServer {
    review: TokenReview,
    mapping: Arc<Mapping>,
    cache: Duration,
}

impl Asked for ApiServer {
    fn ask(&self, credential: &Secret) -> Later<Result<Proof, Unproven>> {
        let asked = self.review.ask(credential, ANSWER_WITHIN);
        let (mapping, cache) = (Arc::clone(&self.mapping), self.cache);
        Box::pin(async move {
            match asked.await {
                Ok(Reviewed::Authenticated { user, asked_s, exp }) => {
                    proof(&mapping, &user, (asked_s, cache), exp)
                }
                Ok(Reviewed::Refused(why)) => Err(Unproven::Invalid(why.into())),
                Err(fault) => Err(Unproven::Unavailable(
                    format!("the API server of Kubernetes: {fault}").into(),
                )),
            }
        })
    }
}

fn proof(
    mapping: &Mapping,
    user: &User,
    asked: (u64, Duration),
    exp: Option<u64>,
) -> Result<Proof, Unproven> {
    let caller = mapping.caller(&kubernetes::claims(user), Proven::TokenReview);
    let caller = caller.map_err(|why| Unproven::Invalid(why.into()))?;
    proof_of(caller, asked, exp)
}
