//! Every expectation's failing side, beside the side on which it holds.

use std::time::{Duration, Instant};

use http::{HeaderMap, Method};

use super::{Exchange, Found, Moved, Observed, check};
use crate::verify::client::Answer;
use crate::verify::metric::reading;
use crate::verify::suite::{
    Answers, AtUpstream, By, Call, Case, Growth, StreamEnd, Suite, To, Upstream, selector,
};
use crate::verify::upstream::{Seen, Usage};

const BODY: &str = r#"{"model": "m", "usage": {"prompt_tokens": 5, "completion_tokens": 2}}"#;
const STREAM: &str = "data: {\"choices\": []}\n\ndata: {\"usage\": {\"prompt_tokens\": 5, \"completion_tokens\": 2}}\n\ndata: [DONE]\n\n";

fn suite() -> Suite {
    let upstream = |name: &str| Upstream {
        name: name.into(),
        credential: "Bearer key".into(),
        refuses: http::StatusCode::UNAUTHORIZED,
    };
    Suite {
        name: "x".into(),
        timeout: Duration::from_secs(1),
        upstreams: vec![upstream("one"), upstream("two")],
        metrics: Default::default(),
        cases: Vec::new(),
    }
}

fn case() -> Case {
    Case {
        name: "x".into(),
        says: "x".into(),
        wait: Duration::ZERO,
        since: None,
        calls: vec![Call {
            to: To::Gateway,
            method: Method::POST,
            path: "/".into(),
            headers: HeaderMap::new(),
            body: b"asked".to_vec(),
            spelled: Default::default(),
            count: 1,
            statuses: "200".parse().expect("statuses"),
            answers: Vec::new(),
        }],
        upstreams: vec![AtUpstream::default(), AtUpstream::default()],
        metrics: Vec::new(),
        never_upstream: Vec::new(),
        never_downstream: Vec::new(),
    }
}

fn seen(sent: &str) -> Seen {
    Seen {
        peer: ([127, 0, 0, 1], 1).into(),
        method: "POST".into(),
        path: "/v1?a=b".into(),
        headers: vec![("authorization".into(), b"Bearer key".to_vec())],
        body: b"asked".to_vec(),
        is_whole: true,
        is_cut: false,
        sent: sent.into(),
        last_sent: Some(Instant::now()),
        usage: Some(Usage {
            prompt: 5,
            completion: 2,
        }),
    }
}

fn answer(kind: &str, body: &str) -> Answer {
    Answer {
        status: 200,
        reason: Vec::new(),
        headers: vec![("content-type".into(), kind.into())],
        body: body.into(),
        raw: Vec::new(),
        broken: None,
        first_byte: Some(Instant::now()),
        from: ([127, 0, 0, 1], 2).into(),
    }
}

/// One call that was answered as the upstream did.
fn observed(kind: &str, body: &str) -> Observed {
    let exchange = Exchange {
        answer: answer(kind, body),
        arrived: vec![seen(body)],
    };
    Observed {
        exchanges: vec![vec![exchange]],
        arrived: vec![vec![seen(body)], Vec::new()],
        wires: vec![Vec::new(), Vec::new()],
        metrics: Vec::new(),
    }
}

fn unary() -> Observed {
    observed("application/json", BODY)
}

fn stream() -> Observed {
    observed("text/event-stream", STREAM)
}

fn first(observed: &mut Observed) -> &mut Exchange {
    &mut observed.exchanges[0][0]
}

#[track_caller]
fn holds(case: &Case, observed: &Observed) -> Found {
    let found = check(&suite(), case, observed);
    assert!(found.faults.is_empty(), "{:?}", found.faults);
    assert!(!found.evidence.is_empty());
    found
}

#[track_caller]
fn fails(case: &Case, observed: &Observed, says: &str) {
    let found = check(&suite(), case, observed);
    assert!(
        found.faults.iter().any(|fault| fault.contains(says)),
        "{says}: {:?}",
        found.faults
    );
}

fn asking(answers: Answers) -> Case {
    let mut case = case();
    case.calls[0].answers = vec![answers];
    case
}

