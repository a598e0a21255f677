//! Engines are asked what prompts count: what is said of an engine that counts as the gate does, of one that does not, of
//! one that reports other counts than it makes, and of one that changes.
//!
//! Not here: the arithmetic (`tokens::calibration`), the questions one by one (`callout::engine_tokens`).

use std::net::SocketAddr;
use std::time::Duration;

use engine::{EngineConfig, EngineHandle, ModelFiles, spawn_thread};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Gate, Seen, Step, Upstream, free_address, post, tollgate};
use crate::ledger::{rows, stop};

const TOKENIZER: &str = include_str!("../../../../vectors/tokens/tiny_tokenizer.json");
/// What the simulator and vLLM write alike, whatever a call has: where they do not, the simulator is no witness.
const TEMPLATE: &str = "{%- set roles = ['system', 'developer', 'user', 'assistant', 'tool'] -%}\
    {%- for message in messages -%}\
    {{- '\\n<|im_start|>' + message.role + '\\n' + (message.content or '') -}}\
    {%- endfor -%}\
    {%- if add_generation_prompt -%}{{- '\\n<|im_start|>assistant\\n' -}}{%- endif -%}";
const SETTINGS: &str = r#"{"bos_token":"<s>","eos_token":{"content":"</s>"}}"#;
/// A terminal of so many characters.
const WIDE: [(&str, &str); 1] = [("COLUMNS", "160")];
const LABELS: [&str; 2] = ["backend=\"up\"", "model=\"own\""];

/// An engine that serves `own` by these files.
fn serving(tokenizer: &str, template: &str, listen: SocketAddr) -> EngineHandle {
    let config = EngineConfig {
        listen,
        models: vec!["own".into()],
        files: Some(ModelFiles {
            tokenizer: tokenizer.into(),
            config: Some(SETTINGS.into()),
            chat_template: Some(template.into()),
        }),
        ttft: Duration::ZERO,
        inter_token: Duration::ZERO,
        ..EngineConfig::default()
    };
    // The port of one that just stopped may be taken for a moment yet.
    testing::found("the engine starts", || spawn_thread(config.clone()).ok())
}

fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// Other merges: the same text is other tokens.
fn another_tokenizer() -> String {
    let mut tokenizer: Value = serde_json::from_str(TOKENIZER).expect("JSON");
    let merges = tokenizer["model"]["merges"].as_array_mut().expect("merges");
    merges.truncate(merges.len() / 2);
    tokenizer.to_string()
}

/// One that says more of each message.
fn another_template() -> String {
    let other = TEMPLATE.replace("message.role + '", "message.role + ' says: '  + '");
    assert_ne!(other, TEMPLATE);
    other
}

/// The path of a request.
fn target(seen: &Seen) -> String {
    let target = seen.head.split(' ').nth(1);
    target.unwrap_or_default().to_owned()
}

/// What is written besides `listen` and the access log.
fn config(engine: SocketAddr, ledger: &str) -> String {
    format!(
        "backends: {{ up: {{ url: http://{engine}/v1, models: own }} }}\n\
         routes: [ {{ workload: w, backend: up, forward_headers: [x-fault] }} ]\n\
         tokenizers: {{ own: {{ file: m/tokenizer.json, template: m/template.jinja, settings: m/settings.json }} }}\n{ledger}"
    )
}

fn files() -> [(&'static str, &'static [u8]); 3] {
    [
        ("m/tokenizer.json", TOKENIZER.as_bytes()),
        ("m/template.jinja", TEMPLATE.as_bytes()),
        ("m/settings.json", SETTINGS.as_bytes()),
    ]
}

/// What `tollgate tokens check` says of an engine: its exit code, its table, and its JSON.
fn checked(engine: SocketAddr) -> (Option<i32>, String, Value) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    std::fs::create_dir(dir.path().join("m")).expect("a directory");
    for (name, content) in files() {
        std::fs::write(dir.path().join(name), content).expect("a file");
    }
    std::fs::write(dir.path().join("tollgate.yaml"), config(engine, "")).expect("a file");
    let ended = tollgate(dir.path(), &["tokens", "check"], &WIDE);
    assert!(!ended.out.contains('\u{1b}'), "{ended:?}");
    let json = tollgate(
        dir.path(),
        &["tokens", "check", "--json", "--backend", "up"],
        &[],
    );
    assert_eq!(json.code, ended.code, "{ended:?} {json:?}");
    let json: Value = serde_json::from_str(&json.out).unwrap_or_else(|_| panic!("{ended:?}"));
    let models = json["models"].as_array().expect("a list");
    assert_eq!(models.len(), 1, "{json}");
    (ended.code, ended.out, models[0].clone())
}

