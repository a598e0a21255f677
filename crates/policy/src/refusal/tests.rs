//! Each refusal as the client sees it, kept in `vectors/refusals.txt`.
//!
//! Not here: the faults that `wire` words itself.

use std::fmt::Write;
use std::time::Duration;

use wire::batch::Api;
use wire::call::{Boundary, CallHead, CallScanner};
use wire::head::RequestHead;
use wire::http1::{HeadFault, HeadFaultKind};

use super::{BatchRefusal, ErrorFormat, LocalReply, Refusal, escape};
use crate::attempt::Failure;
use crate::budget::Every;
use crate::limit::Kind;
use crate::mcp::CallersToken;
use crate::subject::Holder;

/// One of each. The match makes a new variant a compile error until it is added here.
fn every_refusal() -> Vec<Refusal> {
    let header = || "x-workload-app".to_owned();
    let head = |kind| HeadFault { kind };
    let failures = [
        Failure::Resolve,
        Failure::Connect,
        Failure::ConnectTimeout,
        Failure::Tls,
        Failure::FirstByteTimeout,
        Failure::Reset,
        Failure::Malformed,
        Failure::Exhausted,
        Failure::Status(503),
        Failure::LocalCapacity,
        Failure::Proxy,
        Failure::Untranslatable,
    ];
    let bodies = [
        r#"{"model":1}"#,
        "[]",
        "{",
        r#"{"n":-1,"model":"m"}"#,
        r#"{"model":"a","model":"b"}"#,
    ];
    let calls = bodies.map(|body| CallHead::read(body.as_bytes()).expect_err("a fault"));
    let boundary = Boundary::of(b"multipart/form-data; boundary=b").expect("a boundary");
    let form = CallScanner::of_form(&boundary).push(b"--c");
    let form = form.expect_err("another boundary");
    let mut all = vec![
        Refusal::Head(head(HeadFaultKind::HeadTooLarge)),
        Refusal::Head(head(HeadFaultKind::LengthAndEncoding)),
        Refusal::BodyFraming(head(HeadFaultKind::ChunkSize)),
        Refusal::BodyTooLarge { limit: 32 << 20 },
        Refusal::Slow,
        Refusal::ContentEncoding,
        Refusal::CodedBody,
        Refusal::ContentType,
        Refusal::FormType,
        Refusal::FormModel,
        Refusal::Call(form),
        Refusal::NoSuchPath,
        Refusal::OtherPath {
            call: "POST /chat/completions".to_owned(),
            meant: "chat/completions",
            is_below_root: false,
        },
        Refusal::OtherPath {
            call: "POST /v1/chat/completions/".to_owned(),
            meant: "chat/completions",
            is_below_root: true,
        },
        Refusal::OtherPath {
            call: "POST /v1/v1/messages".to_owned(),
            meant: "messages",
            is_below_root: true,
        },
        Refusal::NoWebSocket {
            call: "GET /v1/realtime".to_owned(),
        },
        Refusal::Operation {
            call: "POST /v1/unknown".to_owned(),
        },
        BatchRefusal::NoRoute {
            call: "POST /v1/batches".to_owned(),
            api: Some(Api::OpenAi),
        }
        .into(),
        Refusal::Operation {
            call: "POST /v1/v1beta/models/m:generateContent".to_owned(),
        },
        Refusal::RouteNotFound {
            call: "GET /echo".to_owned(),
        },
        Refusal::NoCharge {
            operation: "transcriptions",
        },
        Refusal::McpRouteNotFound,
        Refusal::McpMessage {
            says: "the message is not JSON, or not one JSON object".into(),
            number: -32700,
        },
        Refusal::McpVersion,
        Refusal::McpVersionUnknown {
            requested: "2027-01-01".into(),
        },
        Refusal::McpHeader {
            says: "Header mismatch: the header Mcp-Name is missing; the body says 'read'".into(),
        },
        Refusal::McpCapability,
        Refusal::McpState,
        Refusal::McpNotBridged {
            says: "the server github answered with the result `task`, which clients with a session do not know".into(),
        },
        Refusal::McpNoRoom {
            says: "16 questions of servers to this session wait to be answered, and no more may"
                .into(),
        },
        Refusal::McpSessionMissing,
        Refusal::McpSessionNotFound,
        Refusal::McpMethod {
            method: "tasks/get".into(),
        },
        Refusal::McpNotFound {
            what: "tool",
            name: "github__delete_repository".into(),
        },
        Refusal::McpToolChanged {
            name: "github__delete_repository".into(),
        },
        Refusal::McpCredential {
            server: "github".into(),
        },
        Refusal::McpTokenRefused {
            server: "github".into(),
            token: CallersToken::Brought("x-github-token".into()),
            status: 403,
            wants: Box::new([
                ("error", "insufficient_scope".into()),
                ("scope", "repo".into()),
            ]),
        },
        Refusal::McpTokenRefused {
            server: "tickets".into(),
            token: CallersToken::Given,
            status: 401,
            wants: Box::new([]),
        },
        Refusal::McpTokenRefused {
            server: "mail".into(),
            token: CallersToken::Missing("x-mail-token".into()),
            status: 401,
            wants: Box::new([]),
        },
        Refusal::McpAmbiguous {
            name: "search".into(),
            one: "github".into(),
            other: "web".into(),
        },
        Refusal::ModelUnread,
        Refusal::Background {
            member: "background",
        },
        Refusal::ResponseGone,
        Refusal::ResponseNotFound,
        BatchRefusal::Call {
            line: 2,
            says: "the model `gpt-4` does not exist or you do not have access to it".into(),
        }
        .into(),
        BatchRefusal::Upload {
            says: "the form has no part `file`".into(),
        }
        .into(),
        BatchRefusal::NotKept { what: "file" }.into(),
        BatchRefusal::NotKept { what: "batch" }.into(),
        BatchRefusal::TooMany { most: 100 }.into(),
        BatchRefusal::TooManyKept.into(),
        BatchRefusal::Uncounted.into(),
        BatchRefusal::Unavailable.into(),
        BatchRefusal::MadeNotKept.into(),
        BatchRefusal::ModelNotBatched {
            model: "text-embedding-3-small".to_owned(),
        }
        .into(),
        Refusal::SharedAccount {
            member: "previous_response_id",
        },
        Refusal::SharedAddress {
            at: "messages[0].content[1]".into(),
        },
        Refusal::Method { allow: "GET, HEAD" },
        Refusal::HostNotAllowed,
        Refusal::Misdirected,
        Refusal::OriginNotAllowed,
        Refusal::IdentityRepeated { header: header() },
        Refusal::UserUnreadable {
            header: "x-user".into(),
        },
        Refusal::IdentityContradicted { header: header() },
        Refusal::CredentialMissing,
        Refusal::CredentialInvalid,
        Refusal::CredentialFailures {
            wait: Duration::from_secs(7),
        },
        Refusal::ConflictingCredentials,
        Refusal::WorkloadUnknown,
        Refusal::IdentityUnavailable,
        Refusal::WorkloadNotRegistered { header: header() },
        Refusal::ModelRequired,
        Refusal::ModelNotOwn {
            model: "gpt-5".to_owned(),
        },
        Refusal::OwnModelRequired,
        Refusal::ModelBesides {
            member: "tools",
            model: "gpt-9".into(),
        },
        Refusal::ModelNotFound {
            model: "gpt-9".to_owned(),
        },
        Refusal::Limited {
            kind: Kind::Requests,
            amount: 2,
            per: Duration::from_secs(60),
            holder: Holder::Workload,
            wait: Duration::from_millis(29_500),
        },
        Refusal::LargerThanLimit {
            asked: 5000,
            burst: 1000,
            holder: Holder::User,
        },
        Refusal::BudgetExhausted {
            budget: Some("research".into()),
            holder: None,
            every: Every::Month,
            renewed: "2026-12-01T00:00:00Z".to_owned(),
        },
        Refusal::BudgetExhausted {
            budget: Some("research".into()),
            holder: Some(Holder::Userless),
            every: Every::Day,
            renewed: "2026-12-01T00:00:00Z".to_owned(),
        },
        Refusal::LargerThanBudget {
            budget: Some("research".into()),
            holder: None,
            asked: "12.5 USD".to_owned(),
            amount: "5 USD".to_owned(),
            every: Every::Month,
            is_fixed: false,
        },
        Refusal::LargerThanBudget {
            budget: None,
            holder: Some(Holder::Key),
            asked: "5000 tokens".to_owned(),
            amount: "1000 tokens".to_owned(),
            every: Every::Day,
            is_fixed: true,
        },
        Refusal::SubjectsExhausted,
        Refusal::BudgetExhausted {
            budget: None,
            holder: Some(Holder::Key),
            every: Every::Month,
            renewed: "2026-12-01T00:00:00Z".to_owned(),
        },
        Refusal::Unpriced {
            model: "gpt-9".to_owned(),
            budget: Some("research".into()),
        },
        Refusal::Unpriced {
            model: String::new(),
            budget: None,
        },
        Refusal::UpstreamCredential,
        Refusal::UpstreamBusy {
            status: 429,
            wait: Duration::from_secs(17),
        },
        Refusal::Unfit {
            what: "`logit_bias`".into(),
        },
        Refusal::Filtered {
            code: "filter_held_back_too_much",
        },
        Refusal::Upstream(Failure::BadResponse),
        Refusal::ItemsPage {
            says: "`after` names no item of this response".into(),
        },
        Refusal::RealtimeEvent {
            says: "the event \"response.steer\" is not served here".into(),
        },
        Refusal::AnswersUntaken,
        Refusal::Overloaded,
        Refusal::LedgerUnavailable,
        Refusal::RouteClosed,
        Refusal::NoneReady,
        Refusal::PickerRefused {
            status: 429,
            wait: Duration::from_secs(1),
            says: "no capacity for this priority".into(),
        },
        Refusal::Unpicked {
            says: "did not answer",
        },
        Refusal::Redirected {
            status: 301,
            location: "https://www.example/new".into(),
        },
        Refusal::NotAuthorized,
        Refusal::AuthorizerUnavailable,
        Refusal::Bug("a grant without route"),
    ];
    all.extend(calls.map(Refusal::Call));
    all.extend(failures.map(Refusal::Upstream));
    all
}

