//! SecurityPolicy: who calls, by signed tokens or keys (`api_keys`); which web pages may; who is asked about each call (`external`).
//!
//! Invariant: a policy that would keep somebody out is honoured or a fault, never left out.
//! Not here: callers by a header (`lower`).

use crate::api_keys::{self, ApiKeys};
use crate::cluster::Cluster;
use crate::external;
use crate::fields::{Fields, Item, Said};
use crate::findings::{Broken, Findings, Spot};
use crate::gateway::{Door, is_here, targets};
use crate::object::{CORE, Object};
use crate::plain::PlainRoute;
use crate::reference::Reference;
use crate::service::Services;
use crate::tree::Tree;

/// What policies say of callers.
#[derive(Default)]
pub(crate) struct Security {
    /// Issuers of tokens, of which one has to have signed a caller's.
    pub(crate) issuers: Vec<Issuer>,
    /// Keys, one of which a caller has to bring.
    pub(crate) keys: Option<ApiKeys>,
    pub(crate) cors: Option<Tree>,
    /// Who is asked about each call.
    pub(crate) asked: Option<Tree>,
}

/// One of them.
pub(crate) struct Issuer {
    pub(crate) spot: Spot,
    members: Vec<(String, Tree)>,
    /// Claims by the header that they become.
    claims: Vec<(String, String)>,
    /// Where each of those headers is named.
    told: Vec<(String, Spot)>,
}

/// Claims by the header that they become, and where each header is named.
#[derive(Default)]
pub(crate) struct Claims {
    claims: Vec<(String, String)>,
    pub(crate) told: Vec<(String, Spot)>,
}

impl Issuer {
    pub(crate) fn new(
        spot: &Spot,
        issuer: Said<String>,
        audiences: &[String],
        jwks: Option<Tree>,
        claims: Claims,
    ) -> Self {
        let members = [
            ("issuer", Some(Tree::text(issuer.value).of(&issuer.spot))),
            (
                "audience",
                (!audiences.is_empty()).then(|| Tree::texts(audiences)),
            ),
            ("jwks", jwks),
        ];
        let there = members
            .into_iter()
            .filter_map(|(name, tree)| Some((name.to_owned(), tree?)));
        Self {
            spot: spot.clone(),
            members: there.collect(),
            claims: claims.claims,
            told: claims.told,
        }
    }

    /// What it comes to, as a text.
    pub(crate) fn print(&self) -> String {
        format!(
            "{} {:?}",
            Tree::Map(self.members.clone()).flow(),
            self.claims
        )
    }

    /// The claim that becomes a header.
    fn claim_of(&self, header: &str) -> Option<&str> {
        let mut claims = self.claims.iter();
        let claim = claims.find(|(to, _)| to == header);
        claim.map(|(_, claim)| claim.as_str())
    }

    /// As a source of identity: the claim that becomes the header of callers says who it is, or all are one.
    pub(crate) fn tree(
        &self,
        header: Option<&str>,
        user_header: Option<&str>,
        default: &str,
    ) -> Tree {
        let mut members = self.members.clone();
        if let Some(claim) = user_header.and_then(|header| self.claim_of(header)) {
            members.push(("user_claim".into(), Tree::text(claim)));
        }
        members.push(match header.and_then(|header| self.claim_of(header)) {
            Some(claim) => ("workload_claim".into(), Tree::text(claim)),
            None => ("workload".into(), Tree::text(default)),
        });
        let jwt = Tree::Map(members);
        Tree::map([("jwt", Some(jwt)), ("header", header.map(Tree::text))]).of(&self.spot)
    }
}

impl Security {
    /// The headers by which rules and services are told who calls.
    fn headers(&self) -> impl Iterator<Item = &(String, Spot)> {
        let of_keys = self.keys.iter().flat_map(|keys| &keys.header);
        of_keys.chain(self.issuers.iter().flat_map(|issuer| &issuer.told))
    }

