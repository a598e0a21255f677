//! Where clients find servers of tools, and what they learn there of who gives them tokens (RFC 9728).
//!
//! Invariant: what is told of a path is told of that path alone, so that a client takes a token for where it is.
//! Not here: whose tokens are taken (`identity`).

use policy::mcp::{METADATA_PATH, OAuth, PATH, Resource};
use policy::snapshot::Snapshot;

use crate::decode::At;
use crate::scalar::Text;
use crate::schema::{Document, mcp as schema};
use crate::target::Target;

/// The paths of all routes, each once; that of the resource stands first.
pub(super) fn paths(written: &schema::Mcp) -> Vec<Box<str>> {
    let routes = written.routes.items().iter();
    let routes = routes.filter_map(|(_, route)| Some(path(route.as_ref()?)));
    let mut paths: Vec<Box<str>> = Vec::new();
    for path in routes {
        if !paths.iter().any(|known| **known == *path) {
            paths.push(path.into());
        }
    }
    let oauth = written.oauth.get();
    let resource = oauth.and_then(|of| of.resource.get());
    let own = |path: &str| resource.is_some_and(|at| at.value.base_path == path);
    paths.sort_by_key(|path| !own(path));
    if paths.is_empty() {
        paths.push(PATH.into());
    }
    paths
}

/// Where a route's callers find it.
pub(super) fn path(route: &schema::McpRoute) -> &str {
    route.path.get().map_or(PATH, |at| at.value.0.as_str())
}

impl super::super::Lowering<'_> {
    /// Who learns at a path what tokens for it are for brings one that is for that. Where some of these are taken, those that are not are a slip;
    /// an issuer may give all its tokens for something else.
    pub(in crate::lower) fn audiences_of_tools(&mut self, document: &Document, s: &Snapshot) {
        let oauth = s.mcp.as_deref().and_then(|mcp| mcp.oauth.as_ref());
        let resources = oauth.map_or(&[][..], |of| &of.resources);
        let sources = document.identity.get().into_iter().flat_map(|of| &of.0);
        let mut taken: Vec<&At<Text>> = Vec::new();
        for (_, source) in sources {
            let Some(source) = source else { return };
            let audiences = [
                source.jwt.get().map(|of| &of.audience),
                source.introspection.get().map(|of| &of.audience),
                source.token_review.get().map(|of| &of.audiences),
            ];
            for of in audiences.into_iter().flatten() {
                if of.items().is_empty() {
                    return;
                }
                taken.extend(of.items());
            }
        }
        let is_taken = |of: &&Resource| taken.iter().any(|at| at.value.0 == of.url);
        let Some(first) = resources.iter().find(is_taken) else {
            return;
        };
        let Some(at) = taken.iter().find(|at| at.value.0 == first.url) else {
            return;
        };
        for of in resources.iter().filter(|of| !is_taken(of)) {
            let says = format!(
                "tokens for {} are not taken, for which clients ask at that path of `mcp`",
                of.url
            );
            self.warn(&at.place, says, "name it, too");
        }
    }

    /// What clients are told of who gives them tokens, at each path.
    pub(super) fn mcp_oauth(
        &mut self,
        written: &schema::McpOAuth,
        paths: &[Box<str>],
    ) -> Option<OAuth> {
        let resource = written.resource.get()?;
        if !paths.iter().any(|path| **path == resource.value.base_path) {
            let says = format!(
                "is not the address of servers of tools, which ends with {}",
                paths.join(" or ")
            );
            let hint = format!("write its path {}", paths.first().map_or(PATH, |path| path));
            self.refuse(resource, &says, hint);
        }
        let url = |of: &Target, path: &str| {
            let scheme = if of.tls { "https" } else { "http" };
            format!("{scheme}://{}{path}", of.authority)
        };
        let servers = written.authorization_servers.items().iter();
        let servers: Vec<String> = servers
            .map(|at| url(&at.value, &at.value.base_path))
            .collect();
        let scopes: Vec<&str> = written
            .scopes
            .items()
            .iter()
            .map(|at| at.value.0.as_str())
            .collect();
        let of = |path: &str| {
            let mut metadata = serde_json::json!({
                "resource": url(&resource.value, path),
                "resource_name": "tollgate",
                "authorization_servers": servers,
                "bearer_methods_supported": ["header"],
            });
            if let (false, Some(members)) = (scopes.is_empty(), metadata.as_object_mut()) {
                members.insert("scopes_supported".into(), scopes.clone().into());
            }
            Resource {
                url: url(&resource.value, path),
                metadata_url: url(&resource.value, &format!("{METADATA_PATH}{path}")),
                metadata: metadata.to_string(),
            }
        };
        Some(OAuth {
            resources: paths.iter().map(|path| of(path)).collect(),
        })
    }
}