fn variant(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Head(_) => "Head",
        Refusal::Call(_) => "Call",
        Refusal::BodyFraming(_) => "BodyFraming",
        Refusal::BodyTooLarge { .. } => "BodyTooLarge",
        Refusal::Slow => "Slow",
        Refusal::ContentEncoding => "ContentEncoding",
        Refusal::CodedBody => "CodedBody",
        Refusal::ContentType => "ContentType",
        Refusal::FormType => "FormType",
        Refusal::FormModel => "FormModel",
        Refusal::NoSuchPath => "NoSuchPath",
        Refusal::OtherPath { .. } => "OtherPath",
        Refusal::NoWebSocket { .. } => "NoWebSocket",
        Refusal::Operation { .. } => "Operation",
        Refusal::Batches(BatchRefusal::NoRoute { .. }) => "NoBatches",
        Refusal::RouteNotFound { .. } => "RouteNotFound",
        Refusal::NoCharge { .. } => "NoCharge",
        Refusal::McpRouteNotFound => "McpRouteNotFound",
        Refusal::McpMessage { .. } => "McpMessage",
        Refusal::McpVersion => "McpVersion",
        Refusal::McpVersionUnknown { .. } => "McpVersionUnknown",
        Refusal::McpHeader { .. } => "McpHeader",
        Refusal::McpCapability => "McpCapability",
        Refusal::McpState => "McpState",
        Refusal::McpNotBridged { .. } => "McpNotBridged",
        Refusal::McpNoRoom { .. } => "McpNoRoom",
        Refusal::McpSessionMissing => "McpSessionMissing",
        Refusal::McpSessionNotFound => "McpSessionNotFound",
        Refusal::McpMethod { .. } => "McpMethod",
        Refusal::McpNotFound { .. } => "McpNotFound",
        Refusal::McpToolChanged { .. } => "McpToolChanged",
        Refusal::McpCredential { .. } => "McpCredential",
        Refusal::McpTokenRefused { .. } => "McpTokenRefused",
        Refusal::McpAmbiguous { .. } => "McpAmbiguous",
        Refusal::ModelUnread => "ModelUnread",
        Refusal::Background { .. } => "Background",
        Refusal::ResponseGone => "ResponseGone",
        Refusal::ResponseNotFound => "ResponseNotFound",
        Refusal::Batches(BatchRefusal::Call { .. }) => "BatchCall",
        Refusal::Batches(BatchRefusal::Upload { .. }) => "Upload",
        Refusal::Batches(BatchRefusal::NotKept { .. }) => "NotKept",
        Refusal::Batches(BatchRefusal::TooMany { .. }) => "TooManyBatches",
        Refusal::Batches(BatchRefusal::TooManyKept) => "TooManyKept",
        Refusal::Batches(BatchRefusal::Uncounted) => "BatchUncounted",
        Refusal::Batches(BatchRefusal::Unavailable) => "BatchesUnavailable",
        Refusal::Batches(BatchRefusal::MadeNotKept) => "MadeNotKept",
        Refusal::Batches(BatchRefusal::ModelNotBatched { .. }) => "ModelNotBatched",
        Refusal::SharedAccount { .. } => "SharedAccount",
        Refusal::SharedAddress { .. } => "SharedAddress",
        Refusal::Method { .. } => "Method",
        Refusal::HostNotAllowed => "HostNotAllowed",
        Refusal::Misdirected => "Misdirected",
        Refusal::OriginNotAllowed => "OriginNotAllowed",
        Refusal::IdentityRepeated { .. } => "IdentityRepeated",
        Refusal::UserUnreadable { .. } => "UserUnreadable",
        Refusal::IdentityContradicted { .. } => "IdentityContradicted",
        Refusal::CredentialMissing => "CredentialMissing",
        Refusal::CredentialInvalid => "CredentialInvalid",
        Refusal::CredentialFailures { .. } => "CredentialFailures",
        Refusal::WorkloadUnknown => "WorkloadUnknown",
        Refusal::IdentityUnavailable => "IdentityUnavailable",
        Refusal::ConflictingCredentials => "ConflictingCredentials",
        Refusal::WorkloadNotRegistered { .. } => "WorkloadNotRegistered",
        Refusal::ModelNotFound { .. } => "ModelNotFound",
        Refusal::ModelRequired => "ModelRequired",
        Refusal::ModelNotOwn { .. } => "ModelNotOwn",
        Refusal::OwnModelRequired => "OwnModelRequired",
        Refusal::Limited { .. } => "Limited",
        Refusal::LargerThanLimit { .. } => "LargerThanLimit",
        Refusal::Upstream(_) => "Upstream",
        Refusal::BudgetExhausted { .. } => "BudgetExhausted",
        Refusal::LargerThanBudget { .. } => "LargerThanBudget",
        Refusal::SubjectsExhausted => "SubjectsExhausted",
        Refusal::Unpriced { .. } => "Unpriced",
        Refusal::UpstreamCredential => "UpstreamCredential",
        Refusal::UpstreamBusy { .. } => "UpstreamBusy",
        Refusal::Unfit { .. } => "Unfit",
        Refusal::Filtered { .. } => "Filtered",
        Refusal::ItemsPage { .. } => "ItemsPage",
        Refusal::RealtimeEvent { .. } => "RealtimeEvent",
        Refusal::AnswersUntaken => "AnswersUntaken",
        Refusal::Overloaded => "Overloaded",
        Refusal::LedgerUnavailable => "LedgerUnavailable",
        Refusal::RouteClosed => "RouteClosed",
        Refusal::NoneReady => "NoneReady",
        Refusal::PickerRefused { .. } => "PickerRefused",
        Refusal::Unpicked { .. } => "Unpicked",
        Refusal::Redirected { .. } => "Redirected",
        Refusal::NotAuthorized => "NotAuthorized",
        Refusal::AuthorizerUnavailable => "AuthorizerUnavailable",
        Refusal::ModelBesides { .. } => "ModelBesides",
        Refusal::Bug(_) => "Bug",
    }
}

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/refusals.txt");

