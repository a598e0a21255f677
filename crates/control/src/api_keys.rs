//! `apiKeyAuth` of a SecurityPolicy: keys in Secrets, each under the name of its client.
//!
//! Invariant: a key whose client no route is for lets nobody in, and a policy without keys is a fault: what closes a door never opens it.
//! Not here: which header rules go by (`lower::callers`).

use crate::cluster::{Cluster, Content};
use crate::fields::Item;
use crate::findings::{Findings, Spot};
use crate::object::{CORE, Object};
use crate::reference::Reference;
use crate::tree::Tree;

/// Where the gate looks for a key.
const HEADERS: [&str; 4] = ["authorization", "x-api-key", "api-key", "x-goog-api-key"];

/// Keys, and what rules know their clients by.
pub(crate) struct ApiKeys {
    pub(crate) spot: Spot,
    clients: Vec<Client>,
    /// The header that says who it is to rules, in lower case, and where it is named.
    pub(crate) header: Option<(String, Spot)>,
}

struct Client {
    name: String,
    key: Content,
    spot: Spot,
}

impl ApiKeys {
    /// The clients, where rules go by the header that says who they are.
    pub(crate) fn known_by(&self, header: &str) -> Option<impl Iterator<Item = &str>> {
        let is_it = matches!(&self.header, Some((own, _)) if own == header);
        is_it.then(|| self.clients.iter().map(|client| client.name.as_str()))
    }

    /// As a source of identity: clients are workloads where rules go by them, or all are one.
    pub(crate) fn tree(
        &self,
        header: Option<&str>,
        default: &str,
        is_routed: impl Fn(&str) -> bool,
        findings: &mut Findings,
    ) -> Tree {
        let mut members = Vec::new();
        for client in &self.clients {
            let workload = match header {
                Some(_) if is_routed(&client.name) => client.name.as_str(),
                Some(_) => {
                    let says = format!(
                        "no route is for the client {}: its key is left out",
                        client.name
                    );
                    findings.warn(&client.spot, says, "");
                    continue;
                }
                None => default,
            };
            let mut of_client = vec![("workload".to_owned(), Tree::text(workload))];
            if let Tree::Map(source) = client.key.source(&client.spot) {
                of_client.extend(source);
            }
            members.push((client.name.clone(), Tree::Map(of_client).of(&client.spot)));
        }
        if members.is_empty() && !self.clients.is_empty() {
            findings.fault(&self.spot, "has no client that a route is for", "");
        }
        let keys = Tree::Map(members);
        Tree::map([
            ("static_keys", Some(keys)),
            ("header", header.map(Tree::text)),
        ])
        .of(&self.spot)
    }
}

pub(crate) fn read(
    cluster: &Cluster<'_>,
    policy: &Object<'_>,
    item: &Item<'_>,
    findings: &mut Findings,
) -> ApiKeys {
    let mut of = item.fields(findings);
    let mut keys = ApiKeys {
        spot: item.spot.clone(),
        clients: Vec::new(),
        header: of
            .text("forwardClientIDHeader", findings)
            .map(|said| (said.value.to_ascii_lowercase(), said.spot)),
    };
    // A key never goes upstream.
    of.skip(&["sanitize"]);
    for item in of.list("extractFrom", findings) {
        places(&item, findings);
    }
    for item in of.list("credentialRefs", findings) {
        let named = Reference::whole(&item, (CORE, "Secret"), &policy.namespace, findings);
        if let Some(named) = named.filter(|named| named.is_one_of(&[(CORE, "Secret")], findings)) {
            keys.of_secret(cluster, policy, &named, findings);
        }
    }
    of.end(findings);
    if keys.clients.is_empty() {
        let says = "names no key, and nobody could call";
        findings.fault(
            &item.spot,
            says,
            "name Secrets in credentialRefs, with a key for each client",
        );
    }
    keys
}

impl ApiKeys {
    fn of_secret(
        &mut self,
        cluster: &Cluster<'_>,
        policy: &Object<'_>,
        named: &Reference,
        findings: &mut Findings,
    ) {
        let Some(secret) = cluster.resolve(policy, named, findings) else {
            return;
        };
        for (name, spot) in cluster.keys(secret) {
            if !is_client(&name) {
                let hint = "use letters, digits, -, _ and ., with a letter or a digit first";
                findings.fault(&spot, "is no name of a client", hint);
                continue;
            }
            if self.clients.iter().any(|client| client.name == name) {
                findings.fault(
                    &spot,
                    format!("is a second key of the client {name}"),
                    "keep one",
                );
                continue;
            }
            let key = cluster.content(policy, named, &[&name], findings);
            self.clients
                .extend(key.map(|key| Client { name, key, spot }));
        }
    }
}

/// It becomes the name of a file and of a workload.
fn is_client(name: &str) -> bool {
    let is_first = name
        .bytes()
        .next()
        .is_some_and(|b| b.is_ascii_alphanumeric());
    let is_part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    is_first && name.len() <= 64 && name.bytes().all(is_part)
}

/// Where keys come from; a fault where the gate would not find them.
fn places(item: &Item<'_>, findings: &mut Findings) {
    let mut of = item.fields(findings);
    for said in of.texts("headers", findings) {
        if !HEADERS
            .iter()
            .any(|name| said.value.eq_ignore_ascii_case(name))
        {
            let hint = format!("write one of {}", HEADERS.join(", "));
            findings.fault(
                &said.spot,
                "is no header in which keys are looked for",
                hint,
            );
        }
    }
    let hint = "a key comes in a header";
    of.refuse(&[("params", hint), ("cookies", hint)], findings);
    of.end(findings);
}
