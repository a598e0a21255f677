//! BackendTrafficPolicy: limits, retries, times, and when an address is left alone.
//!
//! Not here: which of our routes a limit becomes part of (`lower`).

use crate::cluster::Cluster;
use crate::fields::{Fields, Item};
use crate::findings::{Broken, Findings, Spot};
use crate::gateway::{Door, is_here, targets};
use crate::load_balancer;
use crate::matching::HeaderMatch;
use crate::object::{Age, Object};
use crate::quantity;
use crate::reference::Reference;
use crate::tree::Tree;

/// A policy as it is written.
pub(crate) struct Traffic {
    pub(crate) spot: Spot,
    pub(crate) targets: Vec<Reference>,
    pub(crate) age: Age,
    pub(crate) namespace: String,
    pub(crate) limits: Vec<LimitRule>,
    pub(crate) retries: Option<Tree>,
    pub(crate) ejection: Option<Tree>,
    pub(crate) connect: Option<Tree>,
    pub(crate) first_byte: Option<(u64, Spot)>,
    /// How several addresses share calls.
    pub(crate) balancing: Option<Tree>,
}

/// A limit, and whose calls it counts.
pub(crate) struct LimitRule {
    pub(crate) spot: Spot,
    /// All of them must fit.
    pub(crate) headers: Vec<HeaderMatch>,
    pub(crate) amount: u64,
    pub(crate) per: &'static str,
    /// The key of what is counted; calls where there is none.
    pub(crate) key: Option<(String, Spot)>,
    pub(crate) is_shared: bool,
}

/// All policies, whose targets are all there.
pub(crate) fn policies(
    cluster: &Cluster<'_>,
    door: &Door<'_, '_>,
    findings: &mut Findings,
) -> Vec<Traffic> {
    let mut found: Vec<Traffic> = Vec::new();
    // The older of two that cannot both hold stays in force.
    let mut policies: Vec<&Object<'_>> = cluster.of_kind("BackendTrafficPolicy").collect();
    policies.sort_by_cached_key(|policy| policy.age());
    for policy in policies {
        let traffic = Traffic::of(cluster, door, policy, findings);
        for target in &traffic.targets {
            if !is_here(cluster, door, target, findings) {
                continue;
            }
            let same = |other: &&Traffic| {
                other.targets.iter().any(|t| {
                    (&t.namespace, &t.name) == (&target.namespace, &target.name)
                        && (t.kind == "Gateway") == (target.kind == "Gateway")
                })
            };
            if found.iter().any(|other| same(&other)) {
                let says = "has a policy of this kind already";
                findings.break_off(Broken::Conflict, &target.spot, says, "write both into one");
            }
        }
        found.push(traffic);
    }
    found
}

impl Traffic {
    /// Whether it is for a route by name.
    pub(crate) fn is_for(&self, route: &Object<'_>) -> bool {
        self.targets.iter().any(|target| target.is_to_route(route))
    }

    pub(crate) fn is_for_all(&self) -> bool {
        self.targets.iter().any(|target| target.kind == "Gateway")
    }