#[test]
fn every_refusal_has_the_status_type_and_code_of_the_golden_table() {
    let mut table = String::from(
        "# What the gate answers of its own: variant, status, then the body; extras follow with +.\n\
         # Rewritten by UPDATE=1 cargo test -p policy refusal; the diff is reviewed.\n",
    );
    for refusal in every_refusal() {
        let reply = refusal.reply();
        let body = String::from_utf8(reply.body(ErrorFormat::OpenAi)).expect("UTF-8");
        let blame = if refusal.is_failure() {
            "failed"
        } else {
            "refused"
        };
        writeln!(
            table,
            "\n{} {} {blame}\n{body}",
            variant(&refusal),
            reply.status
        )
        .expect("text");
        let extras = [
            reply.retry_after.map(|d| format!("retry-after: {d:?}")),
            reply.allow.map(|a| format!("allow: {a}")),
            reply.location.as_ref().map(|at| format!("location: {at}")),
            reply
                .should_retry
                .map(|yes| format!("x-should-retry: {yes}")),
            refusal
                .limited()
                .map(|kind| format!("limited: {}", kind.as_str())),
        ];
        for extra in extras.into_iter().flatten() {
            writeln!(table, "+ {extra}").expect("text");
        }
    }
    #[expect(clippy::disallowed_methods, reason = "UPDATE=1 rewrites the golden")]
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(GOLDEN, &table).expect("vectors/ is there");
    }
    let golden = std::fs::read_to_string(GOLDEN).expect("vectors/refusals.txt");
    assert_eq!(table, golden, "run with UPDATE=1 and review the diff");
}