/// A gate with a ledger that counts what `own` is asked.
struct Counting {
    gate: Gate,
    dir: TempDir,
}

impl Counting {
    /// Starts, and waits until the engine was asked.
    fn start(engine: SocketAddr) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let ledger = dir.path().join("usage.db");
        let ledger = format!("ledger: {{ path: {} }}\n", ledger.display());
        let gate = Gate::start(&config(engine, &ledger), &files());
        let counting = Self { gate, dir };
        testing::eventually("the engine is asked", || {
            counting.probes("agree") + counting.probes("differ") > 0.0
        });
        counting
    }

    fn probes(&self, result: &str) -> f64 {
        let result = format!("result=\"{result}\"");
        let labels = [LABELS[0], LABELS[1], &result];
        self.gate.metric("tollgate_calibration_probes", &labels)
    }

    fn chat(&self, id: &str, fault: &str, body: &Value) {
        let id = format!("x-request-id: {id}");
        let headers = ["x-workload-app: w", id.as_str(), fault];
        let headers = &headers[..headers.len() - usize::from(fault.is_empty())];
        let answer = self
            .gate
            .call(&post("/v1/chat/completions", headers, &body.to_string()));
        assert_eq!(answer.status, 200, "{body} {}", answer.text());
    }

    /// Plain questions, one after another.
    fn ask(&self, name: &str, fault: &str, times: usize) {
        for n in 0..times {
            let question =
                format!("Why does the build fail in the third module, for the {n}th time?");
            let body = json!({"model": "own", "max_tokens": 8,
                "messages": [{"role": "user", "content": question}]});
            self.chat(&format!("{name}{n}"), fault, &body);
        }
    }

    fn alarm(&self) -> f64 {
        let labels = ["model=\"own\"", "direction=\"input\""];
        self.gate.metric("tollgate_token_drift_alarm", &labels)
    }

    fn model(&self) -> Value {
        let page = self.gate.admin("/api/v1/tokens");
        assert_eq!(page.status, 200, "{}", page.text());
        page.json()["models"][0].clone()
    }

    /// Ends the gate, and gives what its rows doubt, by request id.
    fn doubts(self) -> std::collections::HashMap<String, Value> {
        let ledger = self.dir.path().join("usage.db");
        stop(self.gate);
        let rows = rows(&ledger).into_iter();
        rows.map(|(id, row)| (id, row["prompt_doubt"].clone()))
            .collect()
    }
}

#[test]
fn an_engine_that_counts_as_the_gate_does_is_exact() {
    let engine = serving(TOKENIZER, TEMPLATE, any_port());
    let (code, table, model) = checked(engine.addr());
    assert_eq!(code, Some(0), "{table}");
    assert!(
        table.contains("exact") && !table.contains("but for"),
        "{table}"
    );
    assert_eq!(model["mark"], "exact", "{model}");
    assert_eq!(model["probes"]["differ"], 0, "{model}");
    assert!(model["probes"]["agree"].as_u64() > Some(30), "{model}");
    assert_eq!(model["differs"], json!([]), "{model}");
    let by = json!(["count_tokens", "tokenize"]);
    assert_eq!(model["asked_by"], by, "{model}");
    let counting = Counting::start(engine.addr());
    assert_eq!(counting.probes("differ"), 0.0);
    assert_eq!(counting.model()["mark"], "exact");
    counting.ask("q", "", 6);
    testing::eventually("they are compared", || {
        counting
            .gate
            .metrics()
            .contains("tollgate_token_drift_alarm{")
    });
    assert_eq!(counting.alarm(), 0.0);
    let spent = counting
        .gate
        .metric("tollgate_calibration_seconds_total", &[]);
    let questions = counting.gate.metric(
        "tollgate_callout_questions_total",
        &["service=\"tokens\"", "result=\"answered\""],
    );
    println!("{questions} questions in {:.1} ms", spent * 1000.0);
    assert!(spent > 0.0 && spent < 10.0, "{spent}");
    assert!(questions > 30.0 && questions < 100.0, "{questions}");
    for (id, doubt) in counting.doubts() {
        assert_eq!(doubt, Value::Null, "{id}");
    }
    engine.stop();
}