#[test]
fn other_statuses_than_expected_are_a_fault() {
    holds(&case(), &unary());
    let mut other = unary();
    first(&mut other).answer.status = 429;
    fails(&case(), &other, "POST /: 429; expected 200");
    let meant = Answers {
        status: Some("404".parse().expect("a code")),
        ..Answers::default()
    };
    fails(
        &asking(meant),
        &unary(),
        "there was no answer of status 404",
    );
}

#[test]
fn headers_that_are_missing_or_there_are_faults() {
    let wants = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let case = asking(Answers {
        headers: wants(&["Content-Type"]),
        ..Answers::default()
    });
    holds(&case, &unary());
    let case = asking(Answers {
        headers: wants(&["retry-after"]),
        ..Answers::default()
    });
    fails(&case, &unary(), "no header retry-after");
    let case = asking(Answers {
        no_headers: wants(&["content-type"]),
        ..Answers::default()
    });
    fails(&case, &unary(), "a header content-type");
}

#[test]
fn members_that_are_missing_or_other_are_faults() {
    let case = asking(Answers {
        json: vec!["/model".into()],
        ..Answers::default()
    });
    holds(&case, &unary());
    fails(
        &case,
        &observed("application/json", "{}"),
        "no member /model",
    );
    fails(
        &case,
        &observed("text/plain", "nothing"),
        "its body is no JSON: nothing",
    );
    let equals = |value: &str| Answers {
        json_equals: [("/model".to_owned(), value.into())].into(),
        ..Answers::default()
    };
    holds(&asking(equals("m")), &unary());
    fails(
        &asking(equals("n")),
        &unary(),
        "/model is \"m\"; expected \"n\"",
    );
}

#[test]
fn other_bytes_than_the_upstreams_are_a_fault_in_answers_and_streams() {
    let case = asking(Answers {
        body_equals_upstream: true,
        ..Answers::default()
    });
    for mut observed in [unary(), stream()] {
        holds(&case, &observed);
        let sent = observed.exchanges[0][0].arrived[0].sent.len();
        first(&mut observed).answer.body.push(b'\n');
        fails(&case, &observed, &format!("differ from byte {sent}"));
        first(&mut observed).arrived.clear();
        fails(&case, &observed, "nothing arrived upstream for it");
    }
}

#[test]
fn a_stream_without_its_end_is_not_whole() {
    let case = asking(Answers {
        stream: Some(StreamEnd::Whole),
        ..Answers::default()
    });
    holds(&case, &stream());
    fails(&case, &unary(), "no stream of events");
    fails(
        &case,
        &observed("text/event-stream", "data: {}\n\n"),
        "ends without [DONE]",
    );
    let mut cut = stream();
    first(&mut cut).answer.broken = Some("reset".into());
    fails(&case, &cut, "the stream is cut: reset");
}

#[test]
fn a_broken_stream_that_seems_whole_is_a_fault() {
    let case = asking(Answers {
        stream: Some(StreamEnd::Broken),
        ..Answers::default()
    });
    let part = "data: {\"choices\": []}\n\n";
    let mut cut = observed("text/event-stream", part);
    first(&mut cut).answer.broken = Some("reset".into());
    holds(&case, &cut);
    let told = format!("{part}data: {{\"error\": {{\"message\": \"x\"}}}}\n\n");
    holds(&case, &observed("text/event-stream", &told));
    fails(
        &case,
        &observed("text/event-stream", part),
        "the client saw a clean end",
    );
    fails(&case, &stream(), "the client was told [DONE]");
    fails(&case, &unary(), "no stream of events");
    first(&mut cut).answer.body = b"data: {\"made\": \"up\"}\n\n".to_vec();
    fails(&case, &cut, "is not what the upstream sent");
}

#[test]
fn an_answer_that_is_cut_is_a_fault_unless_a_broken_one_was_asked_for() {
    let mut cut = unary();
    first(&mut cut).answer.broken = Some("end of file".into());
    fails(
        &case(),
        &cut,
        "an answer of status 200 is not whole: end of file",
    );
}

#[test]
fn a_stream_that_is_held_back_does_not_flow() {
    let case = asking(Answers {
        flows: true,
        ..Answers::default()
    });
    let mut flows = stream();
    let now = Instant::now();
    first(&mut flows).answer.first_byte = Some(now);
    first(&mut flows).arrived[0].last_sent = Some(now + Duration::from_millis(5));
    holds(&case, &flows);
    first(&mut flows).answer.first_byte = Some(now + Duration::from_millis(5));
    fails(&case, &flows, "it is held back");
    first(&mut flows).answer.first_byte = None;
    fails(&case, &flows, "it is held back");
}

