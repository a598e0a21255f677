//! From head and body to a decision: what is refused, edited, reserved and given back.
//!
//! Not here: random courses of reservations (`tests/model/holds.rs`).

use bytes::Bytes;
use std::time::Duration;
use wire::call::{CallHead, Splice, apply, splices};
use wire::head::RequestHead;

use super::super::MAX_LIMITS;
use super::super::identify::{self, Identified};
use super::{Admitted, Decision, Opened, admit, open, purpose};
use crate::caller::Peer;
use crate::clock::Mono;
use crate::estimate::Estimator;
use crate::fixture::{BackendPlan, ONE, RoutePlan, rate, request, snapshot};
use crate::id::{LimitId, RouteId, WorkloadId};
use crate::limit::Kind::{Requests, Tokens as TokenKind};
use crate::operation::Operation::{
    self, Chat, Completions, CountTokens, Embeddings, Images, Messages, Models, Moderations,
    Rerank, Responses, Speech, Transcriptions,
};
use crate::record::{Count, Tokens};
use crate::refusal::Refusal;
use crate::revision::Revision;
use crate::shard::Shard;
use crate::snapshot::Snapshot;

const NOW: Mono = Mono(1_000_000_000_000);
const ME: (&str, &str) = ("x-workload-app", "ide");

fn revision(plans: &[RoutePlan<'_>]) -> Revision {
    Revision::first(snapshot(plans))
}

fn plain() -> Revision {
    revision(&[plan()])
}

fn plan() -> RoutePlan<'static> {
    RoutePlan {
        workloads: &["ide"],
        backends: &[ONE],
        ..RoutePlan::default()
    }
}

/// What an exchange does with a head.
fn opened_by(head: &RequestHead, length: Option<u64>, s: &Snapshot) -> Result<Opened, Refusal> {
    let operation = purpose(head)?;
    let peer = Peer::from(std::net::IpAddr::from([127, 0, 0, 1]));
    let mut shard = Shard::new(s, None, 1);
    match identify::identify(head, &peer, s, &mut shard, 0) {
        Ok(Identified::As(workload, ..)) => open(head, length, operation, workload, s),
        Ok(Identified::Asks(_)) => panic!("a header asks nobody"),
        Err(unidentified) => Err(unidentified.refusal),
    }
}

fn opened_with(
    method: &str,
    target: &str,
    length: Option<u64>,
    fields: &[(&str, &str)],
) -> Result<Operation, &'static str> {
    let opened = opened_by(&request(method, target, fields), length, &plain().snapshot);
    opened
        .map(|o| o.operation)
        .map_err(|refusal| refusal.reply().code)
}

/// What every call with a JSON body says.
const JSON: (&str, &str) = ("content-type", "application/json");

fn chat_with(fields: &[(&str, &str)]) -> Result<Operation, &'static str> {
    let fields: Vec<_> = fields.iter().copied().chain([ME]).collect();
    opened_with("POST", "/v1/chat/completions", Some(2), &fields)
}

fn decide(s: &Revision, operation: Operation, body: &str) -> Result<Decision, Refusal> {
    let call = operation
        .reads_body()
        .then(|| CallHead::read(body.as_bytes()).expect("a call"));
    let opened = Opened {
        workload: WorkloadId(0),
        operation,
        listed: None,
    };
    admit(
        opened,
        None,
        |_| Ok(()),
        call.as_ref(),
        body.len() as u64,
        |_| Estimator::default(),
        &mut None,
        NOW,
        0,
        &s.snapshot,
        &s.levels,
    )
}

fn admitted(s: &Revision, operation: Operation, body: &str) -> Admitted {
    match decide(s, operation, body) {
        Ok(Decision::Forward(admitted)) => admitted,
        other => panic!("{other:?}"),
    }
}

/// The edits of its body, as an attempt makes them.
fn edits(admitted: &Admitted, body: &str) -> Vec<Splice> {
    let call = CallHead::read(body.as_bytes()).expect("a call");
    splices(&call, admitted.model.as_deref(), admitted.force_usage)
}

/// The body as it would go upstream, checked to be JSON.
fn sent(admitted: &Admitted, body: &str) -> String {
    let parts = apply(
        &[Bytes::copy_from_slice(body.as_bytes())],
        &edits(admitted, body),
    );
    let sent = String::from_utf8(parts.concat()).expect("text");
    serde_json::from_str::<serde_json::Value>(&sent).expect("still JSON");
    sent
}

fn left(s: &Revision, limit: u32) -> u64 {
    let bucket = s.levels.bucket(LimitId(limit));
    bucket.expect("a limit").level(NOW).remaining
}

fn used(prompt: u64, completion: u64) -> Tokens {
    Tokens {
        prompt: Count::Reported(prompt),
        completion: Count::Counted(completion),
        ..Tokens::default()
    }
}

mod bounds {
    use super::*;

