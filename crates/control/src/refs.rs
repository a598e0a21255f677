//! Targets as rules name them, each with its share of the rule's calls.
//!
//! Not here: what a target is (`service`), what several of a rule are together (`lower::spread`).

use crate::backend::Upstream;
use crate::cluster::Cluster;
use crate::edits;
use crate::fields::{Fields, Item};
use crate::findings::{Findings, Spot};
use crate::object::{AI, CORE, ENVOY, INFERENCE, Object};
use crate::reference::Reference;
use crate::service::{Services, headers};
use crate::target::Target;
use crate::tree::Tree;

/// What a rule says of one of its targets.
#[derive(Debug, Clone)]
pub(crate) struct Ref {
    pub(crate) spot: Spot,
    pub(crate) target: Target,
    pub(crate) weight: u64,
    pub(crate) priority: u64,
    pub(crate) model: Option<String>,
    pub(crate) headers: Option<Tree>,
    /// What becomes of header fields of calls of plain HTTP to it.
    pub(crate) edits: Option<Tree>,
    /// Its share of calls is refused: what it says cannot be honoured.
    pub(crate) is_closed: bool,
    /// What it is to calls to models, of a rule of plain HTTP, where it serves them too.
    pub(crate) for_models: Option<Box<Target>>,
}

impl Ref {
    /// One whose calls are refused, with the share that it says.
    pub(crate) fn closed(item: &Item<'_>) -> Self {
        let none = &mut Findings::default();
        let mut of = item.fields(none);
        let (weight, _) = shares(&mut of, none);
        let kind = of.text("kind", none);
        let is_pool = kind.is_some_and(|said| said.value == "InferencePool");
        let target = Target::plain("closed".to_owned(), item.spot.clone(), Upstream::nowhere());
        let for_models = is_pool.then(|| {
            Box::new(Target {
                dialect: Some("openai"),
                ..target.clone()
            })
        });
        Self {
            spot: item.spot.clone(),
            target,
            weight,
            priority: 0,
            model: None,
            headers: None,
            edits: None,
            is_closed: true,
            for_models,
        }
    }

    /// Whether calls can go there.
    pub(crate) fn has_address(&self) -> bool {
        !self.target.upstream.endpoints.is_empty()
    }

    /// Its credential, in the header that its dialect has unless it says another.
    pub(crate) fn credential(&self) -> Option<Tree> {
        let usual = match self.target.dialect {
            Some("anthropic") => "x-api-key",
            _ => "authorization",
        };
        self.target
            .credential
            .as_ref()
            .map(|credential| credential.tree(usual))
    }

    /// A target of a rule for models.
    pub(crate) fn of_model(
        cluster: &Cluster<'_>,
        route: &Object<'_>,
        item: &Item<'_>,
        services: &Services,
        findings: &mut Findings,
    ) -> Option<Self> {
        let mut of = item.fields(findings);
        let model = of.text("modelNameOverride", findings);
        let headers = of
            .take("headerMutation")
            .and_then(|item| headers(&item, findings));
        of.refuse(
            &[(
                "bodyMutation",
                "bodies are edited in what a route says of models, and in nothing else",
            )],
            findings,
        );
        let (weight, priority) = shares(&mut of, findings);
        let named = Reference::take(
            &mut of,
            (AI, "AIServiceBackend"),
            &route.namespace,
            findings,
        );
        of.end(findings);
        let kinds = [(AI, "AIServiceBackend"), (INFERENCE, "InferencePool")];
        let named = named.filter(|named| named.is_one_of(&kinds, findings))?;
        cluster.resolve(route, &named, findings)?;
        let of_kind = match named.kind.as_str() {
            "InferencePool" => &services.pools,
            _ => &services.targets,
        };
        let target = of_kind.get(&(named.namespace, named.name)).cloned()?;
        Some(Self {
            spot: item.spot.clone(),
            priority: priority.unwrap_or_else(|| u64::from(target.is_fallback())),
            target,
            weight,
            model: model.map(|said| said.value),
            headers,
            edits: None,
            is_closed: false,
            for_models: None,
        })
    }

    /// A target of a rule for plain HTTP.
    pub(crate) fn of_plain(
        cluster: &Cluster<'_>,
        route: &Object<'_>,
        item: &Item<'_>,
        services: &Services,
        home: &str,
        findings: &mut Findings,
    ) -> Option<Self> {
        let mut of = item.fields(findings);
        let port = of.number("port", findings);
        let mut edits = None;
        for item in of.list("filters", findings) {
            let mut of = item.fields(findings);
            let kind = of.needed_text("type", findings);
            let inside = of.take("requestHeaderModifier");
            match (kind, inside) {
                (Some(kind), Some(inside)) if kind.value == "RequestHeaderModifier" => {
                    edits = Some(edits::edits(&inside, findings));
                }
                _ => findings.fault(
                    &item.spot,
                    "is a filter that is not served here",
                    "write RequestHeaderModifier, or the filter at the rule",
                ),
            }
            of.end(findings);
        }
        let (weight, _) = shares(&mut of, findings);
        let named = Reference::take(&mut of, (CORE, "Service"), &route.namespace, findings);
        of.end(findings);
        let kinds = [
            (CORE, "Service"),
            (ENVOY, "Backend"),
            (INFERENCE, "InferencePool"),
        ];
        let named = named.filter(|named| named.is_one_of(&kinds, findings))?;
        let port = port.map(|port| port.value);
        let is_pool = named.kind == "InferencePool";
        let id = (named.namespace.clone(), named.name.clone());
        let for_models = services.pools.get(&id).filter(|_| is_pool);
        let for_models = for_models.cloned().map(Box::new);
        let target = services.plain(cluster, route, &named, port, home, findings)?;
        Some(Self {
            spot: item.spot.clone(),
            priority: u64::from(target.is_fallback()),
            target,
            weight,
            model: None,
            headers: None,
            edits,
            is_closed: false,
            for_models,
        })
    }
}

fn shares(of: &mut Fields<'_>, findings: &mut Findings) -> (u64, Option<u64>) {
    let weight = of.number("weight", findings).map_or(1, |said| said.value);
    let priority = of.number("priority", findings).map(|said| said.value);
    (weight, priority)
}
