//! What is written in one namespace closes nothing of another, and nothing of the Gateway's.

use serde_json::{Value, json};

use super::*;

/// The Gateway's own namespace stands between the two others, by name.
const HOME: &str = "gateways";
const TEAMS: [&str; 2] = ["apps", "zoo"];
const OLD: &str = "2026-01-01T00:00:00Z";
const NEW: &str = "2026-02-01T00:00:00Z";

fn made(version: &str, kind: &str, place: (&str, &str), created: &str, spec: Value) -> Value {
    let (namespace, name) = place;
    let metadata = json!({
        "name": name, "namespace": namespace, "generation": 1, "creationTimestamp": created,
    });
    json!({ "apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec })
}

fn door() -> Value {
    json!([{ "group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "door", "namespace": HOME }])
}

/// Where calls go: `web` of plain HTTP, `engine` to models, `tools` to tools.
fn backends(namespace: &str) -> [Value; 3] {
    [
        ("web", "10.0.0.1"),
        ("engine", "10.0.0.2"),
        ("tools", "10.0.0.3"),
    ]
    .map(|(name, ip)| {
        let at = json!([{ "ip": { "address": ip, "port": 80 } }]);
        let spec = json!({ "type": "Endpoints", "endpoints": at });
        made(ENVOY_GROUP, "Backend", (namespace, name), OLD, spec)
    })
}

/// A route of plain HTTP, below the name of its namespace.
fn web(namespace: &str, created: &str) -> Value {
    let path = json!({ "type": "PathPrefix", "value": format!("/{namespace}") });
    let to = json!([{ "group": "gateway.envoyproxy.io", "kind": "Backend", "name": "web" }]);
    let rule = json!({ "matches": [{ "path": path }], "backendRefs": to });
    let spec = json!({ "parentRefs": door(), "rules": [rule] });
    made(
        GATEWAY_GROUP,
        "HTTPRoute",
        (namespace, "web"),
        created,
        spec,
    )
}

/// A route to a model that is called as its namespace is, for calls with these headers.
fn models(namespace: &str, created: &str, headers: &[(&str, &str)]) -> [Value; 2] {
    let header = |(name, value): &(&str, &str)| json!({ "name": name, "value": value });
    let own = [("x-ai-eg-model", namespace)];
    let headers: Vec<Value> = own.iter().chain(headers).map(header).collect();
    let to = json!([{ "name": "s", "weight": 1 }]);
    let rule = json!({ "matches": [{ "headers": headers }], "backendRefs": to });
    let spec = json!({ "parentRefs": door(), "rules": [rule] });
    let to = json!({ "name": "engine", "kind": "Backend", "group": "gateway.envoyproxy.io" });
    let service = json!({ "schema": { "name": "OpenAI" }, "backendRef": to });
    let place = (namespace, "models");
    [
        made(AI_GROUP, "AIGatewayRoute", place, created, spec),
        made(AI_GROUP, "AIServiceBackend", (namespace, "s"), OLD, service),
    ]
}

fn policy(kind: &str, place: (&str, &str), created: &str, targets: Value, says: &Value) -> Value {
    let mut spec = json!({ "targetRefs": targets });
    let members = spec.as_object_mut().expect("a map");
    members.extend(says.as_object().expect("a map").clone());
    made(ENVOY_GROUP, kind, place, created, spec)
}

fn route_targets() -> Value {
    json!([{ "group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "web" }])
}

fn gate() -> Vec<Value> {
    let listener = json!({
        "name": "http", "protocol": "HTTP", "port": 8080, "allowedRoutes": { "namespaces": { "from": "All" } },
    });
    let spec = json!({
        "gatewayClassName": "ours", "addresses": [{ "value": "127.0.0.1" }], "listeners": [listener],
    });
    let class = json!({
        "apiVersion": GATEWAY_GROUP, "kind": "GatewayClass", "metadata": { "name": "ours" },
        "spec": { "controllerName": "tollgate/gateway" },
    });
    let gateway = made(GATEWAY_GROUP, "Gateway", (HOME, "door"), OLD, spec);
    let mut all = vec![class, gateway];
    all.extend([HOME, "apps", "zoo"].iter().flat_map(|of| backends(of)));
    all
}

/// A gate with a route of plain HTTP in each namespace, and who may call it from a web page.
fn webs() -> Vec<Value> {
    let mut all = gate();
    all.extend([HOME, "apps", "zoo"].map(|namespace| web(namespace, OLD)));
    let targets = targets("Gateway", "door");
    all.push(policy(
        "SecurityPolicy",
        (HOME, "door"),
        OLD,
        targets,
        &cors(),
    ));
    all
}

fn cors() -> Value {
    json!({ "cors": { "allowOrigins": ["https://x.example"] } })
}

fn retry() -> Value {
    json!({ "retry": { "numRetries": 1 } })
}

/// Where calls below each namespace's name go.
fn paths(live: &Live) -> BTreeMap<String, String> {
    let names = ways(live).into_iter();
    let names = names.map(|(path, to)| {
        let path = path.trim_start_matches('/').trim_end_matches("/*");
        let is_open = !to.contains("closed") && to != "?";
        let to = if is_open { "open" } else { "closed" };
        (path.to_owned(), to.to_owned())
    });
    names.collect()
}

/// All namespaces are open but one, of which this is said.
fn all_but(namespace: &str, is: &str) -> BTreeMap<String, String> {
    let all = [HOME, "apps", "zoo"].into_iter();
    let of = |other: &str| if other == namespace { is } else { "open" }.to_owned();
    all.map(|other| (other.to_owned(), of(other))).collect()
}

#[test]
fn a_policy_of_one_namespace_closes_nothing_of_another() {
    let selectors = |kind: &str| {
        let one = json!({ "group": "gateway.networking.k8s.io", "kind": kind, "matchLabels": { "a": "b" } });
        json!({ "targetSelectors": [one], "retry": { "numRetries": 1 } })
    };
    let elsewhere = || {
        let mut targets = route_targets();
        let own = json!({ "group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "own", "sectionName": "http" });
        targets.as_array_mut().expect("a list").push(own);
        targets
    };
    let buffer = json!({ "connection": { "bufferLimit": "1Mi" } });
    let bad = json!({ "faultInjection": {} });
    for team in TEAMS {
        let of = |kind: &str, targets: Value, says: &Value| {
            policy(kind, (team, "mine"), NEW, targets, says)
        };
        let limits = "BackendTrafficPolicy";
        let cases = [
            (
                "labels",
                of(limits, json!([]), &selectors("HTTPRoute")),
                "closed",
            ),
            (
                "labels of Gateways",
                of(limits, json!([]), &selectors("Gateway")),
                "closed",
            ),
            (
                "of another Gateway, too",
                of(limits, elsewhere(), &retry()),
                "open",
            ),
            (
                "of a route, and faulty",
                of(limits, route_targets(), &bad),
                "closed",
            ),
            (
                "of a client's, of a route",
                of("ClientTrafficPolicy", route_targets(), &buffer),
                "closed",
            ),
        ];
        for (what, object, is) in cases {
            let mut all = webs();
            all.push(object);
            assert_eq!(
                paths(&lowered(&all, None)),
                all_but(team, is),
                "{team}: {what}"
            );
        }
    }
    // Labels in the Gateway's own namespace may be the Gateway's.
    let place = (HOME, "mine");
    let own = policy(
        "BackendTrafficPolicy",
        place,
        NEW,
        json!([]),
        &selectors("Gateway"),
    );
    let mut all = webs();
    all.push(own);
    assert!(
        paths(&lowered(&all, None))
            .values()
            .all(|is| is == "closed")
    );
}

/// What is named without its kind may be called as something that is everybody's.
#[test]
fn nothing_of_the_gateways_is_reached_by_the_name_of_another_thing() {
    let log = |path: &str| {
        let sink = json!({ "type": "File", "file": { "path": path } });
        json!({ "telemetry": { "accessLog": { "settings": [{ "sinks": [sink] }] } } })
    };
    for team in TEAMS {
        let mut mine = webs();
        for object in &mut mine {
            if object["kind"] == "HTTPRoute" && object["metadata"]["namespace"] == team {
                object["spec"]["rules"][0]["backendRefs"] = json!([{ "name": "mine", "port": 80 }]);
            }
        }
        mine.extend([
            made(
                AI_GROUP,
                "GatewayConfig",
                (team, "mine"),
                OLD,
                json!({ "later": true }),
            ),
            made(
                ENVOY_GROUP,
                "EnvoyProxy",
                (team, "mine"),
                OLD,
                log("/dev/stdout"),
            ),
            made(
                ENVOY_GROUP,
                "EnvoyProxy",
                (HOME, "own"),
                OLD,
                log("/dev/stdout"),
            ),
        ]);
        let parameters =
            json!({ "group": "gateway.envoyproxy.io", "kind": "EnvoyProxy", "name": "own" });
        mine[1]["spec"]["infrastructure"] = json!({ "parametersRef": parameters });
        assert_eq!(
            paths(&lowered(&mine, None)),
            all_but(team, "closed"),
            "{team}"
        );
    }
}

#[test]
fn of_two_policies_of_who_calls_the_gateways_is_in_force_and_the_other_closes_its_routes() {
    for team in TEAMS {
        for created in ["2025-01-01T00:00:00Z", NEW] {
            let mut all = webs();
            let place = (team, "mine");
            all.push(policy(
                "SecurityPolicy",
                place,
                created,
                route_targets(),
                &cors(),
            ));
            let live = lowered(&all, None);
            assert_eq!(paths(&live), all_but(team, "closed"), "{team} {created}");
            let said = said(&live, "SecurityPolicy", "mine");
            assert!(
                said.contains("a second policy of this kind beside gateways/door"),
                "{said}"
            );
        }
    }
    // A second one for the Gateway may have kept somebody out.
    let mut all = webs();
    let of_door = targets("Gateway", "door");
    all.push(policy(
        "SecurityPolicy",
        (HOME, "second"),
        NEW,
        of_door,
        &cors(),
    ));
    assert!(
        paths(&lowered(&all, None))
            .values()
            .all(|is| is == "closed")
    );
}

#[test]
fn of_two_bounds_of_clients_the_older_is_in_force() {
    let bounds = |name: &str, created: &str, bytes: &str| {
        let says = json!({ "connection": { "bufferLimit": bytes } });
        let of_door = targets("Gateway", "door");
        policy("ClientTrafficPolicy", (HOME, name), created, of_door, &says)
    };
    let mut all = webs();
    all.extend([bounds("a", NEW, "1Mi"), bounds("b", OLD, "2Mi")]);
    let live = lowered(&all, None);
    assert_eq!(paths(&live), all_but("", "open"));
    let document = live.loaded.as_ref().expect("it loads").document.json();
    assert_eq!(document["bounds"]["body"], 2_097_152);
    assert!(said(&live, "ClientTrafficPolicy", "a").contains("is a second policy of this kind"));
}

fn keys(more: &Value) -> [Value; 2] {
    let mut spec = json!({ "credentialRefs": [{ "group": "", "kind": "Secret", "name": "keys" }] });
    let members = spec.as_object_mut().expect("a map");
    members.extend(more.as_object().expect("a map").clone());
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "keys", "namespace": HOME },
        "data": { "alice": "ay1hbGljZS0wMTIzNDU2Nzg5" },
    });
    let says = json!({ "apiKeyAuth": spec });
    let of_door = targets("Gateway", "door");
    [
        policy("SecurityPolicy", (HOME, "door"), NEW, of_door, &says),
        secret,
    ]
}

fn tokens() -> Value {
    let provider = json!({
        "name": "a", "issuer": "https://login.example", "audiences": ["gate"],
        "remoteJWKS": { "uri": "https://login.example/jwks" },
    });
    let says = json!({ "jwt": { "providers": [provider] } });
    policy(
        "SecurityPolicy",
        (HOME, "door"),
        NEW,
        targets("Gateway", "door"),
        &says,
    )
}

/// The header that names callers.
fn header(live: &Live) -> String {
    let loaded = live.loaded.as_ref();
    let loaded = loaded.unwrap_or_else(|faults| panic!("{faults}"));
    let header = loaded.document.json()["identity"]["header"].as_str();
    header.unwrap_or("none").to_owned()
}

#[test]
fn a_sound_route_to_services_closes_no_policy_of_who_calls() {
    let forwarded = json!({ "forwardClientIDHeader": "x-client" });
    for team in TEAMS {
        let mut all = gate();
        all.extend(models(HOME, OLD, &[]));
        all.extend(keys(&forwarded));
        let alone = paths(&lowered(&all, None));
        assert_eq!(alone, pairs(&[(HOME, "open")]));
        all.push(web(team, OLD));
        let live = lowered(&all, None);
        assert_eq!(paths(&live), pairs(&[(HOME, "open"), (team, "closed")]));
        assert_eq!(
            said(&live, "SecurityPolicy", "door"),
            "Accepted true Accepted"
        );
        let route = said(&live, "HTTPRoute", "web");
        assert!(
            route.contains("would have x-client from clients themselves"),
            "{route}"
        );
    }
}

#[test]
fn a_route_by_a_header_that_nobody_proves_closes_no_policy_of_who_calls() {
    for team in TEAMS {
        for proven in [keys(&json!({})).to_vec(), vec![tokens()]] {
            let mut all = gate();
            all.extend(models(HOME, OLD, &[]));
            all.extend(proven);
            assert_eq!(paths(&lowered(&all, None)), pairs(&[(HOME, "open")]));
            all.extend(models(team, NEW, &[("x-team", "z")]));
            let live = lowered(&all, None);
            assert_eq!(paths(&live), pairs(&[(HOME, "open")]), "{team}");
            let policy = said(&live, "SecurityPolicy", "door");
            assert!(policy.starts_with("Accepted true"), "{policy}");
            let why = "goes by x-team, and SecurityPolicy gateways/door, which proves who calls, says nothing of it";
            let told = live.loaded.as_ref().expect("it loads").warnings.iter();
            assert!(
                told.map(|fault| &fault.says).any(|says| says == why),
                "{team}"
            );
        }
    }
}

/// Who says another value than those that are named is refused: so a header of one namespace is not that of all callers where an
/// older route of another takes everybody.
#[test]
fn a_route_by_a_header_refuses_nobody_whom_an_older_one_of_another_namespace_takes() {
    let lang = "x-stainless-lang";
    let by_lang = json!([{ "clientSelectors": [{ "headers": [{ "name": lang, "value": "python" }] }],
        "limit": { "requests": 1, "unit": "Hour" } }]);
    let limits = json!({ "rateLimit": { "type": "Global", "global": { "rules": by_lang } } });
    for team in TEAMS {
        for open in [models(HOME, OLD, &[]).to_vec(), vec![web(HOME, OLD)]] {
            let mut all = gate();
            all.extend(open);
            let mut by_rule = all.clone();
            by_rule.extend(models(team, NEW, &[(lang, "python")]));
            let live = lowered(&by_rule, None);
            assert_eq!(paths(&live), pairs(&[(HOME, "open")]), "{team}");
            assert_eq!(header(&live), "x-tollgate-workload");
            let told = said(&live, "AIGatewayRoute", "models");
            let mut is_told = live.loaded.as_ref().expect("it loads").warnings.iter();
            let why = "would be the header of all callers";
            assert!(is_told.any(|fault| fault.says.contains(why)), "{told}");
            let mut by_limit = all.clone();
            let place = (team, "mine");
            by_limit.extend([
                web(team, NEW),
                policy("BackendTrafficPolicy", place, NEW, route_targets(), &limits),
            ]);
            let live = lowered(&by_limit, None);
            assert_eq!(
                paths(&live),
                pairs(&[(HOME, "open"), (team, "closed")]),
                "{team}"
            );
            assert_eq!(header(&live), "x-tollgate-workload");
            // What says itself who calls is not asked by the header.
            let none = BTreeMap::new();
            let own = "identity: { header: x-own, default: python, trust: anyone }\n";
            let file = Path::new("own.yaml");
            let choice = Choice {
                own: Some(Input { file, text: own }),
                ..choice(&none)
            };
            let live = lowered_as(&by_rule, &choice);
            assert_eq!(
                paths(&live).get(team).map(String::as_str),
                Some("open"),
                "{team}"
            );
        }
        // The older one has it, and so has a policy for the Gateway.
        let mut all = gate();
        all.extend(models(HOME, NEW, &[]));
        all.extend(models(team, OLD, &[(lang, "python")]));
        assert_eq!(header(&lowered(&all, None)), lang);
        let mut all = webs();
        let of_door = targets("Gateway", "door");
        all.push(policy(
            "BackendTrafficPolicy",
            (HOME, "limits"),
            NEW,
            of_door,
            &limits,
        ));
        let live = lowered(&all, None);
        assert_eq!(
            (header(&live), paths(&live)),
            (lang.to_owned(), all_but("", "open"))
        );
    }
}

#[test]
fn a_route_of_plain_http_that_takes_everybody_is_told_whom_it_does_not_take() {
    let mut all = gate();
    all.extend(models(HOME, OLD, &[("x-team", "blue")]));
    all.push(web(HOME, OLD));
    let live = lowered(&all, None);
    let said = said(&live, "HTTPRoute", "web");
    let why = "takes calls of everybody; a call whose x-team says another value";
    assert!(said.contains(why), "{said}");
}

#[test]
fn a_header_that_is_refused_names_nobody_whom_a_limit_of_the_gateway_counts() {
    let calls = json!({ "limit": { "requests": 1, "unit": "Hour" } });
    let limits = json!({ "rateLimit": { "type": "Global", "global": { "rules": [calls] } } });
    for team in TEAMS {
        for name in ["x-stainless-lang", "user-agent"] {
            let mut all = gate();
            all.extend(models(HOME, OLD, &[]));
            let of_door = targets("Gateway", "door");
            let place = (HOME, "limits");
            all.push(policy("BackendTrafficPolicy", place, NEW, of_door, &limits));
            all.extend(models(team, NEW, &[(name, "python")]));
            let live = lowered(&all, None);
            assert_eq!(paths(&live), pairs(&[(HOME, "open")]), "{team} {name}");
            let said = said(&live, "BackendTrafficPolicy", "limits");
            assert!(said.starts_with("Accepted true"), "{said}");
        }
    }
}

#[test]
fn of_two_headers_the_older_one_names_callers_and_that_of_the_gateways_policy_before() {
    let limit = json!([{ "clientSelectors": [{ "headers": [{ "name": "x-user", "value": "u" }] }],
        "limit": { "requests": 1, "unit": "Hour" } }]);
    let limits = json!({ "rateLimit": { "type": "Global", "global": { "rules": limit } } });
    for team in TEAMS {
        let mut all = gate();
        all.extend(models(HOME, OLD, &[("x-tier", "gold")]));
        all.extend(models(team, NEW, &[("x-team", "z")]));
        let live = lowered(&all, None);
        assert_eq!(paths(&live), pairs(&[(HOME, "open")]), "{team}");
        assert_eq!(header(&live), "x-tier");
        let mut all = webs();
        let of_door = targets("Gateway", "door");
        all.push(policy(
            "BackendTrafficPolicy",
            (HOME, "limits"),
            NEW,
            of_door,
            &limits,
        ));
        all.extend(models(team, OLD, &[("x-team", "z")]));
        let live = lowered(&all, None);
        assert_eq!(
            (header(&live), paths(&live)),
            ("x-user".to_owned(), all_but("", "open"))
        );
    }
}

/// A route to tools of its own namespace's server.
fn tools(namespace: &str, name: &str, created: &str, more: &Value) -> Value {
    let server = json!([{ "name": "tools", "kind": "Backend", "group": "gateway.envoyproxy.io", "path": "/mcp" }]);
    let mut spec = json!({ "parentRefs": door(), "path": "/mcp", "backendRefs": server });
    let members = spec.as_object_mut().expect("a map");
    members.extend(more.as_object().expect("a map").clone());
    made(AI_GROUP, "MCPRoute", (namespace, name), created, spec)
}

/// Whom routes to tools are for.
fn used(live: &Live) -> Vec<String> {
    let loaded = live.loaded.as_ref();
    let loaded = loaded.unwrap_or_else(|faults| panic!("{faults}"));
    let routes = loaded.document.json()["mcp"]["routes"].as_array();
    let workload = |of: &Value| of["workload"].to_string();
    routes.into_iter().flatten().map(workload).collect()
}

#[test]
fn a_route_to_tools_keeps_its_way_to_know_callers_beside_newer_routes() {
    let oauth = json!({ "securityPolicy": { "oauth": {
        "issuer": "https://login.example", "audiences": ["gate"],
        "jwks": { "remoteJWKS": { "uri": "https://login.example/jwks" } },
        "protectedResourceMetadata": { "resource": "https://gate.example/mcp" },
    } } });
    for team in TEAMS {
        let mut all = gate();
        all.push(tools(HOME, "tools", OLD, &oauth));
        assert_eq!(used(&lowered(&all, None)), [r#""default""#]);
        all.push(web(team, NEW));
        all.extend(models(team, NEW, &[]));
        all.push(tools(team, "mine", NEW, &json!({})));
        let live = lowered(&all, None);
        assert_eq!(used(&live), [r#""default""#], "{team}");
        assert_eq!(said(&live, "MCPRoute", "tools"), "Accepted true Accepted");
        assert!(
            ways(&live).values().all(|to| to.contains("closed")),
            "{:?}",
            ways(&live)
        );
        // Beside older ones it is the one that does not go with them.
        let mut all = gate();
        all.push(web(HOME, OLD));
        all.push(tools(team, "mine", NEW, &oauth));
        let live = lowered(&all, None);
        assert_eq!(paths(&live), pairs(&[(HOME, "open")]), "{team}");
        assert!(said(&live, "MCPRoute", "mine").starts_with("Accepted false"));
    }
}

#[test]
fn of_two_ways_to_name_tools_the_older_route_has_its_own() {
    let of = |value: &str, more: &str| {
        let headers = json!([{ "name": "x-tenant", "value": value, "type": "Exact" }]);
        match more {
            "" => json!({ "headers": headers }),
            mode => json!({ "headers": headers, "prefixMode": mode }),
        }
    };
    for team in TEAMS {
        let mut all = gate();
        all.push(tools(HOME, "all", OLD, &json!({})));
        all.push(tools(HOME, "tenant", OLD, &of("t", "")));
        all.push(tools(team, "mine", NEW, &of("z", "Never")));
        let live = lowered(&all, None);
        for name in ["all", "tenant"] {
            let said = said(&live, "MCPRoute", name);
            assert!(said.starts_with("Accepted true"), "{team}: {said}");
        }
        assert!(said(&live, "MCPRoute", "mine").contains("has another prefixMode"));
        assert_eq!(used(&live), [r#""t""#, r#""default""#]);
    }
}

#[test]
fn a_faulty_route_to_tools_takes_nobody_and_no_path_from_another_ones() {
    let by_header = json!({ "headers": [{ "name": "x-team", "value": "a", "type": "Exact" }] });
    let by_path = json!({ "path": "/tools/" });
    for team in TEAMS {
        for (created, more) in [(NEW, &by_header), ("2025-01-01T00:00:00Z", &by_path)] {
            let mut all = gate();
            all.push(tools(HOME, "all", OLD, &json!({})));
            all.push(tools(team, "mine", created, more));
            let live = lowered(&all, None);
            assert_eq!(used(&live), [r#""default""#], "{team} {more}");
            let of_all = said(&live, "MCPRoute", "all");
            assert!(
                of_all.starts_with("Accepted true"),
                "{team} {more}: {of_all}"
            );
            let mine = said(&live, "MCPRoute", "mine");
            assert!(mine.starts_with("Accepted false"), "{team} {more}: {mine}");
        }
    }
}

#[test]
fn a_route_to_tools_takes_no_path_of_an_older_one_of_plain_http() {
    for team in TEAMS {
        let at = |path: &str, created: &str| {
            let mut all = gate();
            all.push(web(HOME, OLD));
            all.push(tools(team, "mine", created, &json!({ "path": path })));
            said(&lowered(&all, None), "MCPRoute", "mine")
        };
        for path in [format!("/{HOME}"), format!("/{HOME}/mcp")] {
            let said = at(&path, NEW);
            assert!(said.starts_with("Accepted false"), "{team} {path}: {said}");
            assert!(said.contains("is older"), "{team} {path}: {said}");
        }
        for (path, created) in [
            (format!("/{HOME}s"), NEW),
            (format!("/{HOME}/mcp"), "2025-01-01T00:00:00Z"),
        ] {
            let said = at(&path, created);
            assert!(said.starts_with("Accepted true"), "{team} {path}: {said}");
        }
    }
}

/// What of the Gateway's limits does not hold for a route of another namespace closes that route, and not the Gateway.
#[test]
fn a_route_to_which_a_limit_of_the_gateways_does_not_come_closes_itself() {
    let tokens = json!({
        "cost": { "request": { "from": "Number", "number": 0 }, "response": {
            "from": "Metadata", "metadata": { "namespace": "io.envoy.ai_gateway", "key": "llm_total_token" },
        } },
        "limit": { "requests": 1000, "unit": "Hour" },
    });
    let calls = json!({ "limit": { "requests": 1000, "unit": "Hour" } });
    let shared = json!({ "shared": true, "limit": { "requests": 1000, "unit": "Hour" } });
    for team in TEAMS {
        for (what, rule) in [("tokens", &tokens), ("calls", &calls), ("shared", &shared)] {
            let limits =
                json!({ "rateLimit": { "type": "Global", "global": { "rules": [rule] } } });
            let mut all = gate();
            let headers: &[(&str, &str)] = if what == "shared" {
                &[]
            } else {
                &[("x-team", "a")]
            };
            all.extend(models(HOME, OLD, headers));
            for object in &mut all {
                if object["kind"] == "AIGatewayRoute" {
                    let cost = json!({ "metadataKey": "llm_total_token", "type": "TotalToken" });
                    object["spec"]["llmRequestCosts"] = json!([cost]);
                }
            }
            let of_door = targets("Gateway", "door");
            all.push(policy(
                "BackendTrafficPolicy",
                (HOME, "limits"),
                NEW,
                of_door,
                &limits,
            ));
            let alone = paths(&lowered(&all, None));
            assert_eq!(alone, pairs(&[(HOME, "open")]), "{team} {what}");
            all.extend(match what {
                "tokens" => models(team, NEW, &[("x-team", "b")]).to_vec(),
                "calls" => vec![web(team, NEW)],
                _ => models(team, NEW, &[]).to_vec(),
            });
            let live = lowered(&all, None);
            let expected = pairs(&[(HOME, "open"), (team, "closed")]);
            assert_eq!(paths(&live), expected, "{team} {what}");
            let told = &live.loaded.as_ref().expect("it loads").warnings;
            let mut says = told.iter().map(|fault| &fault.says);
            let begin = "is held to a limit of BackendTrafficPolicy gateways/limits, which ";
            assert!(says.any(|says| says.starts_with(begin)), "{told:?}");
        }
    }
}

/// Whichever of the two is asked first.
#[test]
fn of_two_routes_that_would_share_a_limit_of_the_gateways_that_of_another_namespace_is_closed() {
    let shared = json!({ "shared": true, "limit": { "requests": 1000, "unit": "Hour" } });
    let limits = json!({ "rateLimit": { "type": "Global", "global": { "rules": [shared] } } });
    for team in TEAMS {
        let mut all = gate();
        all.extend(models(HOME, OLD, &[]));
        for object in &mut all {
            if object["kind"] == "AIGatewayRoute" {
                object["spec"]["rules"][0]["matches"] = Value::Null;
            }
        }
        let of_door = targets("Gateway", "door");
        all.push(policy(
            "BackendTrafficPolicy",
            (HOME, "limits"),
            NEW,
            of_door,
            &limits,
        ));
        all.extend(models(team, NEW, &[]));
        let live = lowered(&all, None);
        assert_eq!(
            paths(&live),
            pairs(&[("*", "open"), (team, "closed")]),
            "{team}"
        );
    }
}

#[test]
fn a_route_of_plain_http_beside_older_routes_to_models_with_hosts_closes_none_of_them() {
    for team in TEAMS {
        let mut all = gate();
        all.extend(models(HOME, OLD, &[]));
        for object in &mut all {
            if object["kind"] == "AIGatewayRoute" {
                object["spec"]["hostnames"] = json!(["ai.example"]);
            }
        }
        all.push(web(team, NEW));
        let live = lowered(&all, None);
        assert_eq!(
            paths(&live),
            pairs(&[(HOME, "open"), (team, "closed")]),
            "{team}"
        );
        let said = said(&live, "HTTPRoute", "web");
        assert!(
            said.contains("is beside AIGatewayRoute gateways/models, which says hostnames"),
            "{said}"
        );
    }
}

/// Whether each route is open, by its path or model.
fn open(live: &Live) -> Vec<(String, bool)> {
    let all = ways(live).into_iter();
    all.map(|(takes, to)| (takes, !to.contains("closed") && to != "?"))
        .collect()
}

/// What is said of an object of a namespace.
fn said_in(live: &Live, kind: &str, namespace: &str) -> String {
    let mut verdicts = live.report.verdicts.iter();
    let it = |of: &&Verdict| of.id.kind == kind && of.id.namespace == namespace;
    let verdict = verdicts.find(it).expect("it is judged");
    let messages = verdict.conditions.iter().map(|of| of.message.clone());
    messages.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_route_to_models_at_another_ones_address_closes_itself_where_it_is_newer() {
    for (team, other) in [("apps", "zoo"), ("zoo", "apps")] {
        // The address of its models is that of another team's service.
        let shared = |created: &str| {
            let mut all = webs();
            all.extend(models(team, created, &[]));
            for (namespace, name) in [(team, "engine"), (other, "web")] {
                let is_it = |object: &&mut Value| {
                    let metadata = &object["metadata"];
                    object["kind"] == "Backend"
                        && metadata["name"] == name
                        && metadata["namespace"] == namespace
                };
                let object = all.iter_mut().find(is_it).expect("it is there");
                object["spec"]["endpoints"][0]["ip"]["address"] = json!("10.1.1.1");
            }
            lowered(&all, None)
        };
        let expected = |model: bool, plain: bool| {
            let path = |of: &str| (format!("/{of}/*"), of != other || plain);
            let mut all: Vec<_> = ["apps", HOME, "zoo"].map(path).into();
            all.push((team.to_owned(), model));
            all
        };
        let live = shared(NEW);
        assert_eq!(open(&live), expected(false, true), "{team}");
        let said = said_in(&live, "AIGatewayRoute", team);
        let says = format!("has an address to which HTTPRoute {other}/web, which is older, sends");
        assert!(said.contains(&says), "{said}");
        // Where models were served before, plain HTTP does not come after.
        let live = shared("2025-01-01T00:00:00Z");
        assert_eq!(open(&live), expected(true, false), "{team}");
    }
}

#[test]
fn a_policy_for_all_routes_that_were_there_goes_on_for_them_and_a_newer_route_is_closed() {
    for team in TEAMS {
        let routes = |theirs: &str, created: &str| {
            let mut all = gate();
            all.extend([web(HOME, OLD), web(team, theirs)]);
            let place = (HOME, "door");
            let targets = route_targets();
            all.push(policy("SecurityPolicy", place, created, targets, &cors()));
            lowered(&all, None)
        };
        let live = routes(NEW, OLD);
        let [own, newer] = [HOME, team].map(|of| paths(&live)[of].clone());
        assert_eq!([own.as_str(), newer.as_str()], ["open", "closed"], "{team}");
        let says = "is not of the callers of SecurityPolicy gateways/door, which is older";
        let said = said_in(&live, "HTTPRoute", team);
        assert!(said.contains(says), "{said}");
        // Beside a route that was there before, the policy is for some alone.
        let live = routes(OLD, NEW);
        let [own, other] = [HOME, team].map(|of| paths(&live)[of].clone());
        assert_eq!([own.as_str(), other.as_str()], ["closed", "open"], "{team}");
    }
}