    /// Whether what a header says is proven.
    pub(crate) fn proves(&self, header: &str) -> bool {
        self.headers().any(|(name, _)| name == header)
    }

    /// Who proves callers without saying what a header says, and by what it would.
    pub(crate) fn says_nothing_of(&self, header: &str) -> Option<(&Spot, &'static str)> {
        let mut issuers = self.issuers.iter();
        let other = issuers.find(|issuer| issuer.claim_of(header).is_none());
        if let Some(issuer) = other {
            return Some((&issuer.spot, "claimToHeaders"));
        }
        let keys = self.keys.as_ref().filter(|_| self.issuers.is_empty())?;
        let is_said = keys.known_by(header).is_some();
        (!is_said).then_some((&keys.spot, "forwardClientIDHeader"))
    }

    /// Notes headers by which services would be told who calls. Here they are for rules alone: a client's own would reach the
    /// services, but for the header of callers, which must not contradict what is proven. That is a fault of the route to them: who
    /// calls is asked for all.
    pub(crate) fn told_to_services(
        &self,
        callers: Option<&str>,
        routes: &[PlainRoute<'_, '_>],
        findings: &mut Findings,
    ) {
        for (header, spot) in self.headers() {
            if Some(header.as_str()) == callers {
                findings.warn(spot, "is for rules here: services are not told by it", "");
                continue;
            }
            for route in routes.iter().filter(|route| route.is_open()) {
                let says = format!(
                    "is of services that would have {header} from clients themselves: it is not told to them here, and {} says who calls by it",
                    spot.object
                );
                let hint = "leave the header out there, or attach this to a gate of its own";
                findings.fault(&route.object.spot, says, hint);
            }
        }
    }
}

/// All policies; they have to be for everything, since who calls is asked once.
pub(crate) fn policies(
    cluster: &Cluster<'_>,
    door: &Door<'_, '_>,
    services: &Services,
    findings: &mut Findings,
) -> Security {
    let mut security = Security::default();
    let all = cluster.of_kind("SecurityPolicy").map(|policy| {
        let mut spec = policy.spec(findings);
        let is_judged = |target: &Reference| door.judges(cluster, target);
        let targets = targets(&mut spec, policy, is_judged, findings);
        (policy, spec, targets)
    });
    let mut all: Vec<_> = all.collect();
    // The Gateway's goes before those of routes, and then the older one.
    all.sort_by_cached_key(|(policy, _, targets)| {
        let is_for_all = targets.iter().any(|target| target.is_to(door.gateway));
        (!is_for_all, policy.age())
    });
    let mut all = all.into_iter();
    let Some((policy, mut spec, targets)) = all.next() else {
        return security;
    };
    for (other, ..) in all {
        let says = format!(
            "is a second policy of this kind beside {}, and callers are known in one way",
            policy.id()
        );
        let hint = "write both into one, for the Gateway";
        findings.break_off(Broken::Conflict, &other.spot, says, hint);
    }
    is_for_everything(cluster, door, policy, &targets, findings);
    if let Some(item) = spec.take("jwt") {
        let mut of = item.fields(findings);
        of.refuse(&[("optional", "who brings no token is refused")], findings);
        let providers = of.list("providers", findings);
        if providers.is_empty() {
            let says = "names nobody who signs tokens, and would let everybody in";
            findings.fault(&item.spot, says, "write providers, or leave the policy out");
        }
        for item in providers {
            security
                .issuers
                .extend(issuer(cluster, policy, &item, findings));
        }
        of.end(findings);
    }
    if let Some(item) = spec.take("cors") {
        let mut of = item.fields(findings);
        let origins = of.texts("allowOrigins", findings);
        let origins = origins
            .iter()
            .map(|said| Tree::text(&said.value).of(&said.spot))
            .collect();
        security.cors = Some(Tree::map([("origins", Some(Tree::List(origins)))]).of(&item.spot));
        let own = "preflights are answered by what the gate serves";
        of.pass_over(
            &[
                ("allowMethods", own),
                ("allowHeaders", own),
                ("exposeHeaders", own),
                ("maxAge", own),
            ],
            findings,
        );
        if let Some(said) = of
            .flag("allowCredentials", findings)
            .filter(|said| said.value)
        {
            findings.fault(
                &said.spot,
                "is not honoured here: cookies are never taken",
                "leave it out",
            );
        }
        of.end(findings);
    }
    spec.refuse(
        &[
            (
                "basicAuth",
                "passwords are not taken: write jwt or apiKeyAuth",
            ),
            ("oidc", "write identity: { login } in a file of ours beside"),
            (
                "authorization",
                "write authority: { rules } in a file of ours beside",
            ),
            (
                "contextExtensions",
                "write authority: { rules } in a file of ours beside",
            ),
        ],
        findings,
    );
    if let Some(item) = spec.take("apiKeyAuth") {
        let is_second = !security.issuers.is_empty();
        if is_second {
            let says = "asks for a key beside a token, and a call brings one credential";
            findings.fault(&item.spot, says, "keep jwt or apiKeyAuth");
        }
        security.keys = Some(api_keys::read(cluster, policy, &item, findings));
    }
    if let Some(item) = spec.take("extAuth") {
        security.asked = external::asked(cluster, policy, &item, services, findings);
    }
    let is_nothing = spec.has_only(&["targetRef", "targetRefs", "targetSelectors"]);
    spec.end(findings);
    if is_nothing {
        let says = "says nothing of who may call, and would let everybody in";
        findings.fault(&policy.spot, says, "write jwt, or leave the policy out");
    }
    security
}