#[test]
fn a_wrong_template_is_told_from_a_wrong_tokenizer_and_neither_is_the_engines_lie() {
    let other = another_template();
    for (tokenizer, template, is_text) in [
        (TOKENIZER.to_owned(), other, false),
        (another_tokenizer(), TEMPLATE.to_owned(), true),
    ] {
        let engine = serving(&tokenizer, &template, any_port());
        let (code, table, model) = checked(engine.addr());
        assert_eq!(code, Some(1), "{table}");
        assert!(table.contains("approximate: differs ("), "{table}");
        let has = |list: &str, feature: &str| {
            let list = model[list].as_array().expect("a list");
            list.iter().any(|one| one == feature)
        };
        assert_eq!(has("differs", "text"), is_text, "{model}");
        assert_eq!(has("exact", "text"), !is_text, "{model}");
        assert!(is_text || has("differs", "chat"), "{model}");
        let differences = model["differences"].as_array().expect("a list");
        assert!(!differences.is_empty(), "{model}");
        assert!(
            table.contains("engine ") && table.contains("ours "),
            "{table}"
        );
        if !is_text {
            let parting = &model["first_difference"];
            assert_ne!(parting["engine"], parting["ours"], "{model}");
            assert!(table.contains("first difference at"), "{table}");
        }
        let counting = Counting::start(engine.addr());
        assert!(counting.probes("differ") > 0.0);
        counting.ask("q", "", 8);
        assert_eq!(counting.alarm(), 0.0, "the engine is not accused");
        let log = counting.gate.log();
        assert!(log.contains("count such prompts differently"), "{log}");
        testing::eventually("all are counted", || {
            counting.gate.metric("tollgate_ledger_rows_total", &[]) == 8.0
        });
        // The engine's own files put it right, without a restart.
        counting
            .gate
            .replace("m/tokenizer.json", tokenizer.as_bytes());
        counting
            .gate
            .replace("m/template.jinja", template.as_bytes());
        testing::eventually("it is asked anew", || {
            counting.probes("differ") == 0.0 && counting.probes("agree") > 0.0
        });
        let page = counting.gate.admin("/api/v1/tokens").json();
        assert_eq!(page["models"].as_array().map(Vec::len), Some(1), "{page}");
        assert_eq!(page["models"][0]["mark"], "exact", "{page}");
        counting.ask("right", "", 2);
        for (id, doubt) in counting.doubts() {
            let doubted = if id.starts_with("right") {
                Value::Null
            } else {
                "differs".into()
            };
            assert_eq!(doubt, doubted, "{id}");
        }
        engine.stop();
    }
}

#[test]
fn an_engine_that_reports_other_counts_than_it_makes_is_flagged() {
    let engine = serving(TOKENIZER, TEMPLATE, any_port());
    let counting = Counting::start(engine.addr());
    assert_eq!(counting.probes("differ"), 0.0);
    counting.ask("q", "x-fault: usage=x2", 20);
    testing::eventually("the alarm goes off", || counting.alarm() == 1.0);
    let log = counting.gate.log();
    let told = [
        "the engine reports other counts than it makes",
        "the engine's counts of tokens differ from the gate's",
    ];
    assert!(told.iter().any(|told| log.contains(told)), "{log}");
    assert!(!log.contains("count such prompts differently"), "{log}");
    // What it makes is still what the gate makes.
    assert_eq!(counting.probes("differ"), 0.0);
    let (code, table, _) = checked(engine.addr());
    assert_eq!(code, Some(0), "{table}");
    for (id, doubt) in counting.doubts() {
        assert_eq!(doubt, "differs", "{id}");
    }
    engine.stop();
}