#[test]
fn every_body_is_the_json_that_openai_sdks_read() {
    for refusal in every_refusal() {
        let reply = refusal.reply();
        let json: serde_json::Value =
            serde_json::from_slice(&reply.body(ErrorFormat::OpenAi)).expect("JSON");
        let error = json.get("error").expect("an error");
        assert_eq!(error["message"], reply.message);
        assert_eq!(error["type"], reply.kind);
        assert_eq!(error["code"], reply.code);
        assert_eq!(error["param"].as_str(), reply.param);
        assert!(error.get("param").is_some(), "present even when null");
        assert!(!reply.message.is_empty());
        // Within JSON-RPC an error is an answer.
        let is_answer = matches!(
            refusal,
            Refusal::McpMethod { .. } | Refusal::McpNotFound { .. } | Refusal::McpAmbiguous { .. }
        );
        assert_eq!(reply.status == 200, is_answer, "{}", reply.code);
        let is_elsewhere = matches!(refusal, Refusal::Redirected { .. });
        assert_eq!(reply.location.is_some(), is_elsewhere);
        assert!(is_answer || is_elsewhere || (400..600).contains(&reply.status));
        // An upstream's own 429 stays one, so that clients back off.
        let is_busy = matches!(
            refusal,
            Refusal::UpstreamBusy { .. } | Refusal::PickerRefused { .. }
        );
        assert!(
            !refusal.is_failure() || reply.status >= 500 || is_busy,
            "{}: blame and status",
            reply.code
        );
    }
}

