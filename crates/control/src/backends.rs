//! `backends` of our document, made of the targets of rules.
//!
//! A rule's targets of one priority are one backend, whose endpoints have their weights; those of the next priority are the next
//! backend. Invariant: what targets of one backend cannot have apart is the same for all of them, or a fault.
//! Not here: single targets (`service`).

use std::collections::BTreeMap;

use crate::findings::{Findings, Spot};
use crate::refs::Ref;
use crate::target::Path;
use crate::tree::Tree;

/// The backends of our document as they are made.
#[derive(Default)]
pub(crate) struct Backends {
    made: Vec<(String, Tree)>,
    by_text: BTreeMap<String, String>,
}

/// What a route says of its backends beside where they are.
#[derive(Default, Clone)]
pub(crate) struct Manner {
    pub(crate) timeouts: Option<Tree>,
    pub(crate) ejection: Option<Tree>,
    /// How several addresses share calls.
    pub(crate) balancing: Option<Tree>,
    pub(crate) proxy: Option<Tree>,
    /// The models that arrive, where they are known by name.
    pub(crate) models: Vec<String>,
    /// Whether the route itself says the model that goes upstream.
    pub(crate) is_model_said: bool,
}

impl Backends {
    pub(crate) fn tree(&self) -> Tree {
        Tree::Map(self.made.clone())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.made.is_empty()
    }

    /// One backend for all targets of a priority; its name.
    pub(crate) fn add(
        &mut self,
        refs: &[&Ref],
        manner: &Manner,
        findings: &mut Findings,
    ) -> Option<String> {
        let [first, rest @ ..] = refs else {
            return None;
        };
        let all = common(first, manner);
        let of_all = (Tree::Map(all.clone()).flow(), model_of(first, manner));
        for other in rest {
            if (
                Tree::Map(common(other, manner)).flow(),
                model_of(other, manner),
            ) != of_all
            {
                let says = format!(
                    "shares its calls with {} by weight, and the two differ in more than their address and credential",
                    first.target.name
                );
                let hint = "give it another priority: then it is tried where the first one fails; or a rule of its own";
                findings.fault(&other.spot, says, hint);
                return None;
            }
        }
        let credential = first.credential().map(|tree| tree.flow());
        let is_one = rest
            .iter()
            .all(|other| other.credential().map(|tree| tree.flow()) == credential);
        let addresses = addresses(refs, manner, is_one, findings)?;
        let is_several = matches!(addresses, Addresses::Several(_));
        let mut members = vec![match addresses {
            Addresses::One(url) => ("url".to_owned(), url),
            Addresses::Several(list) => ("endpoints".to_owned(), list),
        }];
        members.extend(all);
        let balancing = manner.balancing.clone().filter(|_| is_several);
        let balancing = first.target.balancing.clone().or(balancing);
        members.extend(balancing.map(|tree| ("balancing".to_owned(), tree)));
        let own = first.credential().filter(|_| is_one);
        members.extend(own.map(|tree| ("credential".to_owned(), tree)));
        let names = model_names(first, manner, findings);
        members.extend(names.map(|tree| ("model_names".to_owned(), tree)));
        let names: Vec<&str> = refs.iter().map(|of| of.target.name.as_str()).collect();
        let tree = Tree::Map(members).of(&first.target.spot);
        Some(self.named(&names.join("."), tree))
    }

    /// One without an address; its name. Routes that go there are closed.
    pub(crate) fn closed(&mut self, is_plain: bool, spot: &Spot) -> String {
        let name = if is_plain { "closed-http" } else { "closed" };
        let tree = Tree::map([
            ("closed", Some(Tree::Plain("true".into()))),
            ("serves", is_plain.then(|| Tree::text("http"))),
        ]);
        self.named(name, tree.of(spot))
    }

    /// One of which no address is ready; its name.
    pub(crate) fn unready(&mut self, is_plain: bool, spot: &Spot) -> String {
        let name = if is_plain { "unready-http" } else { "unready" };
        let tree = Tree::map([
            ("unready", Some(Tree::Plain("true".into()))),
            ("serves", is_plain.then(|| Tree::text("http"))),
        ]);
        self.named(name, tree.of(spot))
    }

    /// The one of this text, or a new one of this name, or of the next that is free.
    fn named(&mut self, name: &str, tree: Tree) -> String {
        let text = tree.flow();
        if let Some(known) = self.by_text.get(&text) {
            return known.clone();
        }
        let name = free(name, |name| self.made.iter().any(|(made, _)| made == name));
        self.by_text.insert(text, name.clone());
        self.made.push((name.clone(), tree));
        name
    }
}

/// Where a backend's calls go.
enum Addresses {
    One(Tree),
    Several(Tree),
}

