//! What a server does with a token of one caller's own says nothing of what it does for others; nor does a word of one that passes.
//!
//! Not here: to whom such tokens go (`own_tokens`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::modern::{ask, call, modern_reply};
use super::own_tokens::{bringing, tools};
use super::{Caller, config, url};
use crate::harness::{Gate, Step, Upstream, answer::whole};

const ROUTES: &str =
    "    - { workload: own, own_tokens: { one: x-one-token } }\n    - { workload: all }";

/// A gate with one worker, before this server, and what further is set of it.
fn gate(one: &Upstream, further: &str) -> Gate {
    let servers = format!(
        "    one: {{ url: \"{}\", credential: {{ inline: shared }}{further} }}",
        url(one)
    );
    Gate::start(
        &("workers: 1\n".to_owned() + &config(&servers, ROUTES)),
        &[],
    )
}

/// A server without sessions that answers tokens which are numbers with that status, and tells the others what they are.
fn of_tokens() -> Upstream {
    Upstream::start(|_, seen| {
        let token = seen.header("authorization").join("");
        let token = token.trim_start_matches("Bearer ");
        if let Ok(status) = token.parse() {
            return vec![Step::Send(whole(status, "text/plain", b"no"))];
        }
        let answer = String::from_utf8(modern_reply("one", seen)).expect("text");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let body = body.replace("use one", &format!("use {token}")).replace(
            "\"name\":\"read\"",
            &format!("\"description\":\"of {token}\",\"name\":\"read\""),
        );
        let mut lines = head
            .split("\r\n")
            .filter(|l| !l.starts_with("content-length"));
        let status = lines.next().expect("a status");
        let rest: String = lines.map(|line| format!("{line}\r\n")).collect();
        let length = body.len();
        let answer = format!("{status}\r\n{rest}content-length: {length}\r\n\r\n{body}");
        vec![Step::Send(answer.into_bytes())]
    })
}

#[test]
fn a_token_of_a_callers_own_that_its_server_refuses_takes_that_server_from_nobody() {
    for status in [400, 404, 405, 500] {
        for is_first in [true, false] {
            let one = of_tokens();
            let gate = gate(&one, "");
            let (own, all) = (Caller::new(&gate, "own"), Caller::new(&gate, "all"));
            let is_served = || {
                let told = ask(&all, "tools/list", &json!({}));
                assert_eq!(tools(&told), ["one__read", "one__delete"], "{status}");
                assert_eq!(call(&all, "one__read").status, 200, "{status}");
            };
            if !is_first {
                is_served();
            }
            let token = format!("x-one-token: {status}");
            let read = json!({"name": "one__read", "arguments": {}});
            for _ in 0..2 {
                bringing(&own, &[&token], "tools/call", &read);
            }
            bringing(&own, &[&token], "tools/list", &json!({}));
            is_served();
        }
    }
}

#[test]
fn what_a_server_says_of_itself_to_a_callers_own_token_is_told_to_nobody_else() {
    let one = of_tokens();
    let gate = gate(&one, "");
    let (own, all) = (Caller::new(&gate, "own"), Caller::new(&gate, "all"));
    let says = |caller: &Caller<'_>, fields: &[&str]| {
        let told = bringing(caller, fields, "server/discover", &json!({}));
        told.body["result"]["instructions"].clone()
    };
    for _ in 0..2 {
        assert_eq!(says(&own, &["x-one-token: hers"]), "# one\n\nuse hers");
        assert_eq!(says(&own, &["x-one-token: his"]), "# one\n\nuse his");
        assert_eq!(says(&all, &[]), "# one\n\nuse shared");
        assert_eq!(says(&own, &[]), "# one\n\nuse shared");
    }
    let discovers = one.seen().into_iter();
    let discovers = discovers.filter(|seen| seen.header("mcp-method") == ["server/discover"]);
    assert_eq!(discovers.count(), 3, "each is asked once");
}

#[test]
fn what_a_caller_is_listed_by_its_own_token_pins_nobody_elses_tools() {
    let one = of_tokens();
    let gate = gate(&one, ", pin: refuse");
    let (own, all) = (Caller::new(&gate, "own"), Caller::new(&gate, "all"));
    for _ in 0..2 {
        for token in ["hers", "his"] {
            let field = format!("x-one-token: {token}");
            let told = bringing(&own, &[&field], "tools/list", &json!({}));
            assert_eq!(tools(&told), ["one__read", "one__delete"], "{token}");
            let read = json!({"name": "one__read", "arguments": {}});
            let told = bringing(&own, &[&field], "tools/call", &read);
            assert_eq!(told.status, 200, "{}", told.body);
        }
        let told = ask(&all, "tools/list", &json!({}));
        assert_eq!(tools(&told), ["one__read", "one__delete"]);
        assert_eq!(call(&all, "one__read").status, 200);
    }
}

#[test]
fn a_server_that_cannot_say_yet_what_it_speaks_is_asked_again() {
    for status in [404, 429, 500, 503] {
        let asked = Arc::new(AtomicUsize::new(0));
        let one = Upstream::start(move |_, seen| {
            let is_first = asked.fetch_add(1, Ordering::SeqCst) < 2;
            let answer = match is_first {
                true => whole(status, "text/plain", b"starting"),
                false => modern_reply("one", seen),
            };
            vec![Step::Send(answer)]
        });
        let gate = gate(&one, "");
        let all = Caller::new(&gate, "all");
        let told = ask(&all, "tools/list", &json!({}));
        let is_told = match status {
            429 | 503 => status,
            _ => 502,
        };
        assert_eq!(told.status, is_told, "{status}: {}", told.body);
        let told = ask(&all, "tools/list", &json!({}));
        assert_eq!(tools(&told), ["one__read", "one__delete"], "{status}");
    }
}

#[test]
fn a_token_that_is_brought_in_another_form_is_told_which_is_meant() {
    let one = of_tokens();
    let gate = gate(&one, "");
    let own = Caller::new(&gate, "own");
    let says = |fields: &[&str]| {
        let told = bringing(&own, fields, "tools/list", &json!({}));
        assert_eq!(told.status, 400, "{}", told.body);
        let says: &Value = &told.body["error"]["message"];
        says.as_str().expect("a text").to_owned()
    };
    assert!(says(&["x-one-token: Bearer hers"]).ends_with("the token alone, without `Bearer`"));
    assert!(says(&["x-one-token: a", "x-one-token: b"]).ends_with("stands twice"));
    assert!(says(&["x-one-token: a b"]).contains("has a blank"));
}
