//! Which route takes which call of plain HTTP, and that no path of the API is one.

use testing::Draw;
use wire::head::RequestHead;

use super::{HostPattern, PathFault, PathPattern, Rule, Table, fields, is_of_the_api};
use crate::fixture::{IDENTITY, ONE, RoutePlan, request, snapshot};
use crate::id::{RouteId, WorkloadId};
use crate::listener::{Listener, Listeners};
use crate::login::CookieNames;

fn path(text: &str) -> PathPattern {
    PathPattern::read(text).expect("a pattern")
}

/// A rule for `[METHOD ][host]/path[ name=value]…`.
fn rule(text: &str) -> Rule {
    let mut words = text.split(' ').peekable();
    let methods = words.next_if(|word| !word.contains('/'));
    let methods = methods.map_or_else(Vec::new, |m| m.split(',').map(Box::from).collect());
    let target = words.next().expect("a path");
    let (host, rest) = target.split_at(target.find('/').expect("a path"));
    let host = match host.strip_prefix("*.") {
        _ if host.is_empty() => None,
        Some(domain) => Some(HostPattern::Below(domain.into())),
        None => Some(HostPattern::Exact(host.into())),
    };
    let pair = |word: &str| {
        let (name, value) = word.split_once('=').expect("a header");
        (name.into(), value.into())
    };
    Rule {
        route: RouteId(0),
        host,
        path: path(rest),
        methods,
        headers: words.map(pair).collect(),
        query: Vec::new(),
        listeners: Vec::new(),
    }
}

#[test]
fn a_path_is_exact_a_template_or_all_below_one() {
    for (text, takes, leaves) in [
        (
            "/echo",
            &["/echo"][..],
            &["/echo/", "/Echo", "/echo2", "/"][..],
        ),
        (
            "/files/*",
            &["/files", "/files/", "/files/a/b"],
            &["/filesx", "/file", "/"],
        ),
        ("/*", &["/", "/a", "/a/b"], &["*", ""]),
        ("/", &["/"], &["/a", ""]),
        (
            "/users/{id}/avatar",
            &["/users/7/avatar", "/users/%20/avatar"],
            &[
                "/users//avatar",
                "/users/avatar",
                "/users/7/avatar/",
                "/users/7/8/avatar",
            ],
        ),
    ] {
        let pattern = path(text);
        for one in takes {
            assert!(pattern.takes(one), "{text} takes {one}");
        }
        for one in leaves {
            assert!(!pattern.takes(one), "{text} leaves {one}");
        }
    }
    for (text, fault) in [
        ("echo", PathFault::Path),
        ("", PathFault::Path),
        ("/a//b", PathFault::Path),
        ("/a/../b", PathFault::Path),
        ("/a?b", PathFault::Path),
        ("/a b", PathFault::Path),
        ("/*/b", PathFault::Star),
        ("/a*", PathFault::Star),
        ("/v1/*", PathFault::Api),
        ("/v1", PathFault::Api),
        ("/V1/models", PathFault::Api),
        ("/a/{id", PathFault::Braces),
        ("/a/x{id}", PathFault::Braces),
        ("/a/{}", PathFault::Braces),
        ("/{any}/b", PathFault::Braces),
        ("/a/{id}/*", PathFault::Braces),
    ] {
        assert_eq!(PathPattern::read(text), Err(fault), "{text}");
    }
}

#[test]
fn the_most_specific_rule_wins_wherever_its_route_stands() {
    let in_order = [
        "GET app.example/echo a=b c=d",
        "GET app.example/echo a=b",
        "GET app.example/echo",
        "app.example/echo a=b",
        "app.example/echo",
        "app.example/*",
        "*.longer.example/*",
        "*.example/echo",
        "POST /echo",
        "/users/me/{x}",
        "/users/{x}/{y}",
        "/files/deep/*",
        "/files/*",
        "POST /*",
        "/*",
    ];
    let mut draw = Draw::new(testing::seed("the_most_specific_rule_wins"));
    for _ in 0..50 {
        let mut rules: Vec<Rule> = in_order.iter().map(|text| rule(text)).collect();
        for at in (1..rules.len()).rev() {
            rules.swap(at, draw.below(at + 1));
        }
        let table = Table::new(rules);
        let sorted: Vec<String> = table.rules().iter().map(ToString::to_string).collect();
        let shown = |text: &&str| text.replace("{x}", "{}").replace("{y}", "{}");
        let wanted: Vec<String> = in_order.iter().map(shown).collect();
        assert_eq!(sorted, wanted);
    }
}

