//! Engines on loopback, and one in memory: what each is asked, and what is read of its answers.

use std::time::Duration;

use super::*;
use crate::client::Bounds;
use crate::fixture::{Does, Seen, Server, client, json, response, status};

const CHAT: &str = r#"{"messages":[{"role":"user","content":"a"}]}"#;
const TEXT: &str = r#"{"prompt":"a"}"#;

fn asking(server: &Server, path: &str) -> EngineTokens {
    let place = EnginePlace {
        api: server.url(path),
        headers: vec![(
            "authorization".to_owned(),
            Secret::new(b"Bearer canary".to_vec()),
        )],
        query: String::new(),
    };
    EngineTokens::new(client(), place, Arc::default())
}

fn question(operation: Operation, body: &str) -> EngineQuestion<'_> {
    EngineQuestion {
        model: "a \"model\"",
        operation,
        body,
        is_harmony: false,
    }
}

fn targets(server: &Server) -> Vec<String> {
    let seen = server.seen();
    seen.into_iter().map(|seen| seen.target).collect()
}

/// One that has `/tokenize` and `count_tokens`, as vLLM has unless it is asked for more.
fn usual(seen: &Seen) -> Does {
    match seen.target.as_str() {
        "/tokenize" => json(r#"{"count":2,"max_model_len":99,"tokens":[7,8],"token_strs":null}"#),
        "/v1/messages/count_tokens" => json(r#"{"input_tokens":11,"context_management":null}"#),
        "/detokenize" => json(r#"{"prompt":"ab"}"#),
        _ => status(404),
    }
}

#[tokio::test(start_paused = true)]
async fn what_an_engine_has_is_asked_and_what_it_has_not_is_asked_once() {
    let server = Server::start(usual).await;
    let engine = asking(&server, "/v1");
    for _ in 0..2 {
        let says = engine.count(&question(Operation::Chat, CHAT)).await;
        let count = EngineCount {
            tokens: 2,
            ids: vec![7, 8],
            by: AskedBy::Tokenize,
            model_length: Some(99),
        };
        assert_eq!(says.expect("an answer"), EngineSays::Counts(count));
        let says = engine.count(&question(Operation::Messages, CHAT)).await;
        let EngineSays::Counts(count) = says.expect("an answer") else {
            panic!("no count");
        };
        assert_eq!((count.tokens, count.by), (11, AskedBy::CountTokens));
        let responses = question(Operation::Responses, r#"{"input":"a"}"#);
        let says = engine.count(&responses).await;
        assert_eq!(says.expect("an answer"), EngineSays::Nothing);
    }
    let asked = [
        "/v1/chat/completions/render",
        "/tokenize",
        "/v1/messages/render",
        "/v1/messages/count_tokens",
        "/v1/responses/render",
        "/tokenize",
        "/v1/messages/count_tokens",
    ];
    assert_eq!(targets(&server), asked);
    assert_eq!(
        engine.text("m", &[7, 8]).await.expect("text").as_deref(),
        Some("ab")
    );
    let first = &server.seen()[1];
    assert_eq!(first.header("authorization"), "Bearer canary");
    assert_eq!(
        first.text(),
        r#"{"model":"a \"model\"","messages":[{"role":"user","content":"a"}]}"#
    );
}

#[tokio::test(start_paused = true)]
async fn where_the_call_itself_can_be_rendered_nothing_else_is_asked() {
    let server = Server::start(|seen: &Seen| match seen.target.as_str() {
        "/engine/v1/completions/render" => {
            json(r#"[{"request_id":"r","token_ids":[1,2]},{"token_ids":[3]}]"#)
        }
        _ => json(r#"{"request_id":"r","token_ids":[4,5,6,7],"features":null}"#),
    })
    .await;
    let engine = asking(&server, "/engine/v1/");
    for (operation, body, tokens) in [
        (Operation::Completions, TEXT, 3),
        (Operation::Chat, CHAT, 4),
        (Operation::Messages, CHAT, 4),
        (Operation::Responses, r#"{"input":"a"}"#, 4),
    ] {
        let EngineSays::Counts(count) = engine
            .count(&question(operation, body))
            .await
            .expect("an answer")
        else {
            panic!("{operation:?}");
        };
        assert_eq!((count.tokens, count.by), (tokens, AskedBy::Render));
    }
    assert_eq!(server.asked(), 4);
    assert_eq!(targets(&server)[1], "/engine/v1/chat/completions/render");
}

#[tokio::test(start_paused = true)]
async fn a_tokenizer_is_given_no_conversation_that_it_would_read_otherwise() {
    let server = Server::start(usual).await;
    let engine = asking(&server, "/v1");
    let effort = r#"{"messages":[],"reasoning_effort":"low"}"#;
    let choice = r#"{"messages":[],"tools":[],"tool_choice":"none"}"#;
    let numbers = r#"{"prompt":"a","truncate_prompt_tokens":3}"#;
    for (operation, body) in [
        (Operation::Chat, effort),
        (Operation::Chat, choice),
        (Operation::Completions, numbers),
    ] {
        let says = engine.count(&question(operation, body)).await;
        assert_eq!(says.expect("an answer"), EngineSays::Nothing, "{body}");
    }
    let harmony = |operation, body| EngineQuestion {
        is_harmony: true,
        ..question(operation, body)
    };
    let says = engine.count(&harmony(Operation::Chat, CHAT)).await;
    assert_eq!(says.expect("an answer"), EngineSays::Nothing);
    assert!(!targets(&server).contains(&"/tokenize".to_owned()));
    let says = engine.count(&harmony(Operation::Completions, TEXT)).await;
    assert!(matches!(says, Ok(EngineSays::Counts(_))), "{says:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_count_is_none() {
    let long = format!(r#"{{"count":1,"tokens":[{}1]}}"#, "1,".repeat(600_000));
    let answers = [
        "{}",
        "[]",
        "null",
        r#"{"count":-1,"tokens":[]}"#,
        r#"{"count":3,"tokens":[1,2]}"#,
        r#"{"count":1,"count":2,"tokens":[]}"#,
        r#"{"count":1.5}"#,
        r#"{"token_ids":[1]}"#,
        r#"{"count":1,"tokens":[99999999999]}"#,
        &long,
    ];
    for answer in answers {
        let body = answer.to_owned();
        let server = Server::start(move |seen: &Seen| match seen.target.as_str() {
            "/tokenize" => json(body.clone()),
            _ => status(405),
        })
        .await;
        let engine = asking(&server, "/v1");
        let shown = &answer[..answer.len().min(60)];
        for _ in 0..2 {
            let says = engine.count(&question(Operation::Completions, TEXT)).await;
            assert_eq!(says.expect("an answer"), EngineSays::Nothing, "{shown}");
        }
        // Who answers so is not asked again.
        let asked = ["/v1/completions/render", "/tokenize"];
        assert_eq!(targets(&server), asked, "{shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_place_that_answers_a_question_with_an_answer_has_generated_for_the_last_time() {
    let server = Server::start(|seen: &Seen| match seen.target.as_str() {
        "/v1/chat/completions/render" => json(r#"{"choices":[{"text":"Paris"}]}"#),
        _ => usual(seen),
    })
    .await;
    let engine = asking(&server, "/v1");
    for operation in [Operation::Chat, Operation::Chat, Operation::Messages] {
        let says = engine.count(&question(operation, CHAT)).await;
        assert!(matches!(says, Ok(EngineSays::Counts(_))), "{says:?}");
    }
    let asked = [
        "/v1/chat/completions/render",
        "/tokenize",
        "/tokenize",
        "/v1/messages/count_tokens",
    ];
    assert_eq!(targets(&server), asked);
    let seen = server.seen();
    assert!(seen[0].text().contains(r#""max_tokens":1,"#));
    assert!(!seen[1].text().contains("max_tokens"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_bound_where_its_call_does_not_bind_it() {
    let server = Server::start(|_| json(r#"{"token_ids":[1]}"#)).await;
    let engine = asking(&server, "/v1");
    let bound = r#"{"max_tokens":16,"messages":[]}"#;
    for (operation, body, sent) in [
        (
            Operation::Completions,
            TEXT,
            r#""max_tokens":1,"prompt":"a"}"#,
        ),
        (Operation::Messages, bound, &bound[1..]),
        (
            Operation::Responses,
            r#"{"input":"a"}"#,
            r#""max_output_tokens":16,"input":"a"}"#,
        ),
    ] {
        let says = engine.count(&question(operation, body)).await;
        assert!(matches!(says, Ok(EngineSays::Counts(_))), "{says:?}");
        let seen = server.seen();
        let last = seen.last().expect("a request").text();
        assert_eq!(last, format!(r#"{{"model":"a \"model\"",{sent}"#));
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_that_an_engine_does_not_know_says_nothing_of_its_others() {
    let server = Server::start(|seen: &Seen| {
        if seen.text().contains(r#""model":"a""#) {
            return Does::Answer(response(
                404,
                "application/json",
                r#"{"error":{"message":"The model `a` does not exist."}}"#,
            ));
        }
        usual(seen)
    })
    .await;
    let engine = asking(&server, "/v1");
    let of = |model| EngineQuestion {
        model,
        ..question(Operation::Chat, CHAT)
    };
    let says = engine.count(&of("a")).await;
    assert_eq!(says.expect("an answer"), EngineSays::Nothing);
    let says = engine.count(&of("b")).await;
    assert!(matches!(says, Ok(EngineSays::Counts(_))), "{says:?}");
    let says = engine.count(&of("a")).await;
    assert_eq!(says.expect("an answer"), EngineSays::Nothing);
    let all = targets(&server);
    let paths = ["/v1/chat/completions/render", "/tokenize"];
    assert_eq!(all, [paths, paths].concat());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_refused_is_told_from_an_engine_in_trouble() {
    for code in [400, 413, 422, 500] {
        let server = Server::start(move |_| status(code)).await;
        let says = asking(&server, "/v1");
        let says = says.count(&question(Operation::Chat, CHAT)).await;
        assert_eq!(says.expect("an answer"), EngineSays::Refuses, "{code}");
        assert_eq!(server.asked(), 1);
    }
    for code in [401, 429, 503] {
        let server = Server::start(move |_| status(code)).await;
        let engine = asking(&server, "/v1");
        let says = engine.count(&question(Operation::Chat, CHAT)).await;
        assert!(matches!(says, Err(Fault::Status { .. })), "{says:?}");
        assert_eq!(server.asked(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn no_redirect_is_followed_and_a_credential_is_in_no_fault() {
    let other = Server::start(|_| json("{}")).await;
    let to = other.text("/v1/chat/completions/render");
    let server = Server::start(move |_| {
        let mut reply = response(307, "application/json", "{}");
        let place = HeaderValue::from_str(&to).expect("a header");
        reply.headers_mut().insert("location", place);
        Does::Answer(reply)
    })
    .await;
    let engine = asking(&server, "/v1");
    let says = engine.count(&question(Operation::Chat, CHAT)).await;
    assert!(
        matches!(says, Err(Fault::Status { status: 307, .. })),
        "{says:?}"
    );
    assert_eq!(other.asked(), 0);
    assert!(!format!("{engine:?} {says:?}").contains("canary"));
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_hangs_is_waited_for_no_longer_than_its_bound() {
    let bounds = Bounds {
        total: Duration::from_millis(50),
        requests: 1,
        kept: 1,
        ..Bounds::default()
    };
    let (server, client) = Server::in_memory(bounds, |_| Does::Hang);
    let place = EnginePlace {
        api: server.url("/v1"),
        headers: Vec::new(),
        query: "api-version=1".to_owned(),
    };
    let counts = Arc::<Questions>::default();
    let engine = EngineTokens::new(client, place, Arc::clone(&counts));
    let says = engine.count(&question(Operation::Chat, CHAT)).await;
    assert!(matches!(says, Err(Fault::Late { .. })), "{says:?}");
    assert_eq!(counts.counts().failed, 1);
    assert_eq!(
        targets(&server),
        ["/v1/chat/completions/render?api-version=1"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_engine_says_which_models_it_serves() {
    let server = Server::start(|seen: &Seen| match seen.target.as_str() {
        "/v1/models" => json(
            r#"{"object":"list","data":[{"id":"m","object":"model","max_model_len":4096},{"id":"n"}]}"#,
        ),
        _ => status(404),
    })
    .await;
    let models = asking(&server, "/v1").models().await.expect("models");
    let model = |id: &str| EngineModel { id: id.to_owned() };
    assert_eq!(models, [model("m"), model("n")]);
    assert!(
        asking(&server, "/v2")
            .models()
            .await
            .expect("none")
            .is_empty()
    );
}