#[test]
fn only_what_time_heals_says_when_to_try_again() {
    for refusal in every_refusal() {
        let reply = refusal.reply();
        let heals = matches!(
            refusal,
            Refusal::Limited { .. }
                | Refusal::UpstreamBusy { .. }
                | Refusal::PickerRefused { .. }
                | Refusal::NoneReady
                | Refusal::Overloaded
                | Refusal::AnswersUntaken
                | Refusal::LedgerUnavailable
                | Refusal::Batches(BatchRefusal::Unavailable)
                | Refusal::AuthorizerUnavailable
                | Refusal::CredentialFailures { .. }
                | Refusal::IdentityUnavailable
                | Refusal::Upstream(Failure::LocalCapacity)
        );
        assert_eq!(reply.retry_after.is_some(), heals, "{}", reply.code);
    }
}

#[test]
fn any_text_is_escaped_into_valid_json() {
    let all: String = (0..=0xffff)
        .filter_map(char::from_u32)
        .chain(['🦀', '\u{10ffff}'])
        .collect();
    for text in [all.as_str(), "\"\\\n\r\t\0\u{7f}", "", "\u{2028}"] {
        let mut out = vec![b'"'];
        escape(text, &mut out);
        out.push(b'"');
        let back: String = serde_json::from_slice(&out).expect("a JSON string");
        assert_eq!(back, text);
    }
    let hostile = LocalReply {
        message: "\"}],\"x\":{\"\\".to_owned(),
        param: Some("a\"b"),
        ..Refusal::Slow.reply()
    };
    let json: serde_json::Value =
        serde_json::from_slice(&hostile.body(ErrorFormat::OpenAi)).expect("JSON");
    assert_eq!(json["error"]["message"], hostile.message);
    assert_eq!(json["error"]["param"], "a\"b");
}