fn is_for_everything(
    cluster: &Cluster<'_>,
    door: &Door<'_, '_>,
    policy: &Object<'_>,
    targets: &[Reference],
    findings: &mut Findings,
) {
    let here: Vec<&Reference> = targets
        .iter()
        .filter(|target| is_here(cluster, door, target, findings))
        .collect();
    if here.len() < targets.len() {
        return;
    }
    let is_for_all = here.iter().any(|target| target.is_to(door.gateway));
    let is_named = |route: &&Object<'_>| here.iter().any(|target| target.is_to_route(route));
    let is_route = |o: &&Object<'_>| matches!(o.kind, "HTTPRoute" | "AIGatewayRoute" | "MCPRoute");
    let routes = cluster.objects.iter().filter(is_route);
    let has_routes = routes.clone().next().is_some();
    let is_open = |route: &&Object<'_>| !cluster.mode.shut(route).is_whole();
    let others = routes.filter(|route| !is_named(route) && is_open(route));
    // In a cluster a policy goes on for its routes, whatever comes after it.
    let is_newer = |route: &&Object<'_>| cluster.mode.is_live && route.age() > policy.age();
    let (newer, others): (Vec<&Object<'_>>, Vec<&Object<'_>>) = others.partition(is_newer);
    if !is_for_all {
        for route in newer {
            let says = format!(
                "is not of the callers of {}, which is older, and callers are known in one way",
                policy.spot.object
            );
            let hint = "name the Gateway in its targetRefs, or run a gate for each";
            findings.fault(&route.spot, says, hint);
        }
    }
    match others.first() {
        _ if is_for_all => {}
        Some(other) => {
            let says = format!(
                "is not for {} {}, and callers are known in one way",
                other.kind,
                other.id()
            );
            findings.fault(&policy.spot, says, "name the Gateway in targetRefs");
        }
        None if !has_routes => findings.fault(
            &policy.spot,
            "is for nothing that is here",
            "name the Gateway in targetRefs",
        ),
        None => {}
    }
}