    fn of(
        cluster: &Cluster<'_>,
        door: &Door<'_, '_>,
        policy: &Object<'_>,
        findings: &mut Findings,
    ) -> Self {
        let mut spec = policy.spec(findings);
        let is_judged = |target: &Reference| door.judges(cluster, target);
        let mut traffic = Self {
            spot: policy.spot.clone(),
            targets: targets(&mut spec, policy, is_judged, findings),
            age: policy.age(),
            namespace: policy.namespace.clone(),
            limits: Vec::new(),
            retries: None,
            ejection: None,
            connect: None,
            first_byte: None,
            balancing: None,
        };
        if spec.has_only(&["targetRef", "targetRefs", "targetSelectors"]) {
            findings.warn(&policy.spot, "says nothing", "");
        }
        if let Some(item) = spec.take("rateLimit") {
            traffic.limits(&item, findings);
        }
        if let Some(item) = spec.take("retry") {
            traffic.retry(&item, findings);
        }
        if let Some(item) = spec.take("healthCheck") {
            traffic.health(&item, findings);
        }
        if let Some(item) = spec.take("timeout") {
            traffic.times(&item, findings);
        }
        let balancer = spec.take("loadBalancer");
        traffic.balancing = balancer.and_then(|item| load_balancer::of(&item, findings));
        spec.pass_over(
            &[
                ("connection", "buffers of connections are the gate's own"),
                ("tcpKeepalive", "the gate's own is kept"),
                ("http2", "the gate's own bounds of HTTP/2 hold"),
                ("dns", "names are looked up again every five seconds"),
                ("telemetry", "every call is measured"),
                ("useClientProtocol", "the protocol is the backend's"),
                ("httpUpgrade", "WebSockets of plain HTTP pass"),
                ("compression", "answers pass as they come"),
                ("compressor", "answers pass as they come"),
            ],
            findings,
        );
        spec.refuse(
            &[
                ("mergeType", "write what holds in one policy"),
                ("proxyProtocol", "upstreams are told nothing of the client"),
                ("faultInjection", "faults are made by the simulated engine"),
                (
                    "circuitBreaker",
                    "write pool: { connections } of a backend in a file of ours",
                ),
                ("responseOverride", "answers pass as they come"),
                (
                    "requestBuffer",
                    "write bufferLimit in a ClientTrafficPolicy",
                ),
                ("admissionControl", "write limits"),
                ("bandwidthLimit", "write limits"),
            ],
            findings,
        );
        spec.end(findings);
        traffic
    }

    fn limits(&mut self, item: &Item<'_>, findings: &mut Findings) {
        let mut of = item.fields(findings);
        // Which of the two is there says the same.
        of.skip(&["type"]);
        for kind in ["global", "local"] {
            let Some(item) = of.take(kind) else { continue };
            let mut inside = item.fields(findings);
            let is_shared = inside
                .flag("shared", findings)
                .is_some_and(|said| said.value);
            for item in inside.list("rules", findings) {
                self.limits
                    .extend(LimitRule::of(&item, is_shared, findings));
            }
            inside.end(findings);
        }
        of.end(findings);
        if self.limits.is_empty() {
            findings.warn(&item.spot, "limits nothing: it has no rule", "");
        }
    }

    fn retry(&mut self, item: &Item<'_>, findings: &mut Findings) {
        let mut of = item.fields(findings);
        let number = of.number("numRetries", findings);
        of.pass_over(
            &[(
                "numAttemptsPerPriority",
                "a try goes to an address that was not tried",
            )],
            findings,
        );
        let mut statuses = None;
        if let Some(item) = of.take("retryOn") {
            let found = statuses_of(&item, findings);
            if found.is_empty() {
                let says = "names no status after which a call is tried again, and connections that fail are tried again in any case";
                findings.fault(&item.spot, says, "name statuses in httpStatusCodes");
            }
            statuses =
                Some(Tree::List(found.into_iter().map(Tree::number).collect()).of(&item.spot));
        }
        if let Some(item) = of.take("perRetry") {
            let mut inside = item.fields(findings);
            inside.pass_over(&[("backOff", "another address is tried at once, and one that asks for time is left alone so long")], findings);
            if let Some(item) = inside.take("timeout") {
                self.first_byte = quantity::millis(&item, findings)
                    .filter(|ms| *ms > 0)
                    .map(|ms| (ms, item.spot));
            }
            inside.end(findings);
        }
        of.end(findings);
        let mut tries = number
            .as_ref()
            .map_or(2, |said| said.value)
            .saturating_add(1);
        if let Some(said) = number.as_ref().filter(|_| tries > 8) {
            findings.warn(
                &said.spot,
                "is 7 here: a call is tried eight times at most",
                "",
            );
            tries = 8;
        }
        let spot = number.map_or_else(|| item.spot.clone(), |said| said.spot);
        let members = [
            ("attempts", Some(Tree::number(tries).of(&spot))),
            ("statuses", statuses.filter(|_| tries > 1)),
        ];
        self.retries = Some(Tree::map(members).of(&item.spot));
    }

