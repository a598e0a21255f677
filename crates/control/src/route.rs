//! AIGatewayRoute: rules by model and caller.
//!
//! Not here: what they become together (`lower`).

use crate::cluster::Cluster;
use crate::fields::{Fields, Item, Said};
use crate::filters::Filters;
use crate::findings::{Findings, Spot};
use crate::gateway::Door;
use crate::matching::HeaderMatch;
use crate::mode::Shut;
use crate::object::Object;
use crate::quantity;
use crate::refs::Ref;
use crate::service::Services;

/// A route whose rules go to models.
pub(crate) struct ModelRoute<'c, 'n> {
    pub(crate) object: &'c Object<'n>,
    pub(crate) rules: Vec<Rule<ModelMatch>>,
    /// What is counted under which key.
    pub(crate) costs: Vec<(String, Counted)>,
    pub(crate) hostnames: Vec<Said<String>>,
    /// The listeners that it is attached to.
    pub(crate) listeners: Vec<String>,
}

/// What a cost counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    /// Tokens of prompt and completion together.
    AllTokens,
    /// Something that limits of ours do not count.
    Other,
}

/// A rule of a route, and what it takes.
pub(crate) struct Rule<M> {
    pub(crate) spot: Spot,
    pub(crate) name: Option<String>,
    pub(crate) refs: Vec<Ref>,
    pub(crate) matches: Vec<M>,
    pub(crate) times: Times,
    /// What becomes of its calls on their way.
    pub(crate) filters: Filters,
    /// Its calls are refused: what it says cannot be honoured.
    pub(crate) is_closed: bool,
}

/// A match of a rule for models.
pub(crate) type ModelMatch = (Spot, Vec<HeaderMatch>);

/// How long a call may take, in milliseconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Times {
    pub(crate) first_byte: Option<(u64, Spot)>,
    pub(crate) idle: Option<(u64, Spot)>,
}

impl<'c, 'n> ModelRoute<'c, 'n> {
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
        let mut quiet = Findings::default();
        let findings = if shut.is_whole() {
            &mut quiet
        } else {
            findings
        };
        let mut spec = object.spec(findings);
        let hostnames = spec.texts("hostnames", findings);
        let held = door.holds(cluster, object, &mut spec, &hostnames, findings);
        spec.pass_over(
            &[(
                "schema",
                "every route takes calls of OpenAI's and of Anthropic's API",
            )],
            findings,
        );
        let costs = spec.list("llmRequestCosts", findings);
        let costs = costs
            .iter()
            .filter_map(|item| cost(item, findings))
            .collect();
        let rules = spec.list("rules", findings);
        if rules.is_empty() {
            findings.fault(&object.spot, "has no rule", "write spec.rules");
        }
        let rule = |(index, item): (usize, &Item<'n>)| {
            let mut quiet = Findings::default();
            let is_closed = shut.is_rule(index);
            let findings = if is_closed {
                &mut quiet
            } else {
                &mut *findings
            };
            let rule = Rule::of(cluster, object, item, services, findings);
            Rule { is_closed, ..rule }
        };
        let rules: Vec<Rule<ModelMatch>> = rules.iter().enumerate().map(rule).collect();
        spec.end(findings);
        are_taken(object, &rules, findings);
        (!held.is_empty()).then_some(Self {
            object,
            rules,
            costs,
            hostnames,
            listeners: held,
        })
    }
}

impl ModelRoute<'_, '_> {
    /// Whether some of its calls are not refused.
    pub(crate) fn is_open(&self) -> bool {
        self.rules.iter().any(|rule| !rule.is_closed)
    }
}

/// Most rules of a route.
const RULES_MAX: usize = 15;
/// The name of the rule that Envoy AI Gateway adds.
const RESERVED: &str = "route-not-found";

/// Notes what a cluster does not take of rules, so that files can be applied to one.
fn are_taken(object: &Object<'_>, rules: &[Rule<ModelMatch>], findings: &mut Findings) {
    if rules.len() > RULES_MAX {
        let says = format!(
            "has {} rules, and a route has {RULES_MAX} at most",
            rules.len()
        );
        findings.fault(&object.spot, says, "write the rest into a second one");
    }
    for (index, rule) in rules.iter().enumerate().filter(|(_, rule)| !rule.is_closed) {
        let Some(name) = rule.name.as_deref() else {
            continue;
        };
        let mut before = rules.iter().take(index);
        if name == RESERVED {
            let says = format!("is called {RESERVED}, which is the rule that is there already");
            findings.fault(&rule.spot, says, "give it another name");
        } else if before.any(|other| other.name.as_deref() == Some(name)) {
            let says = format!("is called {name}, as an earlier rule is");
            findings.fault(&rule.spot, says, "give it another name");
        }
    }
}