fn issuer(
    cluster: &Cluster<'_>,
    policy: &Object<'_>,
    item: &Item<'_>,
    findings: &mut Findings,
) -> Option<Issuer> {
    let mut of = item.fields(findings);
    // Callers are known before routes are chosen.
    of.skip(&["name", "recomputeRoute"]);
    let issuer = of.needed_text("issuer", findings);
    let audiences = of.texts("audiences", findings);
    if audiences.is_empty() {
        findings.fault(
            &item.spot,
            "says no audience, and a token for another service would do",
            "write audiences",
        );
    }
    let jwks = keys(cluster, policy, &mut of, findings);
    let claims = claims(&mut of, findings);
    of.refuse(
        &[("extractFrom", "a token comes as authorization: Bearer")],
        findings,
    );
    of.end(findings);
    let audiences: Vec<String> = audiences.into_iter().map(|said| said.value).collect();
    Some(Issuer::new(&item.spot, issuer?, &audiences, jwks, claims))
}

/// Where the keys of an issuer are; nothing where that is not said.
pub(crate) fn keys(
    cluster: &Cluster<'_>,
    policy: &Object<'_>,
    of: &mut Fields<'_>,
    findings: &mut Findings,
) -> Option<Tree> {
    let mut jwks = None;
    let remote = of.take("remoteJWKS");
    if let Some(item) = &remote {
        let mut inside = item.fields(findings);
        let url = inside.needed_text("uri", findings);
        inside.pass_over(
            &[("cacheDuration", "keys are fetched as they change")],
            findings,
        );
        inside.refuse(
            &[
                ("backendRefs", "keys are fetched at the address"),
                ("backendSettings", "keys are fetched at the address"),
            ],
            findings,
        );
        inside.end(findings);
        jwks = url.map(|url| Tree::map([("url", Some(Tree::text(url.value)))]).of(&url.spot));
    }
    if let Some(item) = of.take("localJWKS") {
        if remote.is_some() {
            let says = "says keys beside remoteJWKS";
            findings.fault(&item.spot, says, "keep one of them");
        }
        jwks = local_keys(cluster, policy, &item, findings);
    }
    jwks
}

/// What becomes a header, of a token.
pub(crate) fn claims(of: &mut Fields<'_>, findings: &mut Findings) -> Claims {
    let mut all = Claims::default();
    for item in of.list("claimToHeaders", findings) {
        let mut inside = item.fields(findings);
        let header = inside.needed_text("header", findings);
        let claim = inside.needed_text("claim", findings);
        inside.end(findings);
        if let (Some(header), Some(claim)) = (header, claim) {
            let name = header.value.to_ascii_lowercase();
            all.told.push((name.clone(), header.spot));
            all.claims.push((name, claim.value));
        }
    }
    all
}

fn local_keys(
    cluster: &Cluster<'_>,
    policy: &Object<'_>,
    item: &Item<'_>,
    findings: &mut Findings,
) -> Option<Tree> {
    let mut of = item.fields(findings);
    let kind = of.text("type", findings);
    let inline = of.text("inline", findings);
    let named = of.take("valueRef");
    of.end(findings);
    let is_named = kind.is_some_and(|kind| kind.value == "ValueRef");
    if let Some(inline) = inline.filter(|_| !is_named) {
        let path = cluster.give(
            policy,
            &format!("{}.jwks", policy.name),
            inline.value.into_bytes(),
        );
        return Some(
            Tree::map([("file", Some(Tree::text(path.to_string_lossy())))]).of(&inline.spot),
        );
    }
    let Some(named) = named.filter(|_| is_named) else {
        // Without them the issuer's own document would name the keys.
        let says = "holds no keys";
        let hint = "write type: Inline and inline, or type: ValueRef and valueRef";
        findings.fault(&item.spot, says, hint);
        return None;
    };
    let named = Reference::whole(&named, (CORE, "ConfigMap"), &policy.namespace, findings)?;
    let file = cluster.file(policy, &named, &["jwks"], findings)?;
    Some(Tree::map([("file", Some(file))]).of(&named.spot))
}
