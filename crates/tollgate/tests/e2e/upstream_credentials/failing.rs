//! Endpoints that are down, slow, wrong, or whose token an upstream does not take.
//!
//! Invariant: no call goes out without a credential.

use super::*;
use crate::harness::free_address;

/// A gate whose first backend asks this endpoint; with `then` there is another one without a credential.
fn gate(engine: &Upstream, token_url: &str, then: Option<&Upstream>) -> Gate {
    let (second, route) = match then {
        Some(other) => (
            format!("  second: {{ url: http://{}/v1 }}\n", other.address),
            "[first, second]",
        ),
        None => (String::new(), "first"),
    };
    let config = format!(
        "backends:\n  first: {{ url: http://{}/v1, credential: {{ oauth: {{ token_url: {token_url}, client_id: gate, \
         client_secret: {{ inline: {CANARY}-s }} }} }} }}\n{second}routes: [ {{ workload: w, backend: {route} }} ]\n",
        engine.address
    );
    Gate::start(&config, &[])
}

fn assert_unavailable(response: &Response) {
    assert_eq!(
        (response.status, &*response.code()),
        (503, "upstream_credential_unavailable"),
        "{}",
        response.text()
    );
}

#[test]
fn while_the_endpoint_is_down_nothing_goes_out_and_then_it_does() {
    let (engine, other, address) = (engine(), engine(), free_address());
    let url = format!("http://{address}/token");
    let alone = gate(&engine, &url, None);
    let followed = gate(&engine, &url, Some(&other));
    assert_unavailable(&call(&alone));
    let response = call(&followed);
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!((engine.seen().len(), other.seen().len()), (0, 1));
    assert!(other.seen()[0].header("authorization").is_empty());
    let _endpoint = Upstream::start_at(address, |n, _| vec![Step::Send(json(200, &token(n, 600)))]);
    testing::eventually("the token is had", || call(&alone).status == 200);
    assert!(last(&engine).starts_with(&format!("Bearer {CANARY}-token-")));
    let warned = alone.log();
    assert!(
        warned.contains("the gate cannot get the credential of an upstream"),
        "{warned}"
    );
    assert_silent(&alone);
    assert_silent(&followed);
}

#[test]
fn an_endpoint_that_is_slow_or_wrong_is_none() {
    let repeated = |_: usize, seen: &Seen| {
        let heard = seen.header("authorization").concat();
        let body =
            format!(r#"{{"error":"invalid_client","error_description":"{heard} {CANARY}"}}"#);
        vec![Step::Send(json(401, &body))]
    };
    type Script = Box<dyn Fn(usize, &Seen) -> Vec<Step> + Send + Sync>;
    let table: [(&str, Script); 6] = [
        (
            "slow",
            Box::new(|_, _| vec![Step::Sleep(Duration::from_secs(3600))]),
        ),
        (
            "garbage",
            Box::new(|_, _| vec![Step::Send(b"SSH-2.0-x\r\n\r\n".to_vec()), Step::Close]),
        ),
        (
            "no json",
            Box::new(|_, _| vec![Step::Send(json(200, CANARY))]),
        ),
        (
            "a token with a line break",
            Box::new(|_, _| {
                let body = r#"{"access_token":"a\r\nx: y","token_type":"Bearer","expires_in":60}"#;
                vec![Step::Send(json(200, body))]
            }),
        ),
        ("refuses", Box::new(repeated)),
        (
            "redirects",
            Box::new(|_, _| {
                let head = "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n";
                vec![Step::Send(head.into())]
            }),
        ),
    ];
    for (name, script) in table {
        let (engine, other, endpoint) = (engine(), engine(), Upstream::start(script));
        let url = format!("http://{}/token", endpoint.address);
        let alone = gate(&engine, &url, None);
        assert_unavailable(&call(&alone));
        assert_silent(&alone);
        drop(alone);
        let followed = gate(&engine, &url, Some(&other));
        assert_eq!(call(&followed).status, 200, "{name}");
        assert_eq!((engine.seen().len(), other.seen().len()), (0, 1), "{name}");
        assert_silent(&followed);
    }
}

#[test]
fn a_token_that_the_upstream_does_not_take_is_fetched_anew_once_in_a_while() {
    let endpoint = endpoint(3600);
    let engine = Upstream::start(|_, seen: &Seen| {
        let is_first = seen.header("authorization").concat().ends_with("token-0");
        let status = if is_first { 401 } else { 200 };
        vec![Step::Send(json(status, COMPLETION))]
    });
    let gate = gate(&engine, &format!("http://{}/token", endpoint.address), None);
    testing::eventually("the first token", || endpoint.seen().len() == 1);
    let mut refused = 0;
    testing::eventually("the second token", || {
        let response = call(&gate);
        if response.status == 200 {
            return true;
        }
        refused += 1;
        assert_eq!(
            response.code(),
            "upstream_credential_refused",
            "{}",
            response.text()
        );
        false
    });
    assert!(refused > 0);
    assert!(last(&engine).ends_with("token-1"));
    assert_eq!(endpoint.seen().len(), 2, "however often it was refused");
    assert_silent(&gate);
}