#[test]
fn other_usage_than_the_upstreams_is_a_fault() {
    let case = asking(Answers {
        usage_equals_upstream: true,
        ..Answers::default()
    });
    holds(&case, &unary());
    holds(&case, &stream());
    let mut other = unary();
    first(&mut other).arrived[0].usage = Some(Usage {
        prompt: 5,
        completion: 3,
    });
    fails(
        &case,
        &other,
        "it tells of 5 + 2 tokens; the upstream said 5 + 3",
    );
    fails(
        &case,
        &observed("application/json", "{}"),
        "it tells no usage",
    );
}

#[test]
fn what_arrives_upstream_is_counted_and_its_headers_looked_at() {
    let mut case = case();
    case.upstreams[0] = AtUpstream {
        calls: Some(1),
        headers: [("authorization".to_owned(), "Bearer key".to_owned())].into(),
        same_body: true,
        ..AtUpstream::default()
    };
    case.upstreams[1].calls = Some(0);
    let right = unary();
    holds(&case, &right);
    let with = |change: &dyn Fn(&mut Vec<Seen>)| {
        let mut observed = right.clone();
        change(&mut observed.arrived[0]);
        observed
    };
    fails(
        &case,
        &with(&|seen| seen.clear()),
        "one had 0 calls; expected 1",
    );
    let mut both = right.clone();
    both.arrived[1] = both.arrived[0].clone();
    fails(&case, &both, "two had 1 calls; expected 0");
    fails(
        &case,
        &with(&|seen| seen[0].headers.clear()),
        "one saw no authorization",
    );
    let other = with(&|seen| seen[0].headers[0].1 = b"Bearer other".to_vec());
    fails(&case, &other, "one saw another authorization than expected");
    let two = with(&|seen| {
        let header = seen[0].headers[0].clone();
        seen[0].headers.push(header);
    });
    fails(&case, &two, "one saw 2 headers authorization");
    fails(
        &case,
        &with(&|seen| seen[0].body.clear()),
        "one had 1 bodies that were not sent so",
    );
    fails(
        &case,
        &with(&|seen| seen[0].is_cut = true),
        "was too long to be kept",
    );
    fails(
        &case,
        &with(&|seen| seen[0].is_whole = false),
        "one: a call for /v1?a=b arrived without its whole body",
    );
    case.upstreams[0].no_headers = vec!["Authorization".into()];
    fails(&case, &right, "one saw a header Authorization");
}

#[test]
fn headers_of_no_call_are_a_fault_be_they_wanted_or_not() {
    let says = "one had no call whose headers could be looked at";
    for (headers, no_headers) in [
        (
            [("authorization".to_owned(), "Bearer key".to_owned())].into(),
            vec![],
        ),
        (
            std::collections::BTreeMap::new(),
            vec!["x-api-key".to_owned()],
        ),
    ] {
        let mut case = case();
        case.upstreams[0] = AtUpstream {
            headers,
            no_headers,
            ..AtUpstream::default()
        };
        holds(&case, &unary());
        let mut cached = unary();
        cached.arrived[0].clear();
        fails(&case, &cached, says);
    }
}

