//! Credentials for upstreams that are made while the gate runs: what makes them, of what the document says.
//!
//! Invariant: an endpoint whose credential cannot be had gets no call. One that is made of the same as before is kept
//! over a reload, with the token that it holds.
//! Not here: what is written (`config`), asking (`callout`), signatures (`jose`, `sigv4`), what an attempt takes
//! (`policy::credential`).

mod aws;
mod azure;
mod caller;
mod google;
mod kept;
mod oauth;
mod subject;

use std::sync::Arc;
use std::time::{Duration, Instant};

use callout::{Bounds, Client, Handle, TokenEndpoint, TokenRequest, Url};
use config::{MadeCredential, MadeKind, UpstreamCredential};
use policy::credential::UpstreamAuth;
use policy::snapshot::Snapshot;

use crate::seldom::Seldom;
use crate::services::{Made, Maker, Moment, Services};
use crate::trust::trust;

/// How long a call waits for a credential: less than policy does.
const ANSWER_WITHIN: Duration = Duration::from_millis(1800);

/// Puts what makes each credential into its place, and gives all of them: the next configuration keeps those of the one in force.
pub(crate) fn complete(
    snapshot: &mut Snapshot,
    written: &[UpstreamCredential],
    moment: Moment<'_>,
) -> Result<Vec<Made>, String> {
    let mut makers: Vec<Made> = Vec::new();
    for UpstreamCredential {
        endpoint,
        place,
        made,
    } in written
    {
        let known = makers.iter().find(|(of, _)| of == made);
        let maker = match (known, moment.services()) {
            (Some((_, maker)), _) => Arc::clone(maker),
            (None, services) => {
                let kept = services.and_then(|services| services.makers.kept(made));
                let maker = kept.map_or_else(|| maker(made, services), |kept| Ok(Some(kept)));
                match maker.map_err(|fault| format!("{place}: {fault}"))? {
                    Some(maker) => {
                        makers.push((made.clone(), Arc::clone(&maker)));
                        maker
                    }
                    // Nobody is asked: what stands there never gives one.
                    None => continue,
                }
            }
        };
        if let Some(endpoint) = snapshot.endpoints.get_mut(endpoint.index()) {
            endpoint.auth = UpstreamAuth::Minted(maker);
        }
    }
    Ok(makers)
}

/// What makes a credential; without services it is only seen that it could be made.
fn maker(
    made: &MadeCredential,
    services: Option<&Services>,
) -> Result<Option<Arc<dyn Maker>>, String> {
    let asks = Asks { made, services };
    match &made.kind {
        MadeKind::OAuth(source) => {
            let request = oauth::client_credentials(source)?;
            token_maker(asks, TokenRequest::OAuth(Box::new(request)), false)
        }
        MadeKind::Exchange(source, grant) => caller::maker(asks, oauth::exchange(source, grant)?),
        MadeKind::Google(source) => {
            let is_local = matches!(source.from, config::GoogleFrom::Metadata(_));
            token_maker(asks, google::request(source)?, is_local)
        }
        MadeKind::Azure(source) => {
            let is_local = matches!(**source, config::AzureSource::Managed(_));
            token_maker(asks, azure::request(source)?, is_local)
        }
        MadeKind::Aws(source) => aws::maker(asks, source),
    }
}

/// What makes a credential of a token that is asked for so.
fn token_maker(
    asks: Asks<'_>,
    request: TokenRequest,
    is_local: bool,
) -> Result<Option<Arc<dyn Maker>>, String> {
    let client = asks.client(is_local)?;
    let endpoint = asks
        .handle()?
        .map(|handle| TokenEndpoint::start(&handle, client, request, asks.on_fault()));
    Ok(endpoint.map(|endpoint| kept::maker(&asks, endpoint, kept::Line::of(&asks))))
}

/// What is made, and whose thread asks; none where nobody is asked.
struct Asks<'m> {
    made: &'m MadeCredential,
    services: Option<&'m Services>,
}

impl Asks<'_> {
    /// The way to the thread that asks, where anybody is asked.
    fn handle(&self) -> Result<Option<Handle>, String> {
        self.services.map(Services::handle).transpose()
    }

    /// Who sends the questions; one to the machine itself may go to a link-local address.
    fn client(&self, is_local: bool) -> Result<Client, String> {
        let tls = trust(self.made.ca_pem.as_deref())?;
        let bounds = Bounds {
            allow_link_local: is_local,
            ..Bounds::default()
        };
        Ok(Client::new(&tls, bounds))
    }

    /// What is told of a question without an answer.
    fn on_fault(&self) -> impl Fn(&callout::Fault) + Send + Sync + 'static {
        let account = self.made.account.clone();
        let seldom = Seldom::default();
        move |fault| {
            if let Some(times) = seldom.came(Instant::now()) {
                tracing::warn!(account, why = %fault, times, see = "docs/troubleshooting.md#the-gate-cannot-get-the-credential-of-an-upstream", "the gate cannot get the credential of an upstream");
            }
        }
    }
}

fn url(text: &str) -> Result<Url, String> {
    Url::parse(text).map_err(|fault| fault.to_string())
}

#[cfg(test)]
mod tests;