#[test]
fn an_engine_that_changes_is_asked_again_when_its_calls_differ() {
    let engine = serving(TOKENIZER, TEMPLATE, any_port());
    let address = engine.addr();
    let counting = Counting::start(address);
    counting.ask("before", "", 4);
    // What is compared after the change has the mark of after the change.
    testing::eventually("they are compared", || {
        let labels = ["direction=\"input\"", "result=\"exact\""];
        let counted = "tollgate_counting_exchanges_total";
        counting.gate.metric(counted, &labels) >= 4.0
    });
    engine.stop();
    let engine = serving(TOKENIZER, &another_template(), address);
    counting.ask("after", "", 8);
    testing::eventually("the engine is asked again", || {
        counting.probes("differ") > 0.0
    });
    let model = counting.model();
    assert!(
        model["mark"]
            .as_str()
            .is_some_and(|mark| mark.starts_with("approximate: differs")),
        "{model}"
    );
    assert_eq!(counting.alarm(), 1.0);
    counting.ask("later", "", 4);
    let log = counting.gate.log();
    let told = "has changed: its template, its tokenizer or its settings were changed";
    assert!(log.contains(told), "{log}");
    let doubts = counting.doubts();
    for (id, doubt) in doubts {
        match id.as_str() {
            before if before.starts_with("before") => assert_eq!(doubt, Value::Null, "{id}"),
            later if later.starts_with("later") => assert_eq!(doubt, "differs", "{id}"),
            _ => {}
        }
    }
    engine.stop();
}

#[test]
fn what_was_known_of_an_address_is_not_known_of_another() {
    let engine = serving(TOKENIZER, TEMPLATE, any_port());
    let counting = Counting::start(engine.addr());
    assert_eq!(counting.model()["mark"], "exact");
    // Another port, which is closed.
    let address = free_address();
    let ledger = counting.dir.path().join("usage.db");
    let ledger = format!("ledger: {{ path: {} }}\n", ledger.display());
    counting.gate.reconfigure(&config(address, &ledger));
    testing::eventually("it is forgotten", || {
        let model = counting.model();
        let mark = model["mark"].as_str().unwrap_or_default().to_owned();
        mark.starts_with("approximate: cannot reach") && model["exact"] == json!([])
    });
    engine.stop();
}

#[test]
fn an_engine_that_is_away_or_may_not_be_asked_is_said_so() {
    let address = free_address();
    let (code, table, model) = checked(address);
    assert_eq!(code, Some(1), "{table}");
    assert!(table.contains("cannot reach"), "{table}");
    assert!(model["error"].is_string(), "{model}");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = format!(
        "backends:\n  open: {{ url: http://{address}/v1, models: gpt-oss-120b, tokens: off }}\n  \
         hosted: {{ url: http://{address}/v1, models: gpt-4o }}\n\
         routes: [ {{ workload: w, backend: [open, hosted] }} ]\n\
         tokenizers: {{ gpt-oss-120b: harmony, gpt-4o: o200k }}\n"
    );
    std::fs::write(dir.path().join("tollgate.yaml"), config).expect("a file");
    let ended = tollgate(dir.path(), &["tokens", "check"], &WIDE);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.out.contains("its template is not public"),
        "{ended:?}"
    );
    assert!(ended.out.contains("nobody"), "{ended:?}");
    let ended = tollgate(dir.path(), &["tokens", "check", "--backend", "none"], &[]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("there are hosted, open"), "{ended:?}");
}