#[test]
fn a_text_that_must_not_cross_is_found_wherever_it_is_and_not_told() {
    let mut case = case();
    case.never_upstream = vec!["rogue-key".into()];
    case.never_downstream = vec!["own-secret".into()];
    holds(&case, &unary());
    let up = |change: &dyn Fn(&mut Seen)| {
        let mut observed = unary();
        change(&mut observed.arrived[0][0]);
        observed
    };
    let places: [(&str, Observed); 5] = [
        (
            "its first line",
            up(&|seen| seen.path = "/v1?key=rogue-key".into()),
        ),
        (
            "header x-other",
            up(&|seen| {
                seen.headers
                    .push(("x-other".into(), b"a Rogue-Key b".to_vec()))
            }),
        ),
        (
            "header x-rog…",
            up(&|seen| seen.headers.push(("x-rogue-key".into(), Vec::new()))),
        ),
        (
            "its body",
            up(&|seen| seen.body = b"{\"user\":\"rogue-key\"}".to_vec()),
        ),
        ("arrived at two", {
            let mut observed = up(&|seen| seen.body = b"rogue-key".to_vec());
            observed.arrived.reverse();
            observed
        }),
    ];
    for (place, observed) in places {
        fails(&case, &observed, place);
        let found = check(&suite(), &case, &observed);
        assert!(!format!("{found:?}").contains("rogue-key"), "{found:?}");
    }
    let down = |change: &dyn Fn(&mut Answer)| {
        let mut observed = unary();
        change(&mut first(&mut observed).answer);
        observed
    };
    for (place, observed) in [
        (
            "its status line",
            down(&|answer| answer.reason = b"OK own-secret".to_vec()),
        ),
        (
            "header x-key",
            down(&|answer| {
                answer
                    .headers
                    .push(("x-key".into(), b"own-secret".to_vec()))
            }),
        ),
        (
            "its body",
            down(&|answer| answer.body = b"{\"error\":\"own-secret\"}".to_vec()),
        ),
    ] {
        fails(&case, &observed, &format!("came back in {place}"));
        let found = check(&suite(), &case, &observed);
        assert!(!format!("{found:?}").contains("own-secret"), "{found:?}");
    }
}