    fn health(&mut self, item: &Item<'_>, findings: &mut Findings) {
        let mut of = item.fields(findings);
        of.pass_over(
            &[
                ("active", "an address is known by its calls"),
                ("panicThreshold", "where all are left alone, one is tried"),
            ],
            findings,
        );
        if let Some(item) = of.take("passive") {
            let mut inside = item.fields(findings);
            let failures = inside.number("consecutive5XxErrors", findings);
            let time = inside.take("baseEjectionTime");
            let time = time.and_then(|item| {
                quantity::millis(&item, findings).map(|ms| quantity::span(ms).of(&item.spot))
            });
            let together = "failures of every kind count together";
            inside.pass_over(
                &[
                    ("consecutiveGatewayErrors", together),
                    ("consecutiveLocalOriginFailures", together),
                    ("splitExternalLocalOriginErrors", together),
                    ("interval", "an address is left alone at its last failure"),
                    (
                        "maxEjectionPercent",
                        "where all are left alone, one is tried",
                    ),
                    ("failurePercentageThreshold", "failures in a row count"),
                    (
                        "alwaysEjectOneEndpoint",
                        "where all are left alone, one is tried",
                    ),
                ],
                findings,
            );
            inside.end(findings);
            let failures = failures
                .filter(|said| said.value > 0)
                .map(|said| Tree::number(said.value).of(&said.spot));
            let is_said = failures.is_some() || time.is_some();
            let ejection = Tree::map([("failures", failures), ("time", time)]).of(&item.spot);
            self.ejection = is_said.then_some(ejection);
        }
        of.end(findings);
    }

    fn times(&mut self, item: &Item<'_>, findings: &mut Findings) {
        let mut of = item.fields(findings);
        if let Some(item) = of.take("tcp") {
            let mut inside = item.fields(findings);
            let connect = inside.take("connectTimeout");
            self.connect = connect.and_then(|item| {
                quantity::millis(&item, findings).map(|ms| quantity::span(ms).of(&item.spot))
            });
            inside.end(findings);
        }
        if let Some(item) = of.take("http") {
            let mut inside = item.fields(findings);
            if let Some(item) = inside.take("requestTimeout") {
                findings.warn(
                    &item.spot,
                    "bounds the time to the head of an answer here; one that has begun is not cut",
                    "",
                );
                let found = quantity::millis(&item, findings).filter(|ms| *ms > 0);
                self.first_byte = self.first_byte.take().or(found.map(|ms| (ms, item.spot)));
            }
            let kept = "connections are kept as the gate's pool says";
            inside.pass_over(
                &[
                    ("connectionIdleTimeout", kept),
                    ("maxConnectionDuration", kept),
                    ("maxStreamDuration", "a generation may be long"),
                ],
                findings,
            );
            inside.end(findings);
        }
        of.end(findings);
    }
}

fn statuses_of(item: &Item<'_>, findings: &mut Findings) -> Vec<u64> {
    let mut of = item.fields(findings);
    let mut statuses = Vec::new();
    for item in of.list("httpStatusCodes", findings) {
        statuses.extend(item.number(findings).map(|said| said.value));
    }
    for said in of.texts("triggers", findings) {
        match said.value.as_str() {
            "5xx" => statuses.extend(500..=599),
            "gateway-error" => statuses.extend([502, 503, 504]),
            "retriable-4xx" => statuses.push(409),
            // Those are tried again in any case.
            "connect-failure"
            | "reset"
            | "reset-before-request"
            | "refused-stream"
            | "retriable-status-codes" => {}
            _ => findings.fault(
                &said.spot,
                "is not honoured here",
                "write statuses in httpStatusCodes",
            ),
        }
    }
    of.end(findings);
    statuses.sort_unstable();
    statuses.dedup();
    statuses
}