#[test]
fn a_call_goes_to_the_first_rule_that_holds_and_is_its_workloads() {
    let echo = [rule("GET /echo")];
    let files = [rule("/files/*"), rule("POST app.example/*")];
    let canary = [rule("/echo x-canary=yes")];
    let all = [rule("/*")];
    let plan = |workloads, plain| RoutePlan {
        workloads,
        plain,
        backends: &[ONE],
        ..RoutePlan::default()
    };
    let s = snapshot(&[
        plan(&["a", "b"], &all),
        plan(&["a"], &echo),
        plan(&["a"], &files),
        plan(&["a"], &canary),
        plan(&["c"], &[]),
    ]);
    let find = |method: &str, target: &str, fields: &[(&str, &str)], workload| {
        let head = request(method, target, fields);
        assert!(s.plain.may_take(&head), "{method} {target}");
        let found = crate::route::plain(&s, WorkloadId(workload), &head);
        found.map(|place| place.route.0).map_err(|r| r.reply().code)
    };
    assert_eq!(find("GET", "/echo?a=b", &[], 0), Ok(1));
    assert_eq!(find("HEAD", "/echo", &[], 0), Ok(1));
    assert_eq!(find("POST", "/echo", &[], 0), Ok(0));
    assert_eq!(find("POST", "/echo", &[("x-canary", "yes")], 0), Ok(3));
    assert_eq!(find("GET", "/echo", &[("x-canary", "yes")], 0), Ok(1));
    let hosted = [("host", "App.Example:8443")];
    assert_eq!(find("POST", "/echo", &hosted, 0), Ok(2));
    assert_eq!(find("GET", "/files/x", &hosted, 0), Ok(2));
    assert_eq!(find("PROPFIND", "/files/x", &[], 0), Ok(2));
    assert_eq!(find("GET", "/files/x", &[], 1), Ok(0));
    assert_eq!(find("GET", "/echo", &[], 2), Err("route_not_found"));
    for method in ["TRACE", "CONNECT"] {
        assert!(
            !s.plain.may_take(&request(method, "/echo", &[])),
            "{method}"
        );
    }
}

#[test]
fn a_host_below_a_domain_is_not_the_domain() {
    let below = HostPattern::Below("app.example".into());
    for host in ["a.app.example", "A.B.App.Example:80"] {
        assert!(below.takes(host.as_bytes()), "{host}");
    }
    for host in [
        "app.example",
        ".app.example",
        "xapp.example",
        "a.app.example.evil",
        "",
        "[::1]",
    ] {
        assert!(!below.takes(host.as_bytes()), "{host}");
    }
}

#[test]
fn no_spelling_of_the_apis_root_is_plain() {
    for path in [
        "/v1/chat/completions",
        "/v1",
        "/V1/chat/completions",
        "/%76%31/chat/completions",
        "/%56%31/x",
        "/v%31/x",
        "/%20v1/x",
        "/v1%20/x",
        "/v1%3F/x",
        "/v1%23/x",
        "/v1./x",
        "/%ef%bd%96%ef%bc%91/x",
        "/%e2%85%b4%31/x",
        "/v%c2%b9/x",
        "/%f0%9d%90%af%f0%9d%9f%8f/x",
    ] {
        assert!(is_of_the_api(path), "{path}");
        // No head has an escape of what needs none.
        if RequestHead::new().set_target(path).is_err() {
            continue;
        }
        let head = request("GET", path, &[]);
        let s = snapshot(&[RoutePlan {
            workloads: &["a"],
            plain: &[rule("/*")],
            backends: &[ONE],
            ..RoutePlan::default()
        }]);
        assert!(!s.plain.may_take(&head), "{path}");
    }
    for path in [
        "/",
        "/echo",
        "/v2/x",
        "/v1beta/x",
        "/v11",
        "/x/v1/y",
        "/v",
        "/1",
        "/%e6%9d%b1%e4%ba%ac",
    ] {
        assert!(!is_of_the_api(path), "{path}");
    }
}