#[test]
fn what_leaked_is_not_told_once_more_where_a_body_is_shown() {
    let mut case = asking(Answers {
        json: vec!["/none".into()],
        ..Answers::default()
    });
    case.never_downstream = vec!["own-secret".into()];
    let leaking = observed("application/json", r#"{"error": "own-secret"}"#);
    fails(&case, &leaking, r#"no member /none in {"error": "own…"}"#);
    let found = check(&suite(), &case, &leaking);
    assert!(!format!("{found:?}").contains("own-secret"), "{found:?}");
}

#[test]
fn what_leaked_in_other_letters_or_was_cut_in_its_middle_is_not_told_either() {
    let secret = "own-secret-that-is-long";
    let mut case = asking(Answers {
        json: vec!["/none".into()],
        ..Answers::default()
    });
    case.never_downstream = vec![secret.into()];
    let told = |body: &str| {
        let found = check(&suite(), &case, &observed("application/json", body));
        assert!(!found.faults.is_empty(), "{found:?}");
        format!("{found:?}")
    };
    let loud = told(r#"{"error": "OWN-SECRET-THAT-IS-LONG and Own-Secret-That-Is-Long"}"#);
    assert!(loud.contains("own… and own…"), "{loud}");
    assert!(!loud.to_lowercase().contains("own-"), "{loud}");
    // The body is shown up to its 120th byte, which is in the middle of the secret.
    for before in 35..50 {
        let padding = "é".repeat(before);
        let cut = told(&format!(r#"{{"a": "{padding}", "error": "{secret}"}}"#));
        assert!(!cut.contains("own-"), "{cut}");
    }
    case.never_downstream = Vec::new();
    case.never_upstream = vec![secret.into()];
    let mut named = unary();
    named.arrived[0][0]
        .headers
        .push(("x-OWN-secret-that-is-long".into(), Vec::new()));
    let found = check(&suite(), &case, &named);
    assert!(format!("{found:?}").contains("header x-own…"), "{found:?}");
}

#[test]
fn a_metric_that_grows_otherwise_or_is_not_there_is_a_fault() {
    let mut case = case();
    let growth = |by, optional| Growth {
        metric: "limited".into(),
        by,
        optional,
    };
    case.metrics = vec![growth(By::Count(4), false)];
    let moved = |before: &str, after: &str| {
        let selector = selector("refused_total").expect("a series");
        let mut observed = unary();
        observed.metrics = vec![Moved::Read {
            before: reading(before, &selector),
            after: reading(after, &selector),
            selector,
        }];
        observed
    };
    let found = holds(&case, &moved("refused_total 3\n", "refused_total 7\n"));
    assert!(
        found.evidence.contains(&"refused_total 3 -> 7".to_owned()),
        "{found:?}"
    );
    holds(&case, &moved("", "refused_total 4\n"));
    fails(
        &case,
        &moved("refused_total 3\n", "refused_total 6\n"),
        "grew by 3; expected 4",
    );
    fails(
        &case,
        &moved("refused_total 3\n", "refused_total 8\n"),
        "grew by 5; expected 4",
    );
    fails(
        &case,
        &moved("", "refused_totals 4\n"),
        "refused_total is not there; nearest: refused_totals",
    );
    for (before, after) in [("3", "NaN"), ("NaN", "7"), ("+Inf", "+Inf"), ("3", "-Inf")] {
        let page = |value: &str| format!("refused_total {value}\n");
        fails(
            &case,
            &moved(&page(before), &page(after)),
            "which is no number; expected 4 more",
        );
    }
    let mut unknown = unary();
    unknown.metrics = vec![Moved::Unknown];
    fails(&case, &unknown, "--metrics limited=URL#SERIES");
    case.metrics = vec![growth(By::Count(4), true)];
    holds(&case, &unknown);
    case.metrics = vec![growth(By::TotalTokens, false)];
    holds(&case, &moved("refused_total 3\n", "refused_total 10\n"));
    fails(
        &case,
        &moved("refused_total 3\n", "refused_total 9\n"),
        "grew by 6; expected 7",
    );
}

#[test]
fn a_call_past_the_gateway_is_no_answer_of_the_gateway() {
    let mut case = case();
    case.calls[0].to = To::Upstream(1);
    case.never_downstream = vec!["own-secret".into()];
    let mut direct = unary();
    direct.arrived[0].clear();
    first(&mut direct).answer.body = b"own-secret".to_vec();
    let found = holds(&case, &direct);
    assert!(found.evidence[0].contains("straight to two"), "{found:?}");
}

#[test]
fn a_secret_is_found_in_the_raw_bytes_of_either_side_in_each_disguise() {
    let secret = "Up-key_7/x";
    let bearer = format!("Bearer {secret}");
    let base64 = |alphabet: &base64::engine::GeneralPurpose, offset: usize| {
        base64::Engine::encode(alphabet, format!("{}{bearer}.", "y".repeat(offset)))
    };
    let hex: String = secret.bytes().map(|byte| format!("{byte:02X}")).collect();
    let (standard, url) = (
        &base64::engine::general_purpose::STANDARD,
        &base64::engine::general_purpose::URL_SAFE,
    );
    let mut disguises = vec![
        (
            "plain",
            format!("HTTP/1.1 103 Early Hints\r\nlink: {secret}\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"),
        ),
        (
            "plain",
            format!("5;k={}\r\nhello\r\n0\r\n\r\n", secret.to_uppercase()),
        ),
        ("plain", format!("SSH-2.0 {secret}")),
        ("hexadecimal", format!("x: {hex}")),
        ("percent-encoded", "x: Up%2Dkey%5F7%2Fx".to_owned()),
        (
            "escaped as JSON escapes",
            r#"{"x":"Up\u002dkey\u005F7\/x"}"#.to_owned(),
        ),
    ];
    for offset in 0..3 {
        disguises.push(("base64", base64(standard, offset)));
        disguises.push(("base64", base64(url, offset)));
    }
    for (name, bytes) in disguises {
        let mut case = case();
        case.never_upstream = vec![secret.into()];
        let mut up = unary();
        up.wires[0].push(bytes.clone().into_bytes());
        let found = check(&suite(), &case, &up).faults.join("; ");
        let place = format!("arrived at one in the bytes of a connection, {name}");
        assert!(
            found.contains(&place) && !found.contains(secret),
            "{bytes}: {found}"
        );
        let mut case = self::case();
        case.never_downstream = vec![secret.into()];
        let mut down = unary();
        first(&mut down).answer.raw = bytes.clone().into_bytes();
        let found = check(&suite(), &case, &down).faults.join("; ");
        let place = format!("came back in the bytes of a connection, {name}");
        assert!(
            found.contains(&place) && !found.contains(secret),
            "{bytes}: {found}"
        );
    }
    let mut case = case();
    case.never_upstream = vec![secret.into()];
    let mut fine = unary();
    fine.wires[0].push(base64(standard, 0).replace('W', "X").into_bytes());
    assert_eq!(check(&suite(), &case, &fine).faults, Vec::<String>::new());
}
