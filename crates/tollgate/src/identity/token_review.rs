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

use super::{ANSWER_WITHIN, KEPT_BY_WORKERS, before_asking, mapping, nobody, proof_of};
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
    if let Some(services) = services {
        settings.questions = services.questions("token_review", &settings.server.url);
    }
    let review = match services {
        Some(services) => Some(TokenReview::new(&services.handle()?, client, settings)),
        None => None,
    };
    Ok(Arc::new(TokenReviewVerifier {
        review,
        mapping: Arc::new(mapping(&written.claims)),
        cache: written.cache,
    }))
}

/// Asks about each token, unless it was asked a moment ago.
#[derive(Debug)]
struct TokenReviewVerifier {
    review: Option<TokenReview>,
    mapping: Arc<Mapping>,
    cache: Duration,
}

impl Verifier for TokenReviewVerifier {
    fn takes(&self, _: &[u8]) -> bool {
        true
    }

    fn fingerprint(&self, credential: &[u8]) -> [u8; 32] {
        identity::fingerprint(credential)
    }

    fn verify(&self, credential: &[u8], _: u64) -> Result<Proof, Unproven> {
        Err(before_asking(credential))
    }

    fn ask(&self, credential: Secret) -> Later<Result<Proof, Unproven>> {
        let Some(review) = &self.review else {
            return nobody();
        };
        let asked = review.ask(&credential, ANSWER_WITHIN);
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