impl<M> Rule<M> {
    /// What rules of all kinds of routes say; what else its kind says is left in what comes beside it.
    pub(crate) fn read<'n>(
        item: &Item<'n>,
        needs_target: bool,
        findings: &mut Findings,
        target: impl Fn(usize, &Item<'n>, &mut Findings) -> Option<Ref>,
        one: impl Fn(&Item<'n>, &mut Findings) -> Option<M>,
        everything: impl Fn(Spot) -> M,
    ) -> (Self, Fields<'n>) {
        let mut of = item.fields(findings);
        let name = of.text("name", findings).map(|said| said.value);
        let refs = of.list("backendRefs", findings);
        if refs.is_empty() && needs_target {
            let hint = "name what it goes to in backendRefs";
            findings.fault(&item.spot, "goes nowhere", hint);
        }
        let refs = refs
            .iter()
            .enumerate()
            .filter_map(|(at, item)| target(at, item, findings))
            .collect();
        let matches = of.list("matches", findings);
        let takes_everything = matches.is_empty();
        // One with a fault takes nothing: without what is wrong in it, it would take more.
        let sound = |item: &Item<'n>| {
            let before = findings.faults.len();
            one(item, findings).filter(|_| findings.faults.len() == before)
        };
        let mut matches: Vec<M> = matches.iter().filter_map(sound).collect();
        if takes_everything {
            matches.push(everything(item.spot.clone()));
        }
        let times = times(&mut of, findings);
        let rule = Self {
            spot: item.spot.clone(),
            name,
            refs,
            matches,
            times,
            filters: Filters::default(),
            is_closed: false,
        };
        (rule, of)
    }
}

impl Rule<ModelMatch> {
    fn of(
        cluster: &Cluster<'_>,
        route: &Object<'_>,
        item: &Item<'_>,
        services: &Services,
        findings: &mut Findings,
    ) -> Self {
        pools_are_alone(item, findings);
        let (mut rule, mut of) = Self::read(
            item,
            true,
            findings,
            |_, item, findings| Ref::of_model(cluster, route, item, services, findings),
            |item, findings| {
                let mut inside = item.fields(findings);
                let headers = HeaderMatch::all(&mut inside, findings);
                inside.end(findings);
                Some((item.spot.clone(), headers))
            },
            |spot| (spot, Vec::new()),
        );
        if let Some(item) = of.take("streamIdleTimeout") {
            rule.times.idle = quantity::millis(&item, findings).map(|ms| (ms, item.spot));
        }
        let listed = "a list of models is what backends say";
        let owner = of.text("modelsOwnedBy", findings);
        // The API server says so of every rule that says nothing of it.
        if let Some(said) = owner.filter(|said| said.value != "Envoy AI Gateway") {
            findings.warn(&said.spot, format!("is left out: {listed}"), "");
        }
        of.pass_over(
            &[
                ("modelsCreatedAt", listed),
                ("excludeFromModelsEndpoint", listed),
            ],
            findings,
        );
        of.end(findings);
        rule
    }
}

/// Notes pools beside other targets: no cluster takes a rule for models with both, nor with several pools.
fn pools_are_alone(item: &Item<'_>, findings: &mut Findings) {
    let quiet = &mut Findings::default();
    let refs = item.fields(quiet).list("backendRefs", quiet);
    let is_pool = |item: &&Item<'_>| {
        let quiet = &mut Findings::default();
        let kind = item.fields(quiet).text("kind", quiet);
        kind.is_some_and(|said| said.value == "InferencePool")
    };
    let pools = refs.iter().filter(is_pool).count();
    if pools > 0 && refs.len() > 1 {
        let says = match pools == refs.len() {
            true => "goes to several InferencePools, and a rule for models goes to one",
            false => {
                "goes to an InferencePool and to an AIServiceBackend, and a rule for models goes to one kind"
            }
        };
        findings.fault(&item.spot, says, "write a rule for each");
    }
}

/// What a rule says of times, as the Gateway API has them.
fn times(of: &mut Fields<'_>, findings: &mut Findings) -> Times {
    let mut times = Times::default();
    let Some(item) = of.take("timeouts") else {
        return times;
    };
    let mut inside = item.fields(findings);
    let whole = inside.take("request");
    let one = inside.take("backendRequest");
    inside.end(findings);
    if let Some(item) = &whole {
        let says = "bounds the time to the head of an answer here; one that has begun is not cut, as generations may be long";
        findings.warn(&item.spot, says, "");
    }
    // Of a call with retries the whole is longer than one try.
    if let Some(item) = one.or(whole) {
        let found = quantity::millis(&item, findings).filter(|ms| *ms > 0);
        times.first_byte = found.map(|ms| (ms, item.spot));
    }
    times
}

/// Whether an expression in CEL is the sum of all tokens.
pub(crate) fn is_all_tokens(cel: &str) -> bool {
    let text: String = cel.split_whitespace().collect();
    let sums = [
        "total_tokens",
        "input_tokens+output_tokens",
        "output_tokens+input_tokens",
    ];
    sums.contains(&text.as_str())
}

/// What a cost counts, and under which key.
pub(crate) fn cost(item: &Item<'_>, findings: &mut Findings) -> Option<(String, Counted)> {
    let mut of = item.fields(findings);
    let key = of.needed_text("metadataKey", findings);
    let kind = of.needed_text("type", findings);
    let cel = of.text("cel", findings);
    of.end(findings);
    let kind = kind?;
    let counted = match (kind.value.as_str(), cel) {
        ("TotalToken", _) => Counted::AllTokens,
        ("CEL", Some(cel)) => {
            if is_all_tokens(&cel.value) {
                Counted::AllTokens
            } else {
                Counted::Other
            }
        }
        (
            "InputToken"
            | "OutputToken"
            | "CachedInputToken"
            | "CacheCreationInputToken"
            | "ReasoningToken",
            _,
        ) => Counted::Other,
        _ => {
            findings.fault(
                &kind.spot,
                "is no kind of cost",
                "write TotalToken, InputToken, OutputToken or the like",
            );
            return None;
        }
    };
    Some((key?.value, counted))
}