#[test]
fn fields_pass_but_those_that_prove_identify_or_steer() {
    let head = request(
        "GET",
        "/echo",
        &[
            ("accept-language", "de"),
            ("accept-encoding", "br"),
            ("cookie", "a=b"),
            ("origin", "https://app.example"),
            ("access-control-request-method", "PUT"),
            ("x-csrf-token", "t"),
            ("if-none-match", "e"),
            ("range", "bytes=0-1"),
            ("x-custom", "1"),
            ("x-hop", "1"),
            ("connection", "x-hop, keep-alive"),
            ("authorization", "Bearer key"),
            ("x-api-key", "key"),
            (IDENTITY, "a"),
            ("x-forwarded-for", "1.2.3.4"),
            ("x-forwarded-user", "root"),
            ("x_forwarded_user", "root"),
            ("x-remote-user", "root"),
            ("x-http-method-override", "DELETE"),
            ("x-http-method", "DELETE"),
            ("x-original-url", "/admin"),
            ("x-client-cert", "c"),
            ("proxy", "http://evil.example"),
            ("impersonate-extra-scopes", "all"),
            ("x-webauth-email", "root@example"),
            ("x-auth-request-groups", "admins"),
            ("x-middleware-subrequest", "middleware"),
            ("x-role", "admin"),
            ("x-tollgate-workload", "other"),
            ("te", "trailers"),
            ("upgrade", "h2c"),
            ("expect", "100-continue"),
            ("proxy-authorization", "Basic x"),
            ("transfer-encoding", "chunked"),
            ("x-amz-date", "now"),
        ],
    );
    let passed: Vec<String> = head
        .fields
        .iter()
        .filter(|field| fields::forwards(field, &head.fields, IDENTITY.as_bytes()))
        .map(|field| String::from_utf8_lossy(field.name).into_owned())
        .collect();
    let wanted = [
        "accept-language",
        "accept-encoding",
        "cookie",
        "origin",
        "access-control-request-method",
        "x-csrf-token",
        "if-none-match",
        "range",
        "x-custom",
    ];
    assert_eq!(passed, wanted);
}

#[test]
fn the_gates_own_cookies_stay_with_it() {
    let ours = CookieNames::new("tollgate", true);
    let but = |line: &[u8]| fields::cookies_but(line, &ours);
    let line = b"a=b; __Host-tollgate=s;c=d ; __Host-tollgate-login=x";
    assert_eq!(but(line).as_deref(), Some(&b"a=b; c=d"[..]));
    assert_eq!(but(b"__Host-tollgate=s"), None);
    assert_eq!(but(b"tollgate=s").as_deref(), Some(&b"tollgate=s"[..]));
    let answer = request(
        "GET",
        "/",
        &[
            ("location", "/next"),
            ("set-cookie", "a=b"),
            ("set-cookie", "__Host-tollgate=forged; Path=/"),
            ("www-authenticate", "Basic"),
            ("x-anything", "1"),
            ("access-control-allow-origin", "*"),
            ("x-accel-redirect", "/internal"),
            ("alt-svc", "h3=\":443\""),
            ("connection", "x-hop"),
            ("x-hop", "1"),
            ("transfer-encoding", "chunked"),
            ("x-ratelimit-remaining-requests", "9"),
            ("x-ratelimit-remaining", "9"),
        ],
    );
    let returned = |has_cors| -> Vec<String> {
        let fields = answer.fields.iter();
        let kept = fields.filter(|f| fields::returns(f, &answer.fields, Some(&ours), has_cors));
        kept.map(|f| String::from_utf8_lossy(f.name).into_owned())
            .collect()
    };
    let own = "access-control-allow-origin";
    let rest = ["location", "set-cookie", "www-authenticate", "x-anything"];
    assert_eq!(
        returned(true),
        [&rest[..], &["x-ratelimit-remaining"]].concat()
    );
    assert_eq!(
        returned(false),
        [&rest[..], &[own, "x-ratelimit-remaining"]].concat()
    );
}

