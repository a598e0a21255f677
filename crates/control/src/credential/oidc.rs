//! `oidcExchangeToken`: a token of another issuer, which is given for a cloud's own.
//!
//! Invariant: an object of a cluster has nobody asked at the gate's own machine.
//! Not here: which cloud (`credential`).

use crate::backend::is_of_machine;
use crate::cluster::Cluster;
use crate::fields::{Fields, Item};
use crate::findings::Findings;
use crate::object::Object;
use crate::tree::Tree;

/// What is of logins in a browser.
const OF_LOGINS: [&str; 14] = [
    "redirectURL",
    "logoutPath",
    "cookieNames",
    "cookieDomain",
    "cookieConfig",
    "forwardAccessToken",
    "forwardIDToken",
    "defaultTokenTTL",
    "refreshToken",
    "defaultRefreshTokenTTL",
    "denyRedirect",
    "passThroughAuthHeader",
    "disableTokenEncryption",
    "csrfTokenTTL",
];

/// The token, as our document has one that is asked for; `of` are the members of `oidcExchangeToken`.
pub(super) fn token(
    cluster: &Cluster<'_>,
    policy: &Object<'_>,
    of: &mut Fields<'_>,
    findings: &mut Findings,
) -> Option<Tree> {
    let audience = of.text("aud", findings);
    let grant = of.text("grantType", findings);
    if let Some(said) = grant.filter(|said| said.value != "client_credentials") {
        let says = "is no way in which the gate asks for a token";
        findings.fault(
            &said.spot,
            says,
            "write client_credentials, or leave it out",
        );
    }
    let item = of.need("oidc", findings)?;
    let mut oidc = item.fields(findings);
    let provider = oidc.need("provider", findings);
    let by = provider.and_then(|item| issuer(cluster, &item, findings));
    oidc.refuse(&[("clientIDRef", "write clientID")], findings);
    let client = oidc.needed_text("clientID", findings);
    let named = super::secret(policy, oidc.need("clientSecret", findings), findings);
    let scopes = oidc.texts("scopes", findings);
    let resources = oidc.texts("resources", findings);
    let why = "nobody logs in by it";
    oidc.pass_over(&OF_LOGINS.map(|name| (name, why)), findings);
    oidc.end(findings);
    let named = named?;
    let secret = cluster.content(policy, &named, &["client-secret"], findings)?;
    let (by, client) = (by?, client?);
    let texts = |all: Vec<crate::fields::Said<String>>| {
        let all: Vec<String> = all.into_iter().map(|said| said.value).collect();
        (!all.is_empty()).then(|| Tree::texts(&all))
    };
    let mut members = vec![by];
    let rest = Tree::map([
        ("client_id", Some(Tree::text(client.value).of(&client.spot))),
        ("client_secret", Some(secret.source(&named.spot))),
        ("scope", texts(scopes)),
        (
            "audience",
            audience.map(|said| Tree::text(said.value).of(&said.spot)),
        ),
        ("resource", texts(resources)),
    ]);
    if let Tree::Map(rest) = rest {
        members.extend(rest);
    }
    Some(Tree::Map(members).of(&item.spot))
}

/// Who gives it: the endpoint that is named, or else the issuer.
fn issuer(
    cluster: &Cluster<'_>,
    item: &Item<'_>,
    findings: &mut Findings,
) -> Option<(String, Tree)> {
    let mut of = item.fields(findings);
    let issuer = of.needed_text("issuer", findings);
    let endpoint = of.text("tokenEndpoint", findings);
    let why = "nobody logs in by it";
    of.pass_over(
        &[("authorizationEndpoint", why), ("endSessionEndpoint", why)],
        findings,
    );
    let hint = "write its address: it is asked directly";
    of.refuse(&[("backendRef", hint), ("backendRefs", hint)], findings);
    of.pass_over(&[("backendSettings", "it is asked directly")], findings);
    of.end(findings);
    let (name, said) = match endpoint {
        Some(said) => ("token_url", said),
        None => ("issuer", issuer?),
    };
    let is_closed = cluster.mode.is_live && !cluster.mode.reaches_machine;
    if is_closed && is_of_machine(host(&said.value)) {
        let says = "is an address of the gate's own machine, of its link or of nobody, which no object reaches";
        findings.fault(&said.spot, says, "name a Service");
        return None;
    }
    Some((name.to_owned(), Tree::text(said.value).of(&said.spot)))
}

/// The host of an address.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let authority = authority.rsplit('@').next().unwrap_or_default();
    match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    }
}

/// `credentialOverride`: a credential that something in front of the policy finds for each call.
///
/// Metadata is set by nothing here, so that what falls back to the policy's own credential always does. A header is whatever a client
/// says, and an authorizer that is asked may say a credential that would not be used.
pub(super) fn overridden(cluster: &Cluster<'_>, spec: &mut Fields<'_>, findings: &mut Findings) {
    let Some(item) = spec.take("credentialOverride") else {
        return;
    };
    let mut of = item.fields(findings);
    of.refuse(
        &[(
            "fromRequestHeaders",
            "what a client brings is never sent upstream",
        )],
        findings,
    );
    let metadata = of.take("fromDynamicMetadata");
    of.end(findings);
    let Some(metadata) = metadata else {
        return;
    };
    let mut of = metadata.fields(findings);
    of.needed_text("namespace", findings);
    of.text("key", findings);
    let falls_back = of.flag("fallbackToConfigured", findings);
    of.end(findings);
    let is_asked = cluster.of_kind("SecurityPolicy").any(|policy| {
        let mut spec = policy.spec(&mut Findings::default());
        let asked = spec.take("extAuth");
        asked.is_some()
    });
    if let Some(said) = falls_back.filter(|said| !said.value) {
        let says = "would refuse all calls: nothing here says a credential for each";
        findings.fault(&said.spot, says, "leave credentialOverride out");
    } else if is_asked {
        let says = "is not honoured here beside extAuth, whose answer might hold a credential";
        findings.fault(&metadata.spot, says, "leave credentialOverride out");
    } else {
        let says = "is left out: nothing here says a credential for each call, so that the policy's own is always used";
        findings.warn(&metadata.spot, says, "");
    }
}
