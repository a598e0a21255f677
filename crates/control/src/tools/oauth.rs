//! `oauth` of an MCPRoute: who signs the tokens of its callers, and what clients learn of that.
//!
//! Invariant: a token is for this route: where no audience is said, it is the route's own address.
//! Not here: keys of issuers (`security`).

use crate::cluster::Cluster;
use crate::fields::Item;
use crate::findings::Findings;
use crate::object::Object;
use crate::security::{self, Issuer};
use crate::tree::Tree;

/// What callers bring, and `oauth` of our document.
pub(crate) struct OAuth {
    pub(crate) issuer: Issuer,
    pub(crate) told: Tree,
    /// What of it is the same for all paths.
    print: String,
}

impl OAuth {
    /// What it comes to, as a text.
    pub(super) fn print(&self) -> String {
        format!("{} {}", self.issuer.print(), self.print)
    }

    pub(super) fn of(
        cluster: &Cluster<'_>,
        route: &Object<'_>,
        (item, path): (&Item<'_>, &str),
        findings: &mut Findings,
    ) -> Option<Self> {
        let mut of = item.fields(findings);
        let issuer = of.needed_text("issuer", findings);
        let audiences = of.texts("audiences", findings);
        let keys = of.take("jwks").and_then(|item| {
            let mut inside = item.fields(findings);
            let keys = security::keys(cluster, route, &mut inside, findings);
            let is_said = !inside.has_only(&[]);
            inside.end(findings);
            if !is_said {
                let says = "says no keys";
                findings.fault(
                    &item.spot,
                    says,
                    "write remoteJWKS or localJWKS, or leave it out",
                );
            }
            keys
        });
        let claims = security::claims(&mut of, findings);
        for (header, spot) in &claims.told {
            let says = format!(
                "is for rules here, where they go by {header}: servers of tools are not told by it"
            );
            findings.warn(spot, says, "");
        }
        let metadata = of.need("protectedResourceMetadata", findings);
        of.end(findings);
        let metadata = metadata?;
        let mut inside = metadata.fields(findings);
        let resource = inside.needed_text("resource", findings);
        let scopes = inside.texts("scopesSupported", findings);
        let own = "clients learn of the resource, of who gives tokens and of scopes";
        inside.pass_over(
            &[
                ("resourceName", own),
                ("resourceSigningAlgValuesSupported", own),
                ("resourceDocumentation", own),
                ("resourcePolicyUri", own),
            ],
            findings,
        );
        inside.end(findings);
        let (issuer, resource) = (issuer?, resource?);
        let mut audiences: Vec<String> = audiences.into_iter().map(|said| said.value).collect();
        if audiences.is_empty() {
            let says = format!(
                "says no audience: a token has to be for {}, the resource, so that one for another service does not do",
                resource.value
            );
            findings.warn(&item.spot, says, "");
            audiences.push(resource.value.clone());
        }
        let scopes: Vec<String> = scopes.into_iter().map(|said| said.value).collect();
        let told = |resource: Tree| {
            Tree::map([
                ("resource", Some(resource)),
                (
                    "authorization_servers",
                    Some(Tree::text(&issuer.value).of(&issuer.spot)),
                ),
                ("scopes", (!scopes.is_empty()).then(|| Tree::texts(&scopes))),
            ])
        };
        // Of each path its own resource is told.
        let origin = resource.value.strip_suffix(path).unwrap_or(&resource.value);
        let print = told(Tree::text(origin)).flow();
        let told = told(Tree::text(&resource.value).of(&resource.spot));
        Some(Self {
            print,
            issuer: Issuer::new(&item.spot, issuer, &audiences, keys, claims),
            told: told.of(&metadata.spot),
        })
    }
}