#[test]
fn a_member_of_the_query_is_compared_decoded_and_the_first_of_its_name_counts() {
    let wanted = Rule {
        query: vec![("animal".into(), "blue whale".into())],
        ..rule("/*")
    };
    for (target, takes) in [
        ("/?animal=blue%20whale", true),
        ("/?x=1&animal=blue+whale&animal=fish", true),
        ("/?anim%61l=blue%20whale", true),
        ("/?animal=fish&animal=blue%20whale", false),
        ("/?animal", false),
        ("/", false),
    ] {
        assert_eq!(
            wanted.takes(&request("GET", target, &[])),
            takes,
            "{target}"
        );
    }
}

#[test]
fn a_method_alone_is_not_its_twin() {
    for (text, get, head) in [
        ("GET /*", true, true),
        ("=GET /*", true, false),
        ("=HEAD /*", false, true),
    ] {
        let rule = rule(text);
        assert_eq!(rule.takes(&request("GET", "/", &[])), get, "{text}");
        assert_eq!(rule.takes(&request("HEAD", "/", &[])), head, "{text}");
    }
}

#[test]
fn a_call_is_of_the_most_specific_listener_of_its_port_and_of_no_other() {
    let listener = |name: &str, port, host| Listener {
        name: name.into(),
        port,
        host,
        is_tls: false,
        serves_models: port == 80,
    };
    let below = HostPattern::Below("app.example".into());
    let one = HostPattern::Exact("one.app.example".into());
    let listeners = Listeners::new(vec![
        listener("all", 80, None),
        listener("below", 80, Some(below)),
        listener("one", 80, Some(one)),
        listener("apart", 81, None),
    ]);
    let at = |port, host| {
        let mut head = request("GET", "/", &[("host", host)]);
        head.port = port;
        head
    };
    let found = |port, host| {
        let head = at(port, host);
        listeners.of(&head).map(|(_, one)| one.name.to_string())
    };
    assert_eq!(found(80, "one.app.example"), Some("one".to_owned()));
    assert_eq!(found(80, "two.app.example:80"), Some("below".to_owned()));
    assert_eq!(found(80, "app.example"), Some("all".to_owned()));
    assert_eq!(found(81, "one.app.example"), Some("apart".to_owned()));
    assert_eq!(found(82, "one.app.example"), None);
    // What is attached to another listener is not there, whatever its host.
    let attached = |name: &str, route| Rule {
        route: RouteId(route),
        listeners: listeners.named(name).into_iter().collect(),
        ..rule("/*")
    };
    let table = Table::new(vec![attached("all", 1), attached("below", 2)]);
    let take = |port, host| {
        let taken = table.take(&at(port, host), &listeners, |_| true);
        taken.map(|place| place.route.0).map_err(|r| r.reply().code)
    };
    assert_eq!(take(80, "app.example"), Ok(1));
    assert_eq!(take(80, "two.app.example"), Ok(2));
    assert_eq!(take(80, "one.app.example"), Err("route_not_found"));
    assert_eq!(take(81, "app.example"), Err("route_not_found"));
    // A connection that was made to one of them is for that one.
    let over = |name: &str, host| {
        let mut head = at(80, host);
        head.tls_name = Some(name.into());
        let taken = table.take(&head, &listeners, |_| true);
        taken.map(|place| place.route.0).map_err(|r| r.reply().code)
    };
    assert_eq!(over("two.app.example", "three.app.example"), Ok(2));
    assert_eq!(
        over("two.app.example", "app.example"),
        Err("misdirected_request")
    );
    assert_eq!(
        over("app.example", "two.app.example"),
        Err("misdirected_request")
    );
    assert_eq!(over("other.example", "app.example"), Ok(1));
    assert!(listeners.admit_model(&at(80, "app.example")).is_ok());
    assert!(listeners.admit_model(&at(81, "app.example")).is_err());
}
