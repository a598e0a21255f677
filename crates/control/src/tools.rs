//! MCPRoute: servers of tools (the Model Context Protocol) behind one address, who may use them, and which of their tools.
//!
//! Invariant: what keeps somebody from a tool is honoured or a fault. A key of a server stands in no document.
//! Not here: one server (`server`), which of its tools are seen (`selector`), tokens (`oauth`), who may call which (`authorization`), what
//! several routes come to (`lower::tools`).

mod authorization;
mod oauth;
mod request;
mod selector;
mod server;

use crate::api_keys::{self, ApiKeys};
use crate::cluster::Cluster;
use crate::external;
use crate::fields::{Fields, Item, Said};
use crate::findings::{Findings, Spot};
use crate::gateway::Door;
use crate::matching::{HeaderMatch, MODEL};
use crate::mode::Shut;
use crate::object::Object;
use crate::service::Services;
use crate::tree::Tree;
pub(crate) use oauth::OAuth;
pub(crate) use server::Server;

/// Where tools are served, unless said.
pub(crate) const PATH: &str = "/mcp";

/// A route to servers of tools.
pub(crate) struct ToolRoute<'c, 'n> {
    pub(crate) object: &'c Object<'n>,
    pub(crate) hostnames: Vec<Said<String>>,
    /// The listeners that it is attached to.
    pub(crate) listeners: Vec<String>,
    /// Where its callers find it.
    pub(crate) path: Said<String>,
    /// By which it tells callers apart.
    pub(crate) headers: Vec<HeaderMatch>,
    pub(crate) servers: Vec<Server>,
    /// Which tools its callers may call, by whole names.
    pub(crate) tools: Option<Tree>,
    pub(crate) policy: Policy,
    /// Its calls are refused: what it says cannot be honoured.
    pub(crate) is_closed: bool,
}

/// How its callers are known, and who is asked about them.
#[derive(Default)]
pub(crate) struct Policy {
    pub(crate) spot: Option<Spot>,
    pub(crate) oauth: Option<OAuth>,
    pub(crate) keys: Option<ApiKeys>,
    pub(crate) asked: Option<Tree>,
}

impl Policy {
    /// Whether it says anything of who calls.
    pub(crate) fn is_nothing(&self) -> bool {
        self.oauth.is_none() && self.keys.is_none() && self.asked.is_none()
    }

    /// What it comes to, as a text: two that are the same are one.
    pub(crate) fn print(&self) -> String {
        let none = &mut Findings::default();
        let keys = self.keys.as_ref();
        let keys = keys.map(|keys| keys.tree(None, "all", |_| true, none));
        let parts = [
            self.oauth.as_ref().map(OAuth::print),
            keys.map(|tree| tree.flow()),
            self.asked.as_ref().map(Tree::flow),
        ];
        parts.map(Option::unwrap_or_default).join("\n")
    }
}

impl<'c, 'n> ToolRoute<'c, 'n> {
    pub(crate) fn of(
        cluster: &'c Cluster<'n>,
        object: &'c Object<'n>,
        door: &Door<'_, '_>,
        services: &Services,
        findings: &mut Findings,
    ) -> Option<Self> {
        let shut = cluster.mode.shut(object);
        if shut == Shut::Gone {
            return None;
        }
        let is_closed = shut != Shut::Nothing;
        let mut quiet = Findings::default();
        let findings = if is_closed { &mut quiet } else { findings };
        let mut spec = object.spec(findings);
        let hostnames = spec.texts("hostnames", findings);
        let held = door.holds(cluster, object, &mut spec, &hostnames, findings);
        let path = spec.text("path", findings).unwrap_or_else(|| Said {
            value: PATH.to_owned(),
            spot: object.spot.clone(),
        });
        // It stands at no other one's path, and is closed at once: what comes of it is nobody else's fault.
        let is_path = config::is_tool_path(&path.value);
        let is_closed = is_closed || !is_path;
        if !is_path {
            let hint =
                "write one such as /mcp or /tools/github, and none below /v1 or /.well-known";
            let says = format!(
                "{} is no path for servers of tools",
                config::quoted(&path.value)
            );
            findings.fault(&path.spot, says, hint);
        }
        let (of_models, headers): (Vec<HeaderMatch>, Vec<HeaderMatch>) =
            HeaderMatch::all(&mut spec, findings)
                .into_iter()
                .partition(|header| header.name == MODEL);
        for header in &of_models {
            let says = "is the model of a call, and calls of tools have none";
            findings.fault(&header.spot, says, "write the header that names callers");
        }
        let prefix = spec.text("prefixMode", findings);
        let refs = spec.list("backendRefs", findings);
        if refs.is_empty() {
            let hint = "name a server of tools in spec.backendRefs";
            findings.fault(&object.spot, "goes nowhere", hint);
        }
        let mut servers: Vec<Server> = Vec::new();
        for item in &refs {
            let Some(server) =
                Server::of(cluster, object, item, services, prefix.as_ref(), findings)
            else {
                continue;
            };
            match servers.iter().any(|known| known.name == server.name) {
                true => findings.fault(
                    &item.spot,
                    format!("is a second backendRef called {}, and the names of its tools begin with that", server.name),
                    "give each server a Backend or Service of its own name",
                ),
                false => servers.push(server),
            }
        }
        let mut policy = Policy::default();
        let mut tools = None;
        if let Some(item) = spec.take("securityPolicy") {
            policy.spot = Some(item.spot.clone());
            let mut of = item.fields(findings);
            policy.read(cluster, object, (&mut of, &path.value), services, findings);
            let rules = of.take("authorization");
            let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
            tools = rules.and_then(|item| {
                authorization::tools(&item, &names, policy.oauth.is_some(), findings)
            });
            of.end(findings);
        }
        spec.refuse(
            &[(
                "backendSelector",
                "write toolSelector of each backendRef, or securityPolicy.authorization with request.mcp.backend",
            )],
            findings,
        );
        spec.pass_over(
            &[(
                "backendTrafficPolicy",
                "no policy is made of a route here, so that none is merged",
            )],
            findings,
        );
        spec.end(findings);
        (!held.is_empty()).then_some(Self {
            object,
            hostnames,
            listeners: held,
            path,
            headers,
            servers,
            tools,
            policy,
            is_closed,
        })
    }
}

impl Policy {
    fn read(
        &mut self,
        cluster: &Cluster<'_>,
        object: &Object<'_>,
        (of, path): (&mut Fields<'_>, &str),
        services: &Services,
        findings: &mut Findings,
    ) {
        let oauth = of.take("oauth");
        self.oauth = oauth.and_then(|item| OAuth::of(cluster, object, (&item, path), findings));
        if let Some(item) = of.take("apiKeyAuth") {
            if self.oauth.is_some() {
                let says = "asks for a key beside a token, and a call brings one credential";
                findings.fault(&item.spot, says, "keep oauth or apiKeyAuth");
            }
            self.keys = Some(api_keys::read(cluster, object, &item, findings));
        }
        let asked = of.take("extAuth");
        self.asked = asked
            .and_then(|item: Item<'_>| external::asked(cluster, object, &item, services, findings));
        of.refuse(
            &[(
                "mergeType",
                "a route's policy and the Gateway's are not merged: write all of it in one of them",
            )],
            findings,
        );
    }
}
