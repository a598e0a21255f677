//! Tokens that whoever issued them is asked about.
//!
//! Invariant: an answer is used no longer than the document says, and never past the token's end.
//! Not here: asking, and what is kept of answers (`callout`).

use std::sync::Arc;
use std::time::Duration;

use callout::{
    ActiveToken, Bounds, Client, ClientAuth, Introspected, Introspection, IntrospectionSettings,
    SecretSource, Url,
};
use config::IntrospectionSource;
use identity::claims::Mapping;
use policy::caller::{Later, Proven};
use policy::identity::{Proof, Unproven, Verifier};
use policy::secret::Secret;
use serde_json::Value;

use super::{ANSWER_WITHIN, Asked, Asking, KEPT_BY_WORKERS, mapping, proof_of};
use crate::services::Services;
use crate::trust::trust;

/// A verifier that asks; without services one that nobody answers.
pub(super) fn verifier(
    written: &IntrospectionSource,
    services: Option<&Services>,
) -> Result<Arc<dyn Verifier>, String> {
    let url = Url::parse(&written.url).map_err(|fault| format!("url: {fault}"))?;
    let tls = trust(written.ca_pem.as_deref())?;
    let auth = client_auth(written);
    let mut settings = IntrospectionSettings::new(url, auth);
    settings.cache = written.cache.saturating_sub(KEPT_BY_WORKERS);
    let Some(services) = services else {
        return Ok(Arc::new(Asking::<Endpoint>(None)));
    };
    settings.questions = services.questions("introspection", &settings.url);
    let client = Client::new(&tls, Bounds::default());
    Ok(Arc::new(Asking(Some(Endpoint {
        introspection: Introspection::new(&services.handle()?, client, settings),
        rules: Arc::new(Rules {
            mapping: mapping(&written.claims),
            audiences: written.audiences.clone(),
            cache: written.cache,
        }),
    }))))
}

fn client_auth(written: &IntrospectionSource) -> ClientAuth {
    let id = written.client_id.clone();
    match (id, &written.client_secret) {
        (Some(id), Some(secret)) => {
            let secret = SecretSource::fixed(secret.clone());
            if written.is_posted {
                ClientAuth::Post { id, secret }
            } else {
                ClientAuth::Basic { id, secret }
            }
        }
        (id, _) => ClientAuth::Nothing { id },
    }
}

/// Whoever issued the tokens.
#[derive(Debug)]
struct Endpoint {
    introspection: Introspection,
    rules: Arc<Rules>,
}

/// What an answer must say, and what becomes of it.
#[derive(Debug)]
struct Rules {
    mapping: Mapping,
    audiences: Vec<String>,
    cache: Duration,
}

impl Rules {
    fn proof(&self, token: &ActiveToken) -> Result<Proof, Unproven> {
        let claims = &token.claims;
        if !self.audiences.is_empty() && !self.is_for_us(claims.get("aud")) {
            return Err(Unproven::Invalid("it is for another audience".into()));
        }
        let caller = self.mapping.caller(claims, Proven::Introspection);
        let caller = caller.map_err(|why| Unproven::Invalid(why.into()))?;
        proof_of(caller, (token.asked_s, self.cache), token.exp)
    }

    fn is_for_us(&self, aud: Option<&Value>) -> bool {
        let is_ours = |value: &Value| {
            let text = value.as_str();
            text.is_some_and(|text| self.audiences.iter().any(|ours| ours == text))
        };
        match aud {
            Some(Value::Array(many)) => many.iter().any(is_ours),
            Some(one) => is_ours(one),
            None => false,
        }
    }
}

impl Asked for Endpoint {
    fn ask(&self, credential: &Secret) -> Later<Result<Proof, Unproven>> {
        let asked = self.introspection.ask(credential, ANSWER_WITHIN);
        let rules = Arc::clone(&self.rules);
        Box::pin(async move {
            match asked.await {
                Ok(Introspected::Active(token)) => rules.proof(&token),
                Ok(Introspected::Inactive) => Err(Unproven::Invalid(
                    "whoever issued it says that it is not active".into(),
                )),
                Err(fault) => Err(Unproven::Unavailable(fault.to_string().into())),
            }
        })
    }
}