    #[test]
    fn only_a_call_that_caps_itself_has_a_most() {
        let s = plain();
        let most = |operation, body: &str| admitted(&s, operation, body).estimate.at_most;
        let capped = r#"{"model":"m","max_tokens":100,"n":2}"#;
        let bytes = capped.len() as u64;
        assert_eq!(most(Chat, capped), Some(bytes + 1024 + 200));
        assert_eq!(most(Responses, capped), None);
        assert_eq!(most(Chat, r#"{"model":"m"}"#), None);
        assert_eq!(most(Embeddings, r#"{"model":"m"}"#), Some(13 + 1024));
    }
}

mod opening {
    use super::*;

    #[test]
    fn a_known_caller_with_a_json_body_is_welcome() {
        assert_eq!(chat_with(&[("content-type", "application/json")]), Ok(Chat));
        assert_eq!(opened_with("GET", "/v1/models", None, &[ME]), Ok(Models));
        let form = opened_with("POST", "/v1/audio/translations", Some(5), &[ME]);
        assert_eq!(form, Ok(Transcriptions));
    }

    #[test]
    fn a_call_that_is_not_known_and_not_listed_is_refused_from_its_head() {
        let refused = opened_with("POST", "/v1/files", Some(5), &[ME]);
        assert_eq!(refused, Err("operation_not_allowed"));
        let stranger = opened_with("POST", "/v1/files", Some(5), &[]);
        assert_eq!(stranger, Err("workload_not_registered"));
        let message = |path: &str| {
            let refused = opened_by(&request("POST", path, &[ME]), None, &plain().snapshot);
            refused.expect_err("unknown").reply().message
        };
        let short = message("/v1/v1/chat/completions");
        assert!(
            short.starts_with("POST /v1/v1/chat/completions is not"),
            "{short}"
        );
        assert!(short.contains("`unread`"), "{short}");
        let long = message(&format!("/v1/{}", "x".repeat(60_000)));
        assert!(long.len() < 400, "{}", long.len());
    }

    #[test]
    fn content_types_that_are_json_in_utf8_and_those_that_are_not() {
        let json = [
            "application/json",
            "Application/JSON",
            "application/json; charset=utf-8",
            "application/json;charset=UTF-8",
            "application/json; charset=\"utf-8\"",
            "application/json; profile=x; charset=utf-8",
        ];
        for value in json {
            assert_eq!(chat_with(&[("content-type", value)]), Ok(Chat), "{value}");
        }
        let other = [
            "",
            "text/plain",
            "text/json",
            "application/jsonx",
            "application/json, text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "application/json; charset=utf-16",
            "application/json; charset=not-utf-8",
            "application/json; charset=utf-8; charset=utf-7",
        ];
        for value in other {
            let got = chat_with(&[("content-type", value)]);
            assert_eq!(got, Err("unsupported_content_type"), "{value}");
        }
        let twice = [
            ("content-type", "application/json"),
            ("content-type", "application/json"),
        ];
        assert_eq!(chat_with(&twice), Err("unsupported_content_type"));
        assert_eq!(chat_with(&[]), Err("unsupported_content_type"), "none");
    }

    #[test]
    fn an_encoded_body_is_refused_where_policy_must_read_it() {
        for value in [
            "gzip",
            "br",
            "zstd",
            "deflate, gzip",
            "identity, gzip",
            "x",
            "",
        ] {
            let got = chat_with(&[("content-encoding", value)]);
            assert_eq!(got, Err("unsupported_content_encoding"), "{value}");
        }
        let second = [
            ("content-encoding", "identity"),
            ("content-encoding", "gzip"),
        ];
        assert_eq!(chat_with(&second), Err("unsupported_content_encoding"));
        assert_eq!(
            chat_with(&[("content-encoding", "Identity"), JSON]),
            Ok(Chat)
        );
        let passed = [
            ME,
            ("content-encoding", "gzip"),
            ("content-type", "audio/mpeg"),
        ];
        assert_eq!(
            opened_with("POST", "/v1/audio/translations", Some(5), &passed),
            Ok(Transcriptions)
        );
    }

    #[test]
    fn a_body_announced_too_large_is_refused_from_its_head() {
        let bound = plain().snapshot.bounds.body_bytes;
        let with = |length| opened_with("POST", "/v1/chat/completions", length, &[ME, JSON]);
        assert_eq!(with(Some(bound)), Ok(Chat));
        assert_eq!(with(Some(bound + 1)), Err("request_too_large"));
        assert_eq!(with(Some(u64::MAX)), Err("request_too_large"));
        assert_eq!(with(None), Ok(Chat), "chunked: the host counts");
        let passed = opened_with("POST", "/v1/images/edits", Some(bound + 1), &[ME]);
        assert_eq!(passed, Err("request_too_large"));
    }

    #[test]
    fn the_first_thing_wrong_is_the_one_said() {
        let two = [
            ("authorization", "a"),
            ("x-api-key", "b"),
            ("content-encoding", "gzip"),
        ];
        let at = |method, target| opened_with(method, target, Some(u64::MAX), &two);
        assert_eq!(at("POST", "/nowhere"), Err("unknown_url"));
        assert_eq!(at("PUT", "/v1/embeddings"), Err("method_not_allowed"));
        assert_eq!(at("POST", "/v1/embeddings"), Err("conflicting_credentials"));
        let stranger = opened_with("POST", "/v1/embeddings", Some(u64::MAX), &[]);
        assert_eq!(stranger, Err("workload_not_registered"));
        assert_eq!(chat_with(&two), Err("conflicting_credentials"));
        assert_eq!(
            chat_with(&[("x-workload-app", "ide")]),
            Err("identity_repeated")
        );
        assert_eq!(
            chat_with(&[("authorization", "Bearer malicious-token"), JSON]),
            Ok(Chat)
        );
    }
}

mod editing {
    use super::*;

    fn with_model(model: &'static str) -> Revision {
        revision(&[RoutePlan {
            model: Some(model),
            ..plan()
        }])
    }

    #[test]
    fn a_call_that_needs_no_change_is_not_edited() {
        for body in [
            r#"{"model":"m","messages":[]}"#,
            r#"{"model":"m","stream":false}"#,
            r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#,
        ] {
            let call = admitted(&plain(), Chat, body);
            assert!(edits(&call, body).is_empty(), "{body}");
            assert!(!call.withhold_usage, "{body}");
            assert_eq!(call.model.as_deref(), Some("m"));
        }
    }

    #[test]
    fn a_models_override_replaces_the_name_or_adds_it() {
        let s = with_model("gemini-2.5-flash");
        for (body, expected) in [
            (
                r#"{"model":"m","n":1}"#,
                r#"{"model":"gemini-2.5-flash","n":1}"#,
            ),
            (r#"{"model": null }"#, r#"{"model": "gemini-2.5-flash" }"#),
            (r#"{"n":1}"#, r#"{"model":"gemini-2.5-flash","n":1}"#),
            ("{}", r#"{"model":"gemini-2.5-flash"}"#),
            (
                r#"{"model":"gemini-2.5-flash"}"#,
                r#"{"model":"gemini-2.5-flash"}"#,
            ),
        ] {
            let call = admitted(&s, Chat, body);
            assert_eq!(sent(&call, body), expected);
            assert_eq!(call.model.as_deref(), Some("gemini-2.5-flash"));
        }
    }

    #[test]
    fn usage_is_asked_for_and_withheld_only_from_a_client_that_did_not_ask() {
        let asks = r#""stream_options":{"include_usage":true}"#;
        for (body, withheld, expected) in [
            (
                r#"{"stream":true}"#,
                true,
                format!(r#"{{{asks},"stream":true}}"#),
            ),
            (
                r#"{"stream":true,"stream_options":{}}"#,
                true,
                format!(r#"{{"stream":true,{asks}}}"#),
            ),
            (
                r#"{"stream":true,"stream_options":null}"#,
                true,
                format!(r#"{{"stream":true,{asks}}}"#),
            ),
            (
                r#"{"stream":true,"stream_options":{"include_usage":false}}"#,
                true,
                format!(r#"{{"stream":true,{asks}}}"#),
            ),
            (
                r#"{"stream":true,"stream_options":{"include_usage":true}}"#,
                false,
                format!(r#"{{"stream":true,{asks}}}"#),
            ),
            (
                r#"{"stream":false}"#,
                false,
                r#"{"stream":false}"#.to_owned(),
            ),
            ("{}", false, "{}".to_owned()),
        ] {
            for operation in [Chat, Completions] {
                let call = admitted(&plain(), operation, body);
                assert_eq!(call.withhold_usage, withheld, "{body}");
                assert_eq!(sent(&call, body), expected, "{body}");
            }
        }
    }

    #[test]
    fn operations_that_report_usage_unasked_are_not_edited_for_it() {
        let body = r#"{"model":"m","stream":true}"#;
        for operation in [Responses, Embeddings] {
            let call = admitted(&plain(), operation, body);
            assert!(
                edits(&call, body).is_empty() && !call.withhold_usage,
                "{operation:?}"
            );
            assert!(call.stream);
        }
    }

    #[test]
    fn both_edits_at_once_stay_one_document() {
        let body = r#"{"stream":true,"model":"m"}"#;
        let call = admitted(&with_model("x"), Chat, body);
        let asks = r#""stream_options":{"include_usage":true}"#;
        assert_eq!(
            sent(&call, body),
            format!(r#"{{{asks},"stream":true,"model":"x"}}"#)
        );
    }

    #[test]
    fn a_form_is_never_read_or_edited() {
        let call = admitted(&plain(), Transcriptions, "not json");
        assert!(!call.force_usage);
        assert_eq!((call.prompt_estimate, call.model), (0, None));
    }
}

mod routing {
    use super::*;

    #[test]
    fn models_are_answered_here_where_they_are_known() {
        let s = revision(&[RoutePlan {
            models: &["b", "a"],
            limits: &[(Requests, rate(1, 60))],
            ..plan()
        }]);
        for _ in 0..3 {
            match decide(&s, Models, "") {
                Ok(Decision::Models(names)) => {
                    assert_eq!(names.iter().map(|n| &**n).collect::<Vec<_>>(), ["a", "b"]);
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(left(&s, 0), 1, "and cost nothing");
    }

    #[test]
    fn models_that_only_the_backend_knows_are_asked_there() {
        let call = admitted(&plain(), Models, "");
        assert_eq!((call.route, call.model), (RouteId(0), None));
    }

    #[test]
    fn an_unknown_model_holds_nothing() {
        let s = revision(&[RoutePlan {
            models: &["m"],
            limits: &[(Requests, rate(2, 60))],
            ..plan()
        }]);
        let refused = decide(&s, Chat, r#"{"model":"x"}"#).expect_err("no route");
        assert_eq!(refused.reply().code, "model_not_found");
        assert_eq!(left(&s, 0), 2);
    }

    #[test]
    fn a_name_the_configuration_knows_is_shared_and_not_copied() {
        let serving = BackendPlan {
            models: &["m"],
            ..ONE
        };
        let s = revision(&[RoutePlan {
            backends: &[serving],
            ..plan()
        }]);
        let call = admitted(&s, Chat, r#"{"model":"m"}"#);
        let known = &s.snapshot.backends[0].models[0];
        assert!(
            call.model
                .is_some_and(|m| std::sync::Arc::ptr_eq(&m, known))
        );
    }
}

mod reserving {
    use super::*;

    /// 41 bytes, so 11 prompt tokens, with a cap of 90: a reservation of 101.
    const HUNDRED: &str = r#"{"model":"m","max_tokens":90,"user":"ab"}"#;

    fn both() -> Revision {
        let limits = &[(Requests, rate(5, 60)), (TokenKind, rate(1000, 60))];
        revision(&[RoutePlan { limits, ..plan() }])
    }

    #[test]
    fn a_call_reserves_one_request_and_its_prompt_and_cap() {
        let s = both();
        let call = admitted(&s, Chat, HUNDRED);
        assert_eq!(call.prompt_estimate, 11);
        assert_eq!((left(&s, 0), left(&s, 1)), (4, 899));
        call.reservation
            .settle(&used(30, 20), None, NOW, &s.snapshot, &s.levels);
        assert_eq!(
            (left(&s, 0), left(&s, 1)),
            (4, 950),
            "a request stays counted"
        );
    }

    #[test]
    fn what_was_settled_is_corrected_by_the_count_in_either_direction() {
        for (counted, remaining) in [(70, 930), (20, 980), (2000, 0)] {
            let s = both();
            let call = admitted(&s, Chat, HUNDRED);
            let settled = call
                .reservation
                .settle(&used(30, 20), None, NOW, &s.snapshot, &s.levels);
            assert_eq!((left(&s, 0), left(&s, 1)), (4, 950));
            settled.correct(&used(counted, 0), None, &s);
            assert_eq!((left(&s, 0), left(&s, 1)), (4, remaining), "{counted}");
        }
    }

    #[test]
    fn a_release_gives_all_back() {
        let s = both();
        admitted(&s, Chat, HUNDRED)
            .reservation
            .release(NOW, &s.snapshot, &s.levels);
        assert_eq!((left(&s, 0), left(&s, 1)), (5, 1000));
    }

    #[test]
    fn what_is_unknown_at_the_end_counts_as_nothing_and_estimates_count() {
        let s = both();
        admitted(&s, Chat, HUNDRED).reservation.settle(
            &Tokens::default(),
            None,
            NOW,
            &s.snapshot,
            &s.levels,
        );
        assert_eq!(left(&s, 1), 1000);
        let guessed = Tokens {
            prompt: Count::Estimated(11),
            ..Tokens::default()
        };
        admitted(&s, Chat, HUNDRED)
            .reservation
            .settle(&guessed, None, NOW, &s.snapshot, &s.levels);
        assert_eq!(left(&s, 1), 989);
    }

    #[test]
    fn an_overspend_is_carried_as_debt() {
        let s = both();
        admitted(&s, Chat, HUNDRED).reservation.settle(
            &used(u64::MAX, 5),
            None,
            NOW,
            &s.snapshot,
            &s.levels,
        );
        assert_eq!(left(&s, 1), 0);
        let refused = decide(&s, Embeddings, HUNDRED).expect_err("in debt");
        assert_eq!(refused.limited(), Some(TokenKind));
    }

    #[test]
    fn a_refusal_by_the_second_limit_gives_the_first_back() {
        let s = both();
        let nearly = admitted(&s, Chat, r#"{"max_tokens":950}"#);
        for _ in 0..20 {
            let refused = decide(&s, Chat, HUNDRED).expect_err("no tokens left");
            assert!(
                matches!(
                    refused,
                    Refusal::Limited {
                        kind: TokenKind,
                        amount: 1000,
                        ..
                    }
                ),
                "{refused:?}"
            );
        }
        assert_eq!(left(&s, 0), 4, "only the admitted call counts");
        nearly.reservation.release(NOW, &s.snapshot, &s.levels);
        assert_eq!((left(&s, 0), left(&s, 1)), (5, 1000));
    }

    #[test]
    fn a_refusal_by_the_first_limit_never_touches_the_second() {
        let s = both();
        for _ in 0..5 {
            admitted(&s, Embeddings, "{}").reservation.settle(
                &used(1, 0),
                None,
                NOW,
                &s.snapshot,
                &s.levels,
            );
        }
        let before = left(&s, 1);
        let refused = decide(&s, Chat, HUNDRED).expect_err("no requests left");
        let Refusal::Limited {
            kind: Requests,
            amount: 5,
            per,
            wait,
            ..
        } = refused
        else {
            panic!("{refused:?}");
        };
        assert_eq!(
            (per, wait),
            (Duration::from_secs(60), Duration::from_secs(12))
        );
        assert_eq!(left(&s, 1), before);
    }

    #[test]
    fn a_call_larger_than_the_bucket_is_told_so_and_holds_nothing() {
        let s = both();
        let refused = decide(&s, Chat, r#"{"max_tokens":1000}"#).expect_err("too large");
        assert!(
            matches!(
                refused,
                Refusal::LargerThanLimit {
                    asked: 1005,
                    burst: 1000,
                    ..
                }
            ),
            "{refused:?}"
        );
        assert_eq!(refused.reply().should_retry, Some(false));
        assert_eq!((left(&s, 0), left(&s, 1)), (5, 1000));
    }

    #[test]
    fn absurd_caps_neither_overflow_nor_pass() {
        let s = both();
        let body = r#"{"max_tokens":4294967295,"n":4294967295}"#;
        let refused = decide(&s, Chat, body).expect_err("too large");
        assert!(matches!(refused, Refusal::LargerThanLimit { .. }));
    }

    /// What a call holds of a limit besides its prompt; `None` where it caps nothing.
    fn held(operation: Operation, body: &str) -> Option<u64> {
        let limits = &[(TokenKind, rate(u64::MAX, 60))];
        let s = revision(&[RoutePlan { limits, ..plan() }]);
        let call = admitted(&s, operation, body);
        let held = call.estimate.reserved - call.prompt_estimate;
        let guessed = Estimator::default().completion(None, 1);
        (held != guessed).then_some(held)
    }

    #[test]
    fn a_call_is_held_to_the_greatest_of_the_caps_that_its_operation_has() {
        let caps = [
            r#""max_tokens":1000"#,
            r#""max_completion_tokens":2000"#,
            r#""max_output_tokens":3000"#,
        ];
        for set in 0..8_usize {
            let is_set = |at: usize| set >> at & 1 == 1;
            let members: Vec<&str> = (0..3).filter(|at| is_set(*at)).map(|at| caps[at]).collect();
            let cap = |at, cap: u64| is_set(at).then_some(cap);
            for members in [members.join(","), {
                let mut members = members;
                members.reverse();
                members.join(",")
            }] {
                let body = format!("{{{members}}}");
                let chat = cap(1, 2000).max(cap(0, 1000));
                assert_eq!(held(Chat, &body), chat, "chat: {body}");
                assert_eq!(held(Completions, &body), cap(0, 1000), "{body}");
                assert_eq!(held(Operation::Messages, &body), cap(0, 1000), "{body}");
                assert_eq!(held(Responses, &body), cap(2, 3000), "{body}");
            }
        }
        let older_is_greater = r#"{"max_completion_tokens":1,"max_tokens":5000}"#;
        assert_eq!(held(Chat, older_is_greater), Some(5000));
        let another_is_greater = r#"{"max_tokens":1,"n_predict":100000}"#;
        assert_eq!(held(Chat, another_is_greater), Some(100_000));
        assert_eq!(held(Completions, another_is_greater), Some(100_000));
        assert_eq!(held(Operation::Messages, another_is_greater), Some(1));
        let endless = r#"{"max_tokens":1,"n_predict":-1}"#;
        assert_eq!(held(Chat, endless), Some(u64::from(u32::MAX)));
        // Two engines take 0 in a chat call for no cap; of a completion, 0 asks for the prompt's own scores.
        assert_eq!(held(Chat, r#"{"max_tokens":0}"#), None);
        assert_eq!(held(Completions, r#"{"max_tokens":0}"#), Some(0));
    }

    #[test]
    fn a_cap_counts_for_each_answer_to_each_prompt() {
        let rows = [
            (Chat, r#""n":3"#, 300),
            (Chat, r#""n":0"#, 100),
            (Chat, r#""best_of":4"#, 400),
            (Chat, r#""n":5,"best_of":4"#, 500),
            // A chat call has no prompt of its own.
            (Chat, r#""prompt":["a","b"]"#, 100),
            (Completions, r#""prompt":"a""#, 100),
            (Completions, r#""prompt":[]"#, 100),
            (Completions, r#""prompt":null"#, 100),
            (Completions, r#""prompt":["a","b"]"#, 200),
            (Completions, r#""prompt":[1,2,3]"#, 100),
            (Completions, r#""prompt":[[1,2],[3],[]]"#, 300),
            (Completions, r#""prompt":["a",[3],[]],"n":2"#, 600),
            (Completions, r#""prompt":["a","b"],"n":2,"best_of":7"#, 1400),
            (Completions, r#""prompt":["a","b"],"n":7,"best_of":2"#, 1400),
            (Responses, r#""n":3,"best_of":4"#, 100),
            (Operation::Messages, r#""n":3"#, 100),
        ];
        for (operation, members, completion) in rows {
            let body = format!(r#"{{"max_tokens":100,"max_output_tokens":100,{members}}}"#);
            assert_eq!(held(operation, &body), Some(completion), "{members}");
        }
        let guessed = Estimator::default().completion(None, 6);
        let body = r#"{"prompt":["a","b"],"n":3}"#;
        assert_eq!(held(Completions, body), Some(guessed));
        let absurd = r#"{"max_tokens":4294967295,"n":4294967295,"prompt":["a","b","c"]}"#;
        let s = plain();
        let call = admitted(&s, Completions, absurd);
        assert_eq!(call.estimate.reserved, u64::MAX);
        call.reservation.release(NOW, &s.snapshot, &s.levels);
    }

    #[test]
    fn a_prompt_of_token_ids_is_estimated_by_their_number() {
        let s = both();
        let prompt = |operation, body: &str| {
            let call = admitted(&s, operation, body);
            call.reservation.release(NOW, &s.snapshot, &s.levels);
            call.prompt_estimate
        };
        let ids = format!(r#"{{"max_tokens":1,"prompt":[{}1]}}"#, "1,".repeat(299));
        assert_eq!(prompt(Completions, &ids), 300);
        let lists = r#"{"max_tokens":1,"prompt":[[1,2],[3]]}"#;
        assert_eq!(prompt(Completions, lists), 3);
        let text = r#"{"max_tokens":1,"prompt":["a",[1,2]]}"#;
        assert_eq!(prompt(Completions, text), (text.len() as u64).div_ceil(4));
        assert_eq!(prompt(Chat, lists), (lists.len() as u64).div_ceil(4));
    }

    #[test]
    fn only_what_generates_reserves_completion_tokens() {
        let s = both();
        let call = admitted(&s, Embeddings, HUNDRED);
        assert_eq!(left(&s, 1), 989, "the prompt alone");
        call.reservation.release(NOW, &s.snapshot, &s.levels);
        let call = admitted(&s, Images, r#"{"n":4,"model":"m","prompt":"a cat"}"#);
        assert_eq!(left(&s, 1), 991, "the prompt alone");
        call.reservation
            .settle(&used(100, 100), None, NOW, &s.snapshot, &s.levels);
        assert_eq!(left(&s, 1), 800, "what is reported is settled");
    }

    #[test]
    fn each_workload_has_buckets_of_its_own() {
        let limits = &[(Requests, rate(1, 60))];
        let s = revision(&[RoutePlan {
            workloads: &["ide", "ci"],
            limits,
            ..plan()
        }]);
        admitted(&s, Chat, "{}").reservation.settle(
            &Tokens::default(),
            None,
            NOW,
            &s.snapshot,
            &s.levels,
        );
        assert_eq!((left(&s, 0), left(&s, 1)), (0, 1));
    }

    #[test]
    fn every_limit_of_the_most_a_grant_may_have_is_held() {
        let limits = [(TokenKind, rate(1000, 60)); MAX_LIMITS];
        let s = revision(&[RoutePlan {
            limits: &limits,
            ..plan()
        }]);
        let call = admitted(&s, Embeddings, HUNDRED);
        let all = || 0..u32::try_from(MAX_LIMITS).expect("few");
        assert!(all().all(|limit| left(&s, limit) == 989));
        call.reservation
            .settle(&used(5, 0), None, NOW, &s.snapshot, &s.levels);
        assert!(all().all(|limit| left(&s, limit) == 995));
    }
}

#[test]
fn a_guessed_completion_never_exceeds_what_a_small_limit_can_hold() {
    let guess = super::Cost {
        prompt: 20,
        prompt_least: 20,
        prompt_charged: 20,
        completion: 256,
        is_capped: false,
        is_bounded: false,
    };
    assert_eq!(guess.units(100), 100);
    assert_eq!(guess.units(1000), 276);
    let capped = super::Cost {
        is_capped: true,
        ..guess
    };
    assert_eq!(capped.units(100), 276);
    let long = super::Cost {
        prompt: 200,
        prompt_least: 200,
        ..guess
    };
    assert_eq!(long.units(100), 456);
}

#[test]
fn what_other_calls_taught_a_route_neither_refuses_for_good_nor_opens_a_budget() {
    let call = CallHead::read(br#"{"model":"m","max_tokens":10}"#).expect("a call");
    let cost = |bytes, estimator: &Estimator| {
        super::Cost::of(Operation::Chat, Some(&call), bytes, estimator, None)
    };
    // Short prompts behind a long template: two tokens a byte.
    let mut dense = Estimator::default();
    // Bodies of white space.
    let mut empty = Estimator::default();
    for _ in 0..400 {
        dense.learn(90, Some(180), None);
        empty.learn(40_000, Some(69), None);
    }
    let fits = cost(200_000, &dense);
    assert!(fits.prompt > 390_000, "{fits:?}");
    assert_eq!(fits.units(60_000), 60_000, "50,000 tokens of a text");
    let never = cost(300_000, &dense);
    assert!(never.units(60_000) > 60_000, "{never:?}");
    let padded = cost(200_000, &empty);
    assert!(padded.prompt < 2_500, "{padded:?}");
    assert_eq!(padded.prompt_charged, 20_000);
}

mod unread {
    use super::*;
    use crate::budget::{Budget, Calendar, Every, Scope, Unit};
    use crate::id::{BudgetId, PriceId};
    use crate::price::{Pico, Price, Rates};
    use crate::snapshot::Snapshot;
    use crate::unread::{Listed, Template};
    use wire::head::Method;

    const FREE: Rates = Rates::flat(Pico(0), Pico(0));

    /// A listed call whose price is the only one.
    fn file(tokens: Option<u64>) -> Listed {
        Listed {
            method: Method::Post,
            path: Template::read("/v1/files").expect("a template"),
            tokens,
            price: Some(PriceId(0)),
        }
    }

    fn priced(nanos: i128, s: &mut Snapshot) {
        s.prices.add(Price {
            id: "p".into(),
            currency: "USD".into(),
            request: Pico(nanos * 1000),
            rates: FREE,
            tiers: Vec::new(),
        });
    }

    fn budgeted(unit: Unit, Revision { mut snapshot, .. }: Revision) -> Revision {
        let calendar = Calendar {
            every: Every::Day,
            east_min: 0,
        };
        snapshot.budgets.list.push(Budget {
            name: "b".into(),
            unit,
            amount: 1000,
            calendar,
            scope: Scope::Everyone,
            whose: policy::subject::Whose::Workload,
            models: Vec::new(),
        });
        snapshot.budgets.of = vec![vec![BudgetId(0)]; snapshot.workloads.len()];
        snapshot.budgets.groups = vec![None; snapshot.workloads.len()];
        Revision::first(snapshot)
    }

    fn held(s: &Revision) -> u64 {
        let period = s.snapshot.budgets.list[0].calendar.of(0);
        let spent = s.levels.spent(BudgetId(0)).expect("a budget");
        spent.level(period).held
    }

    fn upload(s: &Revision) -> Result<Decision, Refusal> {
        let opened = opened_by(&request("POST", "/v1/files", &[ME]), None, &s.snapshot)?;
        admit(
            opened,
            None,
            |_| Ok(()),
            None,
            5,
            |_| Estimator::default(),
            &mut None,
            NOW,
            0,
            &s.snapshot,
            &s.levels,
        )
    }

    #[test]
    fn a_listed_call_is_charged_what_its_route_says() {
        let list = [file(Some(300))];
        let mut s = revision(&[RoutePlan {
            limits: &[(Requests, rate(5, 60)), (TokenKind, rate(1000, 60))],
            unread: &list,
            ..plan()
        }]);
        priced(40, &mut s.snapshot);
        let s = budgeted(Unit::Money("USD".into()), s);
        let Ok(Decision::Forward(call)) = upload(&s) else {
            panic!("not admitted");
        };
        assert_eq!((left(&s, 0), left(&s, 1)), (4, 700));
        assert_eq!((call.listed, call.model.clone()), (Some(0), None));
        assert_eq!(
            (call.prompt_estimate, call.estimate.at_most),
            (300, Some(300))
        );
        assert_eq!(held(&s), 40);
        call.reservation.release(NOW, &s.snapshot, &s.levels);
        assert_eq!((left(&s, 1), held(&s)), (1000, 0));
    }

    #[test]
    fn what_costs_nothing_is_not_refused_for_want_of_tokens_or_money() {
        let list = [file(Some(0))];
        let mut s = revision(&[RoutePlan {
            limits: &[(Requests, rate(50, 60)), (TokenKind, rate(1000, 60))],
            unread: &list,
            ..plan()
        }]);
        priced(0, &mut s.snapshot);
        let s = budgeted(Unit::Money("USD".into()), s);
        let period = s.snapshot.budgets.list[0].calendar.of(0);
        let spent = s.levels.spent(BudgetId(0)).expect("a budget");
        spent.settle(period, 0, 5000);
        let bucket = s.levels.bucket(LimitId(1)).expect("a limit");
        bucket.settle(0, 9000, NOW);
        assert!(matches!(upload(&s), Ok(Decision::Forward(_))));
        for operation in [CountTokens, Models] {
            let call = admitted(&s, operation, r#"{"model":"m"}"#);
            assert_eq!(
                (
                    call.prompt_estimate,
                    call.reservation.for_budgets.is_empty()
                ),
                (0, true)
            );
        }
        assert_eq!(left(&s, 0), 47, "requests count");
        let refused = decide(&s, Chat, r#"{"model":"m"}"#).expect_err("in debt");
        assert_eq!(refused.reply().code, "rate_limit_exceeded");
    }

    #[test]
    fn a_form_passes_only_where_nothing_depends_on_what_is_in_it() {
        let code = |s: &Revision| match decide(s, Transcriptions, "form") {
            Ok(_) => "",
            Err(refusal) => refusal.reply().code,
        };
        let requests = [(Requests, rate(5, 60))];
        let s = revision(&[RoutePlan {
            limits: &requests,
            ..plan()
        }]);
        assert_eq!(code(&s), "");
        let s = budgeted(Unit::Tokens, s);
        assert_eq!(code(&s), "operation_not_charged");
        let tokens = [(TokenKind, rate(5, 60))];
        let counted = RoutePlan {
            limits: &tokens,
            ..plan()
        };
        assert_eq!(code(&revision(&[counted])), "operation_not_charged");
        let by_model = RoutePlan {
            models: &["m"],
            ..plan()
        };
        assert_eq!(code(&revision(&[by_model])), "operation_not_allowed");
        let replaced = RoutePlan {
            model: Some("m"),
            ..plan()
        };
        assert_eq!(code(&revision(&[replaced])), "operation_not_allowed");
    }

    #[test]
    fn what_is_read_and_does_not_generate_reserves_its_prompt() {
        let limits = &[(TokenKind, rate(1000, 60))];
        for operation in [Moderations, Rerank, Speech, Images] {
            let s = revision(&[RoutePlan { limits, ..plan() }]);
            let call = admitted(&s, operation, r#"{"model":"m","input":"0123456789"}"#);
            assert_eq!(
                (left(&s, 0), call.prompt_estimate),
                (991, 9),
                "{operation:?}"
            );
            assert_eq!(call.model.as_deref(), Some("m"));
        }
    }

    #[test]
    fn a_response_is_never_made_in_the_background() {
        let code = |operation, body: &str| {
            decide(&plain(), operation, body).map_err(|refusal| refusal.reply().code)
        };
        for body in [
            r#"{"background":true}"#,
            r#"{"background":"x"}"#,
            r#"{"background":1}"#,
        ] {
            let refused = code(Responses, body).expect_err(body);
            assert_eq!(refused, "background_not_served", "{body}");
            assert!(code(Chat, body).is_ok(), "no such member there");
        }
        for body in ["{}", r#"{"background":false}"#, r#"{"background":null}"#] {
            assert!(code(Responses, body).is_ok(), "{body}");
        }
    }

    #[test]
    fn what_the_upstream_keeps_is_for_a_workload_with_an_account_of_its_own() {
        let shared = revision(&[RoutePlan {
            workloads: &["ide", "ci"],
            limits: &[(Requests, rate(5, 60))],
            ..plan()
        }]);
        let members = [
            (
                "previous_response_id",
                r#"{"previous_response_id":"resp_1"}"#,
            ),
            (
                "conversation",
                r#"{"model":"m","conversation":{"id":"conv_1"}}"#,
            ),
            (
                "conversation",
                r#"{"conversation":"conv_1","previous_response_id":null}"#,
            ),
            ("container", r#"{"container":"c_1"}"#),
        ];
        for (member, body) in members {
            for operation in [Responses, Messages, CountTokens] {
                let refused = decide(&shared, operation, body).expect_err(body).reply();
                assert_eq!(
                    (refused.code, refused.param),
                    ("account_shared", Some(member))
                );
                assert!(decide(&plain(), operation, body).is_ok(), "{body}");
            }
        }
        assert_eq!(left(&shared, 0), 5, "nothing is held");
        for body in ["{}", r#"{"previous_response_id":null}"#] {
            assert!(decide(&shared, Responses, body).is_ok(), "{body}");
        }
        assert!(
            decide(&shared, Chat, r#"{"conversation":"x"}"#).is_ok(),
            "no such member there"
        );
    }
}

/// How far calls without a cap, many at once, overdraw a budget of money.
mod overdraft {
    use std::sync::Arc;

    use super::*;
    use crate::budget::{Budget, Calendar, Every, Scope, Unit};
    use crate::id::{BudgetId, PriceId};
    use crate::price::{Charge, Pico, Price, Rates};

    /// A token costs a thousand of the budget's units (1e-9 USD).
    const TOKEN: u64 = 1_000;
    /// What a call may come to: 1,000 such tokens, a hundred times.
    const AMOUNT: u64 = 100 * 1_000 * TOKEN;
    const BODY: &str = r#"{"model":"m","user":"abcdefghijklmnopqrs"}"#;

    fn budgeted(output_max: Option<u64>) -> Revision {
        let mut s = plain().snapshot;
        let rate = Pico(i128::from(TOKEN) * 1_000);
        let price = Price {
            id: "p".into(),
            currency: "USD".into(),
            request: Pico(0),
            rates: Rates::flat(rate, rate),
            tiers: Vec::new(),
        };
        s.prices.insert("m", None, price);
        s.routes[0].output_max = output_max;
        let calendar = Calendar {
            every: Every::Month,
            east_min: 0,
        };
        s.budgets.list = vec![Budget {
            name: "company".into(),
            unit: Unit::Money("USD".into()),
            amount: AMOUNT,
            scope: Scope::Everyone,
            whose: policy::subject::Whose::Workload,
            models: Vec::new(),
            calendar,
        }];
        s.budgets.of = vec![vec![BudgetId(0)]];
        Revision::first(s)
    }

    /// Lets calls in until the budget refuses, ends all of them with answers of `completion` tokens, and gives how
    /// many there were, what each had reserved, and what the period came to. Nothing is let in afterwards
    /// if that is more than the amount.
    fn filled(s: &Revision, completion: u64) -> (u64, u64, u64) {
        let mut calls = Vec::new();
        while let Ok(Decision::Forward(call)) = decide(s, Chat, BODY) {
            calls.push(call);
        }
        let prompt = calls[0].prompt_estimate;
        let (many, reserved) = (calls.len() as u64, calls[0].estimate.reserved);
        let price = Arc::clone(s.snapshot.prices.of("m", None).expect("a price"));
        for call in calls {
            let tokens = used(prompt, completion);
            let charge = Charge {
                price: PriceId(0),
                cost: price.cost(&tokens),
            };
            call.reservation
                .settle(&tokens, Some(charge), NOW, &s.snapshot, &s.levels);
        }
        let period = s.snapshot.budgets.list[0].calendar.of(0);
        let spent = s.levels.spent(BudgetId(0)).expect("a budget");
        let spent = spent.level(period).held;
        if spent > AMOUNT {
            assert!(matches!(
                decide(s, Chat, r#"{"model":"m","max_tokens":1}"#),
                Err(Refusal::BudgetExhausted { .. })
            ));
        }
        (many, reserved, spent)
    }

    #[test]
    fn it_is_at_most_what_each_call_in_flight_came_to_beyond_its_reservation() {
        let longest = 5_000;
        let s = budgeted(None);
        let (many, reserved, spent) = filled(&s, longest);
        let prompt = 11;
        assert!(many * reserved * TOKEN <= AMOUNT);
        let beyond = many * (prompt + longest - reserved) * TOKEN;
        assert!(spent > AMOUNT, "calls without a cap do overdraw");
        assert!(spent <= AMOUNT + beyond, "{spent} of {AMOUNT} + {beyond}");
    }

    #[test]
    fn it_is_nothing_where_the_route_says_how_long_an_answer_can_be() {
        let s = budgeted(Some(5_000));
        let (many, reserved, spent) = filled(&s, 5_000);
        assert_eq!(reserved, 5_011);
        assert_eq!(many, AMOUNT / (5_011 * TOKEN));
        assert!(spent <= AMOUNT, "{spent}");
        let call = admitted(&budgeted(Some(5_000)), Chat, BODY);
        assert_eq!(
            call.estimate.at_most,
            Some(5_000 + BODY.len() as u64 + 1_024)
        );
        call.reservation.release(NOW, &s.snapshot, &s.levels);
    }

    #[test]
    fn a_cap_of_the_call_counts_before_that_of_its_route() {
        let body = r#"{"model":"m","max_tokens":7,"user":"ab"}"#;
        let s = budgeted(Some(5_000));
        let call = admitted(&s, Chat, body);
        assert_eq!(call.estimate.reserved, call.prompt_estimate + 7);
        call.reservation.release(NOW, &s.snapshot, &s.levels);
    }
}

mod models_of_a_caller {
    //! A key that is held to models of its own.

    use super::*;
    use crate::caller::Caller;
    use crate::model::ModelPattern;

    fn caller() -> Caller {
        Caller {
            models: [
                ModelPattern::Exact("a".into()),
                ModelPattern::Prefix("b-".into()),
            ]
            .into(),
            ..Caller::default()
        }
    }

    fn said(method: &str, path: &str, body: Option<&str>) -> Result<Vec<String>, &'static str> {
        let s = revision(&[
            RoutePlan {
                models: &["a", "b-1", "c"],
                ..plan()
            },
            plan(),
        ]);
        let head = request(method, path, &[ME, JSON]);
        let opened = opened_by(&head, None, &s.snapshot).map_err(|r| r.reply().code)?;
        let call = body.map(|body| CallHead::read(body.as_bytes()).expect("a call"));
        let decision = admit(
            opened,
            Some(&std::sync::Arc::new(caller())),
            |_| Ok(()),
            call.as_ref(),
            9,
            |_| Estimator::default(),
            &mut None,
            NOW,
            0,
            &s.snapshot,
            &s.levels,
        );
        match decision.map_err(|refusal| refusal.reply().code)? {
            Decision::Forward(_) => Ok(Vec::new()),
            Decision::Models(names) => Ok(names.iter().map(ToString::to_string).collect()),
        }
    }

    #[test]
    fn it_asks_for_those_alone() {
        let chat = |body| said("POST", "/v1/chat/completions", Some(body));
        assert_eq!(chat(r#"{"model":"a"}"#), Ok(vec![]));
        assert_eq!(chat(r#"{"model":"b-2"}"#), Ok(vec![]));
        assert_eq!(chat(r#"{"model":"c"}"#), Err("model_not_found"));
        assert_eq!(chat("{}"), Err("model_required"));
        let form = said("POST", "/v1/audio/transcriptions", None);
        assert!(form.is_err(), "{form:?}");
        // Which names fit a pattern, the backend is asked.
        assert_eq!(said("GET", "/v1/models", None), Ok(vec![]));
    }
}
mod apart;