#[test]
fn callers_of_messages_find_anthropics_shape_and_ours() {
    for (path, shape) in [
        ("/v1/messages", ErrorFormat::Anthropic),
        ("/v1/messages/count_tokens", ErrorFormat::Anthropic),
        ("/v1/messagesx", ErrorFormat::OpenAi),
        ("/v1/chat/completions", ErrorFormat::OpenAi),
    ] {
        assert_eq!(ErrorFormat::of(path), shape, "{path}");
    }
    for (refusal, kind) in [
        (Refusal::NoSuchPath, "not_found_error"),
        (Refusal::ModelRequired, "invalid_request_error"),
        (Refusal::Overloaded, "overloaded_error"),
        (Refusal::BodyTooLarge { limit: 1 }, "request_too_large"),
        (Refusal::Upstream(Failure::Reset), "api_error"),
        (
            Refusal::Upstream(Failure::LocalCapacity),
            "overloaded_error",
        ),
        (
            Refusal::Upstream(Failure::FirstByteTimeout),
            "timeout_error",
        ),
    ] {
        let reply = refusal.reply();
        let json: serde_json::Value =
            serde_json::from_slice(&reply.body(ErrorFormat::Anthropic)).expect("JSON");
        assert_eq!(json["type"], "error");
        assert_eq!(json["error"]["type"], kind, "{refusal:?}");
        assert_eq!(json["error"]["code"], reply.code);
        assert_eq!(json["error"]["message"], refusal.to_string());
    }
}

#[test]
fn callers_of_google_find_its_shape_with_our_code_in_the_details() {
    for (refusal, status) in [
        (Refusal::NoSuchPath, "NOT_FOUND"),
        (Refusal::ModelRequired, "INVALID_ARGUMENT"),
        (Refusal::CredentialMissing, "UNAUTHENTICATED"),
        (Refusal::Overloaded, "UNAVAILABLE"),
        (
            Refusal::Upstream(Failure::FirstByteTimeout),
            "DEADLINE_EXCEEDED",
        ),
    ] {
        let reply = refusal.reply();
        let json: serde_json::Value =
            serde_json::from_slice(&reply.body(ErrorFormat::Google)).expect("JSON");
        let error = &json["error"];
        assert_eq!(
            (&error["code"], &error["status"]),
            (&reply.status.into(), &status.into())
        );
        assert_eq!(error["message"], refusal.to_string());
        assert_eq!(
            error["details"][0]["reason"],
            reply.code.to_ascii_uppercase()
        );
        let delay = error["details"][1]["retryDelay"].as_str();
        assert_eq!(delay.is_some(), reply.retry_after.is_some(), "{refusal:?}");
    }
}

#[test]
fn files_and_batches_that_no_route_keeps_are_told_by_the_setting_and_not_by_the_path() {
    let of = |target: &str| {
        let mut head = RequestHead::new();
        head.set_method("POST")
            .and_then(|()| head.set_target(target))
            .expect("a head");
        Refusal::operation(&head).to_string()
    };
    let ends = " no route of this workload says it for OpenAI's API (`batches: { api: openai }`)";
    assert!(of("/v1/batches").ends_with(ends), "{}", of("/v1/batches"));
    assert!(of("/v1/files").ends_with("no route of this workload says it"));
    assert!(of("/v1/batch").contains("is not an operation that this gateway reads"));
}