/// The addresses of targets that share their calls by weight, each with its share and, where they differ, its credential.
fn addresses(
    refs: &[&Ref],
    manner: &Manner,
    is_one_credential: bool,
    findings: &mut Findings,
) -> Option<Addresses> {
    let count =
        |of: &Ref| u64::try_from(of.target.upstream.endpoints.len()).map_or(1, |n| n.max(1));
    // A target's share is divided among its addresses, whose numbers differ.
    let scale = refs.iter().map(|of| count(of)).fold(1, u64::saturating_mul);
    let share = |of: &Ref| scale.saturating_mul(of.weight) / count(of);
    let divisor = refs.iter().map(|of| share(of)).fold(0, gcd).max(1);
    let is_equal = refs
        .windows(2)
        .all(|pair| matches!(pair, [a, b] if share(a) == share(b)));
    let mut endpoints = Vec::new();
    for of in refs {
        let path = path(&of.target.path, of, manner, findings)?;
        let weight = (!is_equal).then(|| Tree::number(share(of) / divisor));
        let credential = of.credential().filter(|_| !is_one_credential);
        for at in &of.target.upstream.endpoints {
            let url = of.target.upstream.url(at, &path);
            endpoints.push([
                ("url", Some(url)),
                ("weight", weight.clone()),
                ("credential", credential.clone()),
                ("request_headers", of.edits.clone()),
            ]);
        }
    }
    match endpoints.as_mut_slice() {
        [] => None,
        [[(_, url), .., (_, None)]] => url.take().map(Addresses::One),
        _ => Some(Addresses::Several(Tree::List(
            endpoints.into_iter().map(Tree::map).collect(),
        ))),
    }
}

/// What all targets of one backend have in common.
fn common(of: &Ref, manner: &Manner) -> Vec<(String, Tree)> {
    let target = &of.target;
    let trust = target.upstream.trust.as_ref();
    let is_at_root =
        matches!(&target.path, Path::Is(path) if path.is_empty()) && target.dialect.is_some();
    let members = [
        (
            "serves",
            target.dialect.is_none().then(|| Tree::text("http")),
        ),
        ("at_root", is_at_root.then(|| Tree::Plain("true".into()))),
        ("dialect", target.dialect.map(Tree::text)),
        (
            "headers",
            of.headers.clone().or_else(|| target.headers.clone()),
        ),
        ("query", query(&target.path)),
        ("ca", trust.and_then(|trust| trust.ca.clone())),
        ("alt_names", trust.and_then(|trust| trust.alt_names.clone())),
        ("tls_name", target.upstream.tls_name()),
        (
            "local",
            target
                .upstream
                .is_elsewhere
                .then(|| Tree::Plain("false".into())),
        ),
        (
            "client_certificate",
            trust.and_then(|trust| trust.client_certificate.clone()),
        ),
        (
            "protocol",
            target.upstream.is_http2.then(|| Tree::text("http2")),
        ),
        ("proxy", manner.proxy.clone()),
        ("timeouts", manner.timeouts.clone()),
        ("ejection", manner.ejection.clone()),
    ];
    let there = members
        .into_iter()
        .filter_map(|(name, tree)| Some((name.to_owned(), tree?)));
    there.collect()
}

/// The model that a target overrides, where its route does not say it for all.
fn model_of<'r>(of: &'r Ref, manner: &Manner) -> Option<&'r str> {
    of.model.as_deref().filter(|_| !manner.is_model_said)
}

/// A name that is not taken: as it is, or with a number.
pub(crate) fn free(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let end = name.floor_char_boundary(60);
    let base = name.get(..end).unwrap_or(name);
    let numbered = (2_u32..).map(|n| format!("{base}-{n}"));
    std::iter::once(base.to_owned())
        .chain(numbered)
        .find(|name| !is_taken(name))
        .unwrap_or_else(|| base.to_owned())
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn query(path: &Path) -> Option<Tree> {
    let Path::Deployment(version) = path else {
        return None;
    };
    Some(Tree::map([("api-version", Some(Tree::text(version)))]))
}

fn path(path: &Path, of: &Ref, manner: &Manner, findings: &mut Findings) -> Option<String> {
    match (path, &of.model, manner.models.as_slice()) {
        (Path::Is(path), ..) => Some(path.clone()),
        // It is known by now.
        (Path::Project, ..) => None,
        (Path::Deployment(_), Some(model), _) => Some(format!("/openai/deployments/{model}")),
        (Path::Deployment(_), None, [model]) => Some(format!("/openai/deployments/{model}")),
        (Path::Deployment(_), None, _) => {
            findings.fault(
                &of.spot,
                "goes to Azure, and the name of its deployment is not known",
                "write modelNameOverride, or match one model exactly",
            );
            None
        }
    }
}

/// What the backend calls the models that arrive, where the route does not say it.
fn model_names(of: &Ref, manner: &Manner, findings: &mut Findings) -> Option<Tree> {
    let model = model_of(of, manner)?;
    if manner.models.is_empty() {
        let says = "overrides the model of calls for any model, and another target does not";
        findings.fault(
            &of.spot,
            says,
            "match the models exactly, or say the same modelNameOverride of all targets",
        );
        return None;
    }
    let other = manner.models.iter().filter(|name| name.as_str() != model);
    let names: Vec<(String, Tree)> = other
        .map(|name| (name.clone(), Tree::text(model)))
        .collect();
    (!names.is_empty()).then(|| Tree::Map(names).of(&of.spot))
}