#[test]
fn nothing_but_questions_goes_to_an_engine_and_only_where_it_may_be_asked() {
    let answer =
        b"HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
    let asked = Upstream::start(move |_, _| vec![Step::Send(answer.to_vec())]);
    let other = Upstream::start(move |_, _| vec![Step::Send(answer.to_vec())]);
    let config = format!(
        "backends:\n  a: {{ url: http://{0}/v1, models: gpt-oss-120b, credential: {{ inline: canary }} }}\n  \
         b: {{ url: http://{1}/v1, models: gpt-oss-120b, credential: {{ inline: canary }}, tokens: off }}\n  \
         c: {{ url: http://{1}/v1, models: gpt-oss-120b, credential: {{ inline: canary }}, tokens: \"http://{0}/other/v1\" }}\n\
         routes: [ {{ workload: w, backend: [a, b, c] }} ]\n\
         tokenizers: {{ gpt-oss-120b: harmony }}\n",
        asked.address, other.address
    );
    let gate = Gate::start(&config, &[]);
    let paths = || {
        let seen = asked.seen();
        seen.iter().map(target).collect::<Vec<_>>()
    };
    testing::eventually("both are asked", || {
        paths().iter().any(|path| path == "/other/tokenize")
    });
    for seen in asked.seen() {
        let path = target(&seen);
        assert!(
            ["/render", "/count_tokens", "/tokenize"]
                .iter()
                .any(|end| path.ends_with(end)),
            "{path}"
        );
        // The credential is of another place there.
        let credential = seen.header("authorization");
        assert_eq!(credential.is_empty(), path.starts_with("/other"), "{path}");
    }
    assert_eq!(other.seen().len(), 0);
    let page = gate.admin("/api/v1/tokens");
    assert_eq!(page.status, 200, "{}", page.text());
    assert!(!page.text().contains("canary"));
}

#[test]
fn who_asks_what_a_prompt_counts_is_told_by_the_gate_where_its_count_is_exact() {
    let engine = serving(TOKENIZER, TEMPLATE, any_port());
    let asked_at = engine.addr();
    let config =
        config(asked_at, "").replace("models: own }", "models: [own, other], dialect: openai }");
    let gate = Gate::start(&config, &files());
    let ask = |path: &str, body: &Value| {
        gate.call(&post(path, &["x-workload-app: w"], &body.to_string()))
    };
    let prompt = |model: &str| {
        json!({"model": model, "system": "Be brief.",
            "messages": [{"role": "user", "content": [{"type": "text", "text": "Why does the build fail?"}]}]})
    };
    testing::eventually("the engine is asked, and counts alike", || {
        ask("/v1/messages/count_tokens", &prompt("own")).status == 200
    });
    let told = ask("/v1/messages/count_tokens", &prompt("own"));
    let told: Value = serde_json::from_slice(&told.body).expect("JSON");
    // As many as the engine reports of the same prompt.
    let mut call = prompt("own");
    call["max_tokens"] = json!(1);
    let answer = ask("/v1/messages", &call);
    let answer: Value = serde_json::from_slice(&answer.body).expect("JSON");
    assert_eq!(
        told["input_tokens"], answer["usage"]["input_tokens"],
        "{told} {answer}"
    );
    assert_eq!(
        told.as_object().map(serde_json::Map::len),
        Some(1),
        "{told}"
    );
    let google = json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "Why does the build fail?"}]}],
    });
    let path = "/v1beta/models/own:countTokens";
    for body in [google.clone(), json!({"generateContentRequest": google})] {
        let counted = ask(path, &body);
        let counted: Value = serde_json::from_slice(&counted.body).expect("JSON");
        assert_eq!(counted, json!({"totalTokens": told["input_tokens"]}));
    }
    let asked =
        json!({"model": "own", "instructions": "Be brief.", "input": "Why does the build fail?"});
    let counted = ask("/v1/responses/input_tokens", &asked).json();
    assert_eq!(
        counted,
        json!({"object": "response.input_tokens", "input_tokens": told["input_tokens"]})
    );
    // Of a model without a tokenizer nothing is known, nor of a prompt that cannot be said.
    let mut unsaid = prompt("own");
    unsaid["messages"][0]["content"] = json!([{"type": "search_result"}]);
    for (body, what) in [
        (prompt("other"), "no tokenizer"),
        (unsaid, "no counterpart"),
    ] {
        let refused = ask("/v1/messages/count_tokens", &body);
        assert_eq!(refused.status, 400, "{what}: {}", refused.text());
        assert!(
            refused.text().contains("call_not_translatable"),
            "{}",
            refused.text()
        );
    }
    let counts = || {
        let records = gate.records(1).into_iter();
        let counts = records.filter(|r| r["operation"] == "count_tokens" && r["status"] == 200);
        counts.collect::<Vec<_>>()
    };
    testing::eventually("it is recorded", || counts().len() >= 2);
    for record in counts() {
        assert_eq!(record["outcome"], "completed", "{record}");
        assert!(
            record["prompt_tokens"].is_null(),
            "it costs nothing: {record}"
        );
    }
    stop(gate);
}