impl LimitRule {
    fn of(item: &Item<'_>, is_shared: bool, findings: &mut Findings) -> Option<Self> {
        let mut of = item.fields(findings);
        let is_shared = is_shared || of.flag("shared", findings).is_some_and(|said| said.value);
        of.refuse(&[("shadowMode", "a limit is in force")], findings);
        let mut headers = Vec::new();
        for item in of.list("clientSelectors", findings) {
            let mut inside = item.fields(findings);
            headers.extend(HeaderMatch::all(&mut inside, findings));
            inside.refuse(
                &[
                    ("sourceCIDR", "limits go by who calls, not from where"),
                    ("path", "a limit is of a route"),
                    ("methods", "a limit is of a route"),
                    ("queryParams", "limits go by who calls"),
                ],
                findings,
            );
            inside.end(findings);
        }
        let key = of.take("cost").and_then(|item| cost(&item, findings));
        let limit = of.need("limit", findings);
        of.end(findings);
        let limit = limit?;
        let mut inside = limit.fields(findings);
        let amount = inside
            .need("requests", findings)
            .and_then(|item| item.number(findings));
        let unit = inside.needed_text("unit", findings);
        inside.end(findings);
        let unit = unit?;
        let per = match unit.value.as_str() {
            "Second" => "1s",
            "Minute" => "1m",
            "Hour" => "1h",
            "Day" => "1d",
            _ => {
                findings.fault(&unit.spot, "is no window of a limit", "write Second, Minute, Hour or Day; for longer ones write budgets in a file of ours");
                return None;
            }
        };
        Some(Self {
            spot: item.spot.clone(),
            headers,
            amount: amount?.value,
            per,
            key,
            is_shared,
        })
    }
}

/// The key under which what a limit counts is found; nothing where it counts calls.
fn cost(item: &Item<'_>, findings: &mut Findings) -> Option<(String, Spot)> {
    let mut of = item.fields(findings);
    let request = of.take("request").and_then(|item| {
        of_metadata(&item, findings)
            .ok()
            .map(|found| (found, item.spot))
    });
    let response = of
        .take("response")
        .map(|item| (of_metadata(&item, findings), item.spot));
    of.end(findings);
    match (request, response) {
        (request, Some((Ok(Cost::Key(key)), spot))) => {
            if let Some((Cost::Number(number), spot)) =
                request.filter(|(cost, _)| !matches!(cost, Cost::Number(0)))
            {
                findings.warn(
                    &spot,
                    format!(
                        "is left out: {number} for each call beside its tokens; write number: 0"
                    ),
                    "",
                );
            }
            Some((key, spot))
        }
        (_, Some((Ok(Cost::Number(_)), spot))) => {
            findings.fault(
                &spot,
                "is not honoured here",
                "take what an answer cost from its metadata, or leave it out",
            );
            None
        }
        (Some((Cost::Key(_), spot)), None) => {
            findings.fault(
                &spot,
                "is not honoured here",
                "what a call costs is known from its answer: write it under response",
            );
            None
        }
        (Some((Cost::Number(number), spot)), None) if number != 1 => {
            findings.fault(
                &spot,
                "is not honoured here: a call counts once",
                "write number: 1, or another limit",
            );
            None
        }
        _ => None,
    }
}

enum Cost {
    Number(u64),
    Key(String),
}

fn of_metadata(item: &Item<'_>, findings: &mut Findings) -> Result<Cost, ()> {
    let mut of = item.fields(findings);
    let from = of.needed_text("from", findings);
    let number = of.number("number", findings);
    let metadata = of.take("metadata");
    let mut key = None;
    if let Some(item) = metadata {
        let mut inside: Fields<'_> = item.fields(findings);
        let namespace = inside.needed_text("namespace", findings);
        key = inside.needed_text("key", findings);
        inside.end(findings);
        if let Some(said) = namespace.filter(|said| said.value != "io.envoy.ai_gateway") {
            findings.fault(&said.spot, "is not known here", "write io.envoy.ai_gateway");
        }
    }
    of.end(findings);
    match (from.as_ref().map(|said| said.value.as_str()), number, key) {
        (Some("Number"), number, _) => Ok(Cost::Number(number.map_or(1, |said| said.value))),
        (Some("Metadata"), _, Some(key)) => Ok(Cost::Key(key.value)),
        _ => {
            findings.fault(
                &item.spot,
                "says no cost",
                "write from: Metadata with a key, or from: Number with a number",
            );
            Err(())
        }
    }
}
